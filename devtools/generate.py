# SPDX-License-Identifier: BSD-3-Clause
"""Man pages and shell completion of ringtap's programs, for the build. Options are those that
'PROGRAM --describe' prints, prose comes from text files (CONTRIBUTING.md).
usage: generate.py man OUTPUT_FOLDER DEFINITIONS VERSION DATADIR TEXT...
       generate.py bash|zsh|fish OUTPUT_FOLDER DEFINITIONS
"""

import itertools
import json
import re
import sys
from pathlib import Path

NOTICE = "Generated from the command definitions; do not edit."
LIST_PORTS = "ringtap list --names 2>/dev/null"
SUMMARY = "capture packets and statistics inside running DPDK applications"


class Bad(Exception):
    """A file that cannot be used."""


def options(command):
    return [o for o in command["options"] if o["kind"] != "heading"]


def words(choices, suffix=""):
    return "".join(f"{word}{suffix} " for word in choices.split("|")) if choices else ""


def runs_another(command):
    """Options end at the first operand, and the rest is the command line of another program."""
    return command["operands"] and not command["takes_operands"]


def takes_files(command):
    return (command["operands"] or "").startswith("FILE")


def first_sentence(text):
    return text.split(". ")[0]


# ---- man pages


def roff(text):
    """roff takes '-' for a hyphen, '\\' for an escape, and a line's first '.' or ''' for a request."""
    return re.sub(r"^(?=[.'])", r"\\&", text.replace("\\", "\\e").replace("-", "\\-"))


def read_prose(path, included=False):
    """The sections of a text file, as (title, lines) pairs."""
    found = []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as e:
        raise Bad(f"cannot read {path}: {e}") from e
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{path}:{number}"
        if not line.isprintable():
            raise Bad(f"{where}: a control character; indent with blanks")
        if line.startswith("@include ") and not included:
            found += read_prose(path.parent / line.removeprefix("@include "), included=True)
        elif line.startswith("@"):
            raise Bad(f"{where}: unknown instruction; there is @include FILE, in files that are not included")
        elif line.startswith("#"):
            if not re.match(r"# \S", line):
                raise Bad(f"{where}: not a heading; write '# TITLE'")
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
        elif line:
            raise Bad(f"{where}: text before the first heading; write '# TITLE'")
    for title, lines in found:
        if not any(lines):
            raise Bad(f"{path}: the section {title} has no text")
    if not found:
        raise Bad(f"{path}: no section; write '# TITLE' and a text")
    return found


def roff_section(title, lines, datadir):
    """Lines become paragraphs; those that begin with a blank stand as they are."""
    out = [f".SH {title}"]
    text = "\n".join(lines).strip("\n").replace("@DATADIR@", datadir)
    for kind, group in itertools.groupby(text.split("\n"), lambda line: line[:1] == " " if line else None):
        if kind is None:
            out.append(".PP")
        elif kind:
            out += [".PP", ".nf", ".RS 4", *map(roff, group), ".RE", ".fi"]
        else:
            out.append(roff(" ".join(group)))
    return out


def roff_option(option):
    if option["kind"] == "heading":
        return [f".SS {roff(option['help'])}"]
    names = [f"\\fB\\-{option['letter']}\\fR"] if option["letter"] else []
    names += [f"\\fB\\-\\-{roff(option['name'])}\\fR"] if option["name"] else []
    arg = f" \\fI{roff(option['arg'])}\\fR" if option["arg"] else ""
    return [".TP", ", ".join(names) + arg, roff(option["help"]) + "."]


