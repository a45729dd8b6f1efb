# SPDX-License-Identifier: BSD-3-Clause
"""Completions of bash, zsh and fish, with the files that `make install` installs: bash's function,
and the systems of the others."""

import json
import re
import shutil
import signal

import pytest
from harness.flight import Flight
from harness.paths import BUILD, RINGTAP
from harness.proc import Proc, check, run

# Completes $LINE and writes the matches to $OFFERED. All matches pass through a builtin of zsh.
ZSHRC = """
fpath=($FUNCTIONS $fpath)
LISTMAX=10000
autoload -U compinit && compinit -u -d $ZDOTDIR/dump  # the first shell writes it
compadd() {
  local -a hits
  if [[ -z ${argv[(r)-[OAD]]} ]]; then
    builtin compadd -O hits "$@"
    print -rl -- $hits >>$OFFERED
  fi
  builtin compadd "$@"
}
zle -C offer complete-word _main_complete
zle-line-init() { BUFFER=$LINE CURSOR=$#LINE; zle offer; exit }
zle -N zle-line-init
"""


# Completes $1 as readline does with what the function of the program sets, and prints the matches.
BASH = """
compopt() { [[ $* != "-o default" ]] || files=1; }
for file in "$FUNCTIONS"/*; do . "$file"; done
COMP_LINE=$1 COMP_POINT=${#1} files=
read -ra COMP_WORDS <<<"$1"
of=$(complete -p "${COMP_WORDS[0]}"); of=${of#*-F }; ${of%% *}
last=${1##* }
[[ ${COMPREPLY[*]} || -z $files ]] || COMPREPLY=($(compgen -f -- "$last"))
printf '%s\n' "${COMPREPLY[@]}"
"""


class Bash:
    def __init__(self, root, tmp_path):
        self.dir = tmp_path
        self.functions = next(root.rglob("bash-completion/completions"))

    def __call__(self, line, path):
        done = run(
            ["bash", "--norc", "-c", BASH, "bash", line],
            cwd=self.dir,
            env={"FUNCTIONS": str(self.functions), "PATH": path},
        )
        assert done.returncode == 0 and not done.stderr, done.stderr
        last = line.split(" ")[-1]
        words = {last[: last.rfind(":") + 1] + word for word in done.stdout.split()}
        # Options are offered where nothing is typed, too; the others offer them behind a '-'.
        return sorted(word for word in words if last or not word.startswith("-"))


class Zsh:
    def __init__(self, root, tmp_path):
        self.dir = tmp_path
        self.functions = next(root.rglob("zsh/site-functions"))
        (tmp_path / ".zshrc").write_text(ZSHRC)

    def __call__(self, line, path):
        offered = self.dir / "offered"
        offered.write_text("")
        shell = Proc(
            ["zsh", "-d", "-i"],
            tty=True,
            cwd=self.dir,
            env={
                "ZDOTDIR": str(self.dir),
                "FUNCTIONS": str(self.functions),
                "OFFERED": str(offered),
                "LINE": line,
                "PATH": path,
                "TERM": "dumb",
            },
        )
        try:
            shell.wait()
        finally:
            shell.close()
        assert not re.search(r"^_\w+:|parse error", shell.output, re.M), shell.output
        return sorted({word for word in offered.read_text().splitlines() if word})


class Fish:
    def __init__(self, root, tmp_path):
        self.dir = tmp_path
        self.data = next(root.rglob("fish/vendor_completions.d")).parents[1]

    def __call__(self, line, path):
        done = run(
            ["fish", "-c", f"complete -C '{line}'"],
            cwd=self.dir,
            env={"XDG_DATA_DIRS": f"{self.data}:/usr/share", "HOME": str(self.dir), "PATH": path},
        )
        assert done.returncode == 0 and not done.stderr, done.stderr
        return sorted(word.split("\t")[0] for word in done.stdout.splitlines())


@pytest.fixture(params=[Bash, Zsh, Fish], ids=["bash", "zsh", "fish"])
def offered(request, installation, tmp_path):
    """offered(line): the completions of the line's last word."""
    name = request.param.__name__.lower()
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    shell = request.param(installation, tmp_path)
    programs = f"{RINGTAP.parent}:{BUILD / 'fwd'}:/usr/bin:/bin"
    return lambda line: [word.rstrip(":") for word in shell(line, programs)]


