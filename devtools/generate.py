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


def last_word(command):
    return command["name"].split(" ")[-1]


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


def roff_options(c):
    return itertools.chain(*map(roff_option, c["options"]))


def roff_call(c):
    operands = f" \\fI{roff(c['operands'])}\\fR" if c["operands"] else ""
    return f"\\fB{roff(c['program'] or 'ringtap ' + c['name'])}\\fR [\\fIoptions\\fR]{operands}"


def roff_below(c, below):
    if c["shared"]:
        return [".TP", f"\\fB{roff(last_word(below))}\\fR", roff(below["summary"]) + "."]
    operands = f" {roff(below['operands'])}" if below["operands"] else ""
    return [
        f".SS {roff('ringtap ' + below['name'])} [options]{operands}",
        roff(below["summary"].capitalize()) + ".",
        *roff_options(below),
    ]


def roff_page(name, path):
    """Another page, as "tcpdump(1)"."""
    parts = re.fullmatch(r"([\w.-]+)\((\d)\)", name)
    if not parts:
        raise Bad(f"{path}: '{name}' in SEE ALSO; write pages as 'tcpdump(1), pcap-filter(7)'")
    return f"\\fB{roff(parts[1])}\\fR({parts[2]})"


class Manual:
    def __init__(self, folder, version, datadir, texts):
        self.folder, self.version, self.datadir = folder, version, datadir
        self.texts = {text.stem: text for text in texts}

    def write(self, name, page, summary, synopsis, definitions, see_also):
        """definitions, of options or commands, follow the first section of prose."""
        if name not in self.texts:
            raise Bad(f"no text for the man page of {name}; add {name}.txt to the build's files")
        sections = dict(read_prose(self.texts[name]))
        for needed in ("EXAMPLES", "SEE ALSO"):
            if needed not in sections:
                raise Bad(f"{self.texts[name]}: the section {needed} is missing")
        pages = [*see_also, *"".join(f"{line} " for line in sections.pop("SEE ALSO")).strip().split(", ")]
        first, *others = [roff_section(*section, self.datadir) for section in sections.items()]
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
            ", ".join(roff_page(other, self.texts[name]) for other in pages),
            "",
        ]
        (self.folder / f"{page}.1").write_text("\n".join(lines), encoding="utf-8")

    def command(self, c):
        synopsis = [roff_call(c)] if c["options"] or not c["commands"] else []
        definitions = [".SH OPTIONS", *roff_options(c)] if c["options"] else []
        if c["commands"]:
            definitions += [".SH COMMANDS", *itertools.chain(*(roff_below(c, below) for below in c["commands"]))]
            if not c["shared"]:
                synopsis += [".br"] * bool(synopsis) + [
                    *itertools.chain(*([roff_call(b), ".br"] for b in c["commands"]))
                ][:-1]
        self.write(
            c["name"],
            c["program"] or f"ringtap-{c['name']}",
            c["summary"],
            synopsis,
            definitions,
            [] if c["program"] else ["ringtap(1)"],
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
            [f"ringtap-{c['name']}(1)" for c in commands],
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


def bash_words(c):
    """Options and their values, and the words of a command."""
    every = "".join(
        (f" -{o['letter']}" if o["letter"] else "") + (f" --{o['name']}" if o["name"] else "") for o in options(c)
    )
    listed = f" $({c['listed']})" if c["listed"] else ""
    files = "\t\tcompopt -o default\n" if takes_files(c) else ""  # what no word matches
    known = words(c["words"]) + "".join(f"{last_word(b)} " for b in c["commands"])
    return (
        "\t\tcase $prev in\n"
        + "".join(map(bash_value, options(c)))
        + f'\t\tesac\n{files}\t\twords="{known}-h --help{every}{listed}" ;;\n'
    )


def bash_command(c):
    if runs_another(c):
        valued = " ".join(f"--{o['name']}" for o in options(c) if o["kind"] != "flag")
        return f"\t{c['name']})\n\t\t_ringtap_program '{valued}' && return\n{bash_words(c)}"
    own = f"\t{c['name']})\n{bash_words(c)}"
    return "".join(f"\t'{c['name']} {last_word(b)}')\n{bash_words(b)}" for b in c["commands"]) + own


def bash_help(commands):
    """The commands below others, as words behind 'help COMMAND'."""
    return "".join(
        f"\t'help {c['name']}') words=\"{' '.join(map(last_word, c['commands']))}\" ;;\n"
        for c in commands
        if c["commands"]
    )


# Names of ports have a ':', at which bash parts words: COMPREPLY has what stands behind the last one.
BASH_WORDS = """_ringtap_words()
{
	local before=
	[[ $COMP_WORDBREAKS != *:* || $cur != *:* ]] || before=${cur%:*}:
	COMPREPLY=($(compgen -W "$1" -- "$cur"))
	COMPREPLY=("${COMPREPLY[@]#"$before"}")
}

"""
BASH_LINE = """	local line=${COMP_LINE:0:COMP_POINT} cur= prev= words= IFS=$' \\t\\n'
	local -a typed
	read -ra typed <<<"$line"
	[[ $line = *[[:blank:]] ]] || { cur=${typed[-1]}; unset 'typed[-1]'; }
	prev=${typed[-1]}
	COMPREPLY=()
"""
BASH_HEAD = (
    BASH_WORDS
    + """# Behind 'ringtap run [options] [--]': a program, its ports, or its own completion. $1: options of
# run that have a value.
_ringtap_program()
{
	local at=2
	while [[ ${typed[at]} = -?* && ${typed[at]} != -- ]]; do
		[[ " $1 " != *" ${typed[at]} "* ]] || (( at++ ))
		(( at++ ))
	done
	[[ ${typed[at]} != -- ]] || (( at++ ))
	if (( ${#typed[@]} == at )) && [[ $prev = -- || $cur != -* ]]; then
		COMPREPLY=($(compgen -c -- "$cur"))
		[[ $cur != */* ]] || compopt -o default
		return 0
	fi
	(( ${#typed[@]} > at )) || return 1
	case $prev in
	-i|--interface) _ringtap_words "$("""
    + LIST_PORTS
    + """ | sed s/^/ringtap:/)" ;;
	*)
		if declare -F _command_offset >/dev/null; then
			_command_offset "$at"
		else
			compopt -o default
		fi ;;
	esac
	return 0
}

_ringtap()
{
"""
    + BASH_LINE
    + """	local name=${typed[1]}
	case $name in
	help) (( ${#typed[@]} == 2 )) || name="help ${typed[2]}" ;;
	@above@) (( ${#typed[@]} == 2 )) || [[ " @below@ " != *" $name ${typed[2]},"* ]] || name+=" ${typed[2]}" ;;
	esac
	case $name in
"""
)
BASH_TAIL = """	esac
	if (( ${#typed[@]} == 1 )) || { (( ${#typed[@]} == 2 )) && [[ $prev = help ]]; }; then
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
            f"_ringtap_{name}()\n{{\n{BASH_LINE}\tcase {name} in\n{body}"
            '\tesac\n\tCOMPREPLY=($(compgen -W "$words" -- "$cur"))\n}\n'
            f"complete -F _ringtap_{name} {program}\n"
        )
    else:
        above = [c for c in commands if c["commands"]]
        pairs = " ".join(f"{b['name']}," for c in above for b in c["commands"])
        head = BASH_HEAD.replace("@above@", "|".join(c["name"] for c in above)).replace("@below@", pairs)
        text = head + bash_help(commands) + body + BASH_TAIL % " ".join(c["name"] for c in commands)
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
    name, operands = c["name"].replace(" ", "_"), ""
    text = "".join(map(zsh_command, c["commands"]))
    if c["commands"]:
        c = {**c, "words": "|".join(map(last_word, c["commands"])), "operands": c["operands"] or "COMMAND"}
    if runs_another(c):
        operands = " \\\n\t\t'*::program: _ringtap_program'"
    elif takes_files(c):
        operands = " \\\n\t\t'*:file: _files'"
    elif c["words"] or c["listed"]:
        title = "operand" if ":" in c["operands"] else c["operands"]
        operands = f" \\\n\t\t'*:{title}: _ringtap_operands_{name}'"
    if c["words"] or c["listed"]:
        listed = f'${{(f)"$({c["listed"]})"}}' if c["listed"] else ""
        text += (
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
	if [[ $CURRENT -gt 2 && $words[CURRENT-1] = (-i|--interface) ]]; then
		local -a found=(ringtap:${^${(f)"$("""
    + LIST_PORTS
    + """)"}})
		compadd -a found
	else
		_normal
	fi
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
	elif [[ $words[1] = help ]]; then
		compadd -- ${=below[$words[2]]}
	elif [[ $CURRENT -gt 2 && -n ${below[$words[1]]} && " ${below[$words[1]]} " = *" $words[2] "* ]]; then
		local function=_ringtap_$words[1]_$words[2]
		shift words
		(( CURRENT-- ))
		$function
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
        below = " ".join(f"{c['name']} '{' '.join(map(last_word, c['commands']))}'" for c in commands if c["commands"])
        summaries = "".join(f"\t\t'{c['name']}:{zsh_text(c['summary'], ':')}'\n" for c in commands)
        text += (
            "_ringtap()\n{\n\tlocal curcontext=$curcontext state line\n"
            f"\tlocal -A below=({below})\n\tlocal -a summaries=(\n" + summaries + ZSH_TAIL
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


FISH_PROGRAM = f"""function __ringtap_complete_program
	switch (commandline -opc)[-1]
		case -i --interface
			{LIST_PORTS} | string replace -r '^' ringtap:
		case '*'
			__fish_complete_subcommand --fcs-skip=2
	end
end
"""


def fish_command(c):
    lines = [" -s h -l help -d 'Print this help and exit'", *map(fish_option, options(c))]
    if runs_another(c):
        lines.append(" -a '(__ringtap_complete_program)'")
    elif takes_files(c):
        lines.append(" -F")
    else:
        lines += [f" -a '{words(c['words'])}'"] if c["words"] else []
        lines += [f" -a '({c['listed']})'"] if c["listed"] else []
    condition = "" if c["program"] else f''' -n "__ringtap_is '{c['name']}'"'''
    text = "".join(f"complete -c {c['program'] or 'ringtap'}{condition}{line}\n" for line in lines)
    for b in c["commands"]:
        text += (
            f"complete -c ringtap -n '__ringtap_expects {c['name']}' -a {last_word(b)} -d {fish_text(b['summary'])}\n"
            f"{fish_command(b)}"
        )
    return text


def fish_functions(commands):
    below = " ".join(f"'{b['name']}'" for c in commands for b in c["commands"])
    return f"""function __ringtap_is --description 'Whether the command is this one'
	set -l words (commandline -opc)
	test (count $words) -gt 1; or return 1
	set -l name $words[2]
	if test (count $words) -gt 2; and contains -- "$name $words[3]" {below}
		set name "$name $words[3]"
	end
	test "$name" = "$argv[1]"
end
function __ringtap_expects --description 'Whether a command below this one comes next'
	set -l words (commandline -opc)
	test "$words[2..]" = "$argv[1]" -o "$words[2..]" = "help $argv[1]"
end
function __ringtap_names_a_command
	set -l words (commandline -opc)
	test (count $words) -eq 1 -o "$words[2..]" = help
end
{FISH_PROGRAM}"""


FISH_COMMAND = "complete -c ringtap -n __ringtap_names_a_command"


def fish(folder, commands):
    program = commands[0]["program"] or "ringtap"
    # No file names but where they are options' values.
    text = f"# {NOTICE}\ncomplete -c {program} -f\n"
    if not commands[0]["program"]:
        text += fish_functions(commands)
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