class Manual:
    def __init__(self, folder, version, datadir, texts):
        self.folder, self.version, self.datadir = folder, version, datadir
        self.texts = {text.stem: text for text in texts}

    def write(self, name, page, summary, synopsis, definitions, see_also):
        """definitions, of options or commands, follow the first section of prose."""
        if name not in self.texts:
            raise Bad(f"no text for the man page of {name}; add {name}.txt to the build's files")
        first, *others = [roff_section(*section, self.datadir) for section in read_prose(self.texts[name])]
        lines = [
            f'.\\" {NOTICE}',
            f'.TH "{page}" 1 "" "ringtap {self.version}" "ringtap manual"',
            ".SH NAME",
            f"{roff(page)} \\- {roff(summary)}",
            ".SH SYNOPSIS",
            *synopsis,
            *first,
            *definitions,
            *itertools.chain(*others),
            ".SH SEE ALSO",
            see_also,
            "",
        ]
        (self.folder / f"{page}.1").write_text("\n".join(lines), encoding="utf-8")

    def command(self, c):
        operands = f" \\fI{roff(c['operands'])}\\fR" if c["operands"] else ""
        definitions = [".SH OPTIONS", *itertools.chain(*map(roff_option, c["options"]))] if c["options"] else []
        self.write(
            c["name"],
            c["program"] or f"ringtap-{c['name']}",
            c["summary"],
            [f"\\fB{roff(c['program'] or 'ringtap ' + c['name'])}\\fR [\\fIoptions\\fR]{operands}"],
            definitions,
            "\\fBringtap\\fR(1)",
        )

    def overview(self, commands):
        pages = [f"\\fBringtap\\-{c['name']}\\fR(1)" for c in commands]
        definitions = [line for page, c in zip(pages, commands) for line in (".TP", page, roff(c["summary"]) + ".")]
        self.write(
            "ringtap",
            "ringtap",
            SUMMARY,
            [
                "\\fBringtap\\fR \\fIcommand\\fR [\\fIoptions\\fR]",
                ".br",
                "\\fBringtap \\-\\-version\\fR | \\fB\\-\\-help\\fR",
            ],
            [".SH COMMANDS", *definitions],
            ", ".join([*pages, "\\fBpcap\\-filter\\fR(7)", "\\fBdumpcap\\fR(1)"]),
        )


def man(folder, commands, version, datadir, *texts):
    manual = Manual(folder, version, datadir, [Path(text) for text in texts])
    if not commands[0]["program"]:
        manual.overview(commands)
    for command in commands:
        manual.command(command)


# ---- bash


def bash_value(o):
    if o["kind"] == "flag":
        return ""
    names = [f"-{o['letter']}"] if o["letter"] else []
    names += [f"--{o['name']}"] if o["name"] else []
    action = ":"
    if o["kind"] == "file":
        action = "compopt -o default; COMPREPLY=()"
    elif o["kind"] == "port":
        action = f'_ringtap_words "$({LIST_PORTS})"'
    elif o["choices"]:
        values = words(o["choices"], ":" if o["kind"] == "keyed" else "")
        action = f'COMPREPLY=($(compgen -W "{values}" -- "$cur"))'
    return f"\t\t{'|'.join(names)}) {action}; return ;;\n"


def bash_command(c):
    every = "".join(
        (f" -{o['letter']}" if o["letter"] else "") + (f" --{o['name']}" if o["name"] else "") for o in options(c)
    )
    listed = f" $({c['listed']})" if c["listed"] else ""
    files = "\t\tcompopt -o default\n" if takes_files(c) else ""  # what no word matches
    return (
        f"\t{c['name']})\n\t\tcase $prev in\n"
        + "".join(map(bash_value, options(c)))
        + f"\t\tesac\n{files}\t\twords=\"{words(c['words'])}--help{every}{listed}\" ;;\n"
    )


BASH_WORDS = "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words\n"
# Ports have a ':' before them, at which bash parts words: bash-completion undoes that.
BASH_HEAD = (
    """_ringtap_words()
{
	COMPREPLY=($(compgen -W "$1" -- "$cur"))
	! declare -F __ltrim_colon_completions >/dev/null || __ltrim_colon_completions "$cur"
}

_ringtap()
{
"""
    + BASH_WORDS
    + """	! declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref -n : cur prev
	COMPREPLY=()
	case ${COMP_WORDS[1]} in
"""
)
BASH_TAIL = """	esac
	if [ "$COMP_CWORD" -eq 1 ] ||
		{ [ "$COMP_CWORD" -eq 2 ] && [ "$prev" = help ]; }; then
		words="%s help --help --version"
	fi
	_ringtap_words "$words"
}
complete -F _ringtap ringtap
"""