def options_of(*command):
    text = check([*command, "--help"])
    found = re.findall(r"^ {2,6}(?! )(-\w)?(?:, |  )?(--[a-z-]+)?", text, re.M)
    return sorted({word for pair in found for word in pair if word})


def test_completion(offered, app, closing, tmp_path):
    """Commands, options as in the help, values, applications and ports, programs to run."""
    assert_commands(offered)
    assert_commands_below(offered)
    assert_values(offered, app, tmp_path)
    assert_incidents(offered, app, closing, tmp_path)


def assert_commands(offered):
    commands = re.findall(r"^  ([\w-]+) ", check([RINGTAP, "--help"]), re.M)
    assert len(commands) > 8
    assert offered("ringtap ") == sorted([*commands, "help"])
    assert offered("ringtap rec") == ["record"]
    assert offered("ringtap help rec") == ["record"]
    assert offered("ringtap --ver") == ["--version"]
    for command in ("record", "run"):
        known = options_of(RINGTAP, command)
        assert "--help" in known
        long = [word for word in known if word.startswith("--")]
        assert [word.rstrip("=") for word in offered(f"ringtap {command} --")] == long
        short = [word for word in known if not word.startswith("--")]
        assert [word for word in offered(f"ringtap {command} -") if len(word) == 2 and word != "--"] == short


def assert_values(offered, app, tmp_path):
    (tmp_path / "some.pcapng").touch()
    assert offered("ringtap record --on-full ") == ["drop", "wait"]
    assert "duration" in offered("ringtap record -a ") and "interval" in offered("ringtap record -b ")
    assert {"missed", "idle-gap", "exit"} <= set(offered("ringtap flight --on "))
    assert offered("ringtap flight --on idl") == ["idle-gap"]
    assert {"RXBIT/s", "P99.9", "CACHED"} <= set(offered("ringtap top --by "))
    assert {"all", "gaps"} <= set(offered("ringtap top --collectors "))
    assert offered("ringtap record -w some") == ["some.pcapng"]
    assert offered("ringtap explain some") == ["some.pcapng"]
    assert offered("ringtap record --queue ") == []
    assert offered("ringtap-fwd --plane pack") == ["packet", "packet-mmap"]
    port = f"{app.prefix}:net_ring_a"
    assert {app.prefix, port} <= set(offered("ringtap record -i "))
    assert offered("ringtap record -i " + port[:-1]) == [port]
    assert {app.prefix, port} <= set(offered("ringtap top "))
    assert app.prefix in offered("ringtap attach ") and port not in offered("ringtap attach ")
    assert {app.prefix, "burst", "lttng"} <= set(offered("ringtap trace "))
    assert "lo" in offered("ringtap host ")
    assert "dpdk-testpmd" in offered("ringtap run -- dpdk-test")
    assert f"ringtap:{port}" in offered("ringtap run tcpdump -i ")
    assert f"ringtap:{app.prefix}" in offered("ringtap run --tags as-is -- tcpdump -nn -i ")


def assert_incidents(offered, app, closing, tmp_path):
    """Those of the folder's incidents, for commands that take one."""
    kept = closing(Flight(app, tmp_path / "incidents", "--after", "1ms"))
    kept.proc.send_signal(signal.SIGUSR1)
    (incident,) = kept.incidents(1)
    kept.finish()
    for command in "show", "extract":
        assert offered(f"ringtap flight {command} 2") == [incident.folder.name]


def assert_commands_below(offered):
    """Their names, their options and no others, and their values."""
    below = {c["name"]: c["commands"] for c in json.loads(check([RINGTAP, "--describe"])) if c["commands"]}
    assert sorted(below) == ["archive", "flight", "trace"]
    for name, commands in below.items():
        names = sorted(c["name"].split()[1] for c in commands)
        assert set(names) <= set(offered(f"ringtap {name} "))
        assert offered(f"ringtap help {name} ") == names
    assert offered("ringtap flight ext") == ["extract"]
    assert offered("ringtap help flight ext") == ["extract"]
    for line in ("flight extract", "trace gaps", "archive query"):
        known = options_of(RINGTAP, *line.split())
        long = [word for word in known if word.startswith("--")]
        assert [word.rstrip("=") for word in offered(f"ringtap {line} --")] == long
    assert "--off-cpu" not in offered("ringtap trace burst --") and "--off-cpu" in offered("ringtap trace gaps --")
    assert offered("ringtap archive query --engine ") == ["duckdb", "spark"]
