#!/usr/bin/env python3
"""Writes the man page and the bash completion of `skein` from its options page.

    python3 tools/manual_files.py build/release/bin/skein FOLDER      FOLDER/skein.1 and FOLDER/skein.bash

Both come from `skein --options-page` (docs/options.md) alone, so they name what this build has.
"""
import pathlib
import re
import subprocess
import sys

HEADING = re.compile(r"^## (skein.*)$")
ROW = re.compile(r"^\| `(.+?)` \| (.*?) \| (.*) \|$")
REFERENCE = re.compile(r"^(.+?), as of \[(.+?)\]\(#.+?\):(.*)$")


def sections(page):
    """[(command, [text or (option, default, purpose)])] of the options page, in its order."""
    found = []
    lines = page.splitlines()
    for number, line in enumerate(lines):
        heading = HEADING.match(line)
        if heading:
            found.append((heading.group(1), []))
        elif found and line.startswith("|"):
            row = ROW.match(line)
            if row and not line.startswith("|---"):
                found[-1][1].append(tuple(cell.replace("\\|", "|") for cell in row.groups()))
        elif found and line:
            entries = found[-1][1]
            goes_on = entries and isinstance(entries[-1], str) and lines[number - 1]
            if goes_on:
                entries[-1] += " " + line
            else:
                entries.append(line)
    return found


def options_of(entries):
    """The long names among a command's rows and references."""
    names = []
    for entry in entries:
        text = entry[0] if isinstance(entry, tuple) else entry if REFERENCE.match(entry) else ""
        names += re.findall(r"--[a-z][a-z0-9-]*", text)
    return sorted(set(names))


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return re.sub(r"^([.'])", r"\\&\1", text)


def man_page(found, version):
    lines = [f'.TH SKEIN 1 "" "skein {version}" "User commands"', ".SH NAME",
             "skein \\- a server for decisions, embeddings and chat of language models", ".SH SYNOPSIS",
             ".B skein", "\\fICOMMAND\\fR [\\fIMODEL\\fR] [\\fIOPTIONS\\fR]", ".SH DESCRIPTION",
             "The command line wins over the environment, and that over the file of "
             "\\fB\\-\\-config\\fR. \\fBskein\\fR \\fICOMMAND\\fR \\fB\\-\\-help\\fR shows the options "
             "that most people need."]
    for command, entries in found:
        lines.append(f'.SH "{escaped(command).upper()}"')
        for entry in entries:
            if isinstance(entry, str):
                lines += [".PP", escaped(re.sub(r"\[(.+?)\]\(.+?\)", r"\1", entry))]
                continue
            option, default, purpose = entry
            name, _, value = option.partition(" ")
            lines += [".TP", f"\\fB{escaped(name)}\\fR" + (f" \\fI{escaped(value)}\\fR" if value else "")]
            usual = f" Default: {default.strip('`')}." if default.startswith("`") else ""
            lines.append(escaped(purpose.rstrip(".") + "." + usual))
    return "\n".join(lines) + "\n"


def completion(found):
    names = [command.split()[1:] for command, _ in found]
    cases = []
    for (command, entries), path in zip(found, names):
        below = sorted(other[len(path)] for other in names if len(other) == len(path) + 1 and other[:-1] == path)
        words = " ".join([*below, *options_of(entries), "--help", *(["--help-all"] if path else [])])
        cases.append(f'    "{" ".join(path)}") words="{words}" ;;')
    known = " ".join(sorted({word for path in names for word in path}))
    return f"""# Completion of skein's commands and options; files and directories elsewhere.
_skein() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" path="" word words=""
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case " {known} " in
      *" $word "*) path="${{path:+$path }}$word" ;;
    esac
  done
  case "$path" in
{chr(10).join(cases)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ $current != -* && -n $path ]]; then
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _skein skein
"""


def main():
    skein, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    page = subprocess.run([skein, "--options-page"], capture_output=True, text=True, check=True).stdout
    version = subprocess.run([skein, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    folder.mkdir(parents=True, exist_ok=True)
    found = sections(page)
    (folder / "skein.1").write_text(man_page(found, version))
    (folder / "skein.bash").write_text(completion(found))


if __name__ == "__main__":
    main()