def bash(folder, commands):
    body = "".join(map(bash_command, commands))
    name, program = commands[0]["name"], commands[0]["program"]
    if program:
        # Its options are those of its only command.
        text = (
            f"_ringtap_{name}()\n{{\n{BASH_WORDS}\tCOMPREPLY=()\n\tcase {name} in\n{body}"
            '\tesac\n\tCOMPREPLY=($(compgen -W "$words" -- "$cur"))\n}\n'
            f"complete -F _ringtap_{name} {program}\n"
        )
    else:
        text = BASH_HEAD + body + BASH_TAIL % " ".join(c["name"] for c in commands)
    (folder / (program or "ringtap")).write_text(f"# {NOTICE}\n{text}", encoding="utf-8")


# ---- zsh: specifications of _arguments, zshcompsys(1)


def zsh_text(text, special):
    """In single quotes; special are the characters that would end this part of a specification."""
    escaped = "".join("\\" + c if c == "\\" or c in special else c for c in text)
    return escaped.replace("'", "'\\''")


def zsh_value(o):
    values = ""
    if o["kind"] == "file":
        values = "_files"
    elif o["kind"] == "port":
        values = " _ringtap_ports"
    elif o["choices"]:
        values = f" _ringtap_keys {words(o['choices'])}" if o["kind"] == "keyed" else f"({words(o['choices'])})"
    return f":{zsh_text(o['arg'], ':')}:{values}"


def zsh_option(o):
    value = o["kind"] != "flag"
    letter = f"-{o['letter']}{'+' if value else ''}" if o["letter"] else ""
    name = f"--{o['name']}{'=' if value else ''}" if o["name"] else ""
    names = f"{{{letter},{name}}}" if letter and name else letter + name
    text = zsh_text(first_sentence(o["help"]), "[]:")
    return f" \\\n\t\t'*'{names}'[{text}]{zsh_value(o) if value else ''}'"


def zsh_command(c):
    name, operands = c["name"], ""
    text = ""
    if runs_another(c):
        operands = " \\\n\t\t'*::program: _ringtap_program'"
    elif takes_files(c):
        operands = " \\\n\t\t'*:file: _files'"
    elif c["words"] or c["listed"]:
        title = "operand" if ":" in c["operands"] else c["operands"]
        operands = f" \\\n\t\t'*:{title}: _ringtap_operands_{name}'"
    if c["words"] or c["listed"]:
        listed = f'${{(f)"$({c["listed"]})"}}' if c["listed"] else ""
        text = (
            f"_ringtap_operands_{name}()\n{{\n\tlocal -a found=({words(c['words'])}{listed})\n"
            "\tcompadd -a found\n}\n\n"
        )
    end = "-A '-*' " if runs_another(c) else ""
    return (
        f"{text}_ringtap_{name}()\n{{\n\t_arguments -s -S {end}: \\\n"
        "\t\t'(- *)'{-h,--help}'[Print this help and exit]'"
        + "".join(map(zsh_option, options(c)))
        + f"{operands}\n}}\n\n"
    )


ZSH_HEAD = (
    """_ringtap_ports()
{
	local -a found=(${(f)"$("""
    + LIST_PORTS
    + """)"})
	compadd -a found
}

_ringtap_keys()
{
	compadd -S : -- "$@"
}

_ringtap_program()
{
	if [[ $words[1] = -- ]]; then
		shift words
		(( CURRENT-- ))
	fi
	_normal
}

"""
)
# _arguments leaves the command's words, from its name on, in $words.
ZSH_TAIL = """		'help:list the options of a command'
	)
	_arguments -C : \\
		'(- *)'{-h,--help}'[List the commands]' \\
		'(- *)'--version'[Print the version]' \\
		'1: :->command' '*:: :->words' && return
	if [[ $state = command || $words[1] = help && $CURRENT -eq 2 ]]; then
		_describe -t commands command summaries
	elif (( $+functions[_ringtap_$words[1]] )); then
		_ringtap_$words[1]
	fi
}

_ringtap "$@"
"""


def zsh(folder, commands):
    program = commands[0]["program"] or "ringtap"
    text = f"#compdef {program}\n# {NOTICE}\n{ZSH_HEAD}" + "".join(map(zsh_command, commands))
    if commands[0]["program"]:
        text += f"_ringtap_{commands[0]['name']} \"$@\"\n"
    else:
        summaries = "".join(f"\t\t'{c['name']}:{zsh_text(c['summary'], ':')}'\n" for c in commands)
        text += (
            "_ringtap()\n{\n\tlocal curcontext=$curcontext state line\n\tlocal -a summaries=(\n" + summaries + ZSH_TAIL
        )
    (folder / f"_{program}").write_text(text, encoding="utf-8")


# ---- fish: complete(1)


def fish_text(text):
    return "'" + re.sub(r"(['\\])", r"\\\1", text) + "'"


def fish_option(o):
    text = (f" -s {o['letter']}" if o["letter"] else "") + (f" -l {o['name']}" if o["name"] else "")
    if o["kind"] == "file":
        text += " -r -F"
    elif o["kind"] == "port":
        text += f" -x -a '({LIST_PORTS})'"
    elif o["kind"] != "flag":
        text += " -x"
        if o["choices"]:
            text += f" -a '{words(o['choices'], ':' if o['kind'] == 'keyed' else '')}'"
    return f"{text} -d {fish_text(first_sentence(o['help']))}"


def fish_command(c):
    lines = [" -s h -l help -d 'Print this help and exit'", *map(fish_option, options(c))]
    if runs_another(c):
        lines.append(" -a '(__fish_complete_subcommand --fcs-skip=2)'")
    elif takes_files(c):
        lines.append(" -F")
    else:
        lines += [f" -a '{words(c['words'])}'"] if c["words"] else []
        lines += [f" -a '({c['listed']})'"] if c["listed"] else []
    condition = "" if c["program"] else f" -n '__ringtap_is {c['name']}'"
    return "".join(f"complete -c {c['program'] or 'ringtap'}{condition}{line}\n" for line in lines)


FISH_FUNCTIONS = """function __ringtap_is --description 'Whether the command is one of these'
	set -l words (commandline -opc)
	test (count $words) -gt 1; and contains -- $words[2] $argv
end
function __ringtap_names_a_command
	test (count (commandline -opc)) -eq 1
	or begin; test (count (commandline -opc)) -eq 2; and __ringtap_is help; end
end
"""
FISH_COMMAND = "complete -c ringtap -n __ringtap_names_a_command"


def fish(folder, commands):
    program = commands[0]["program"] or "ringtap"
    # No file names but where they are options' values.
    text = f"# {NOTICE}\ncomplete -c {program} -f\n"
    if not commands[0]["program"]:
        text += FISH_FUNCTIONS
        text += "".join(f"{FISH_COMMAND} -a {c['name']} -d {fish_text(c['summary'])}\n" for c in commands)
        text += (
            f"{FISH_COMMAND} -a help -d 'list the options of a command'\n"
            f"{FISH_COMMAND} -s h -l help -d 'List the commands'\n"
            f"{FISH_COMMAND} -l version -d 'Print the version'\n"
        )
    text += "".join(map(fish_command, commands))
    (folder / f"{program}.fish").write_text(text, encoding="utf-8")


def main(what, folder, commands, *arguments):
    generators = {"man": man, "bash": bash, "zsh": zsh, "fish": fish}
    try:
        generators[what](Path(folder), json.loads(Path(commands).read_text(encoding="utf-8")), *arguments)
    except Bad as e:
        sys.exit(str(e))


if __name__ == "__main__":
    main(*sys.argv[1:])
