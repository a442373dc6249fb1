#!/usr/bin/env python3
"""Writes Markdown pages whose prose has at most 100 columns.

    python3 tools/pages.py FILE...    wraps these pages in place
    pages.write(path, text)           for scripts that make a page

A paragraph is wrapped where one of its lines is longer. Tables, commands (indented by four or
fenced), headings and hard line breaks (two spaces at a line's end) stay. No line ends within short
`code`.
"""
import pathlib
import re
import sys
import textwrap

COLUMNS = 100
ITEM = re.compile(r"^(\s*)([-*] |\d+\. )?")
CODE = re.compile(r"`[^`]+`")
LONGEST_KEPT = 60  # characters of code that no line ends in
KEPT = "\0"  # a space that no line ends at
STARTS_PARAGRAPH = re.compile(r"^\s*([-*] |\d+\. )")


def write(path, text):
    pathlib.Path(path).write_text(wrap(text))


def wrap(text):
    """The text with its prose wrapped. Wrapping twice changes nothing."""
    done, paragraph, fenced = [], [], False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        is_prose = not (fenced or fence or not line.strip() or
                        line.startswith(("|", "    ", "\t", "<", "#", "!")))
        if not is_prose or STARTS_PARAGRAPH.match(line):
            done += wrapped(paragraph)
            paragraph = []
        if not is_prose:
            done.append(line)
            continue
        paragraph.append(line)
        if line.endswith("  "):
            done += wrapped(paragraph)
            paragraph = []
    return "\n".join(done + wrapped(paragraph))


def wrapped(paragraph):
    if all(len(line) <= COLUMNS for line in paragraph):
        return paragraph
    indent, mark = ITEM.match(paragraph[0]).groups()
    mark = mark or ""
    words = " ".join(line.strip() for line in paragraph)[len(mark):]
    words = CODE.sub(lambda code: code.group(0).replace(" ", KEPT)
                     if len(code.group(0)) <= LONGEST_KEPT else code.group(0), words)
    lines = textwrap.wrap(words, COLUMNS, initial_indent=indent + mark,
                          subsequent_indent=indent + " " * len(mark),
                          break_long_words=False, break_on_hyphens=False)
    # A line that begins like an item or a heading would become one.
    for index in range(1, len(lines)):
        if re.match(r"^\s*([-*+#>|] |[-+*]$|\d+[.)] |\|)", lines[index]):
            first, _, rest = lines[index].strip().partition(" ")
            moved = lines[index - 1] + " " + first
            lines[index - 1], lines[index] = moved, indent + " " * len(mark) + rest
    hard_break = "  " if paragraph[-1].endswith("  ") else ""
    lines = [line.replace(KEPT, " ") for line in lines if line.strip()]
    return lines[:-1] + [lines[-1] + hard_break]


def self_check():
    long = "word " * 30
    assert max(map(len, wrap(long).split("\n"))) <= COLUMNS
    for kept in ("| " + long + "|", "    " + long, "# " + long, "a\nb", "```\n" + long + "\n```"):
        assert wrap(kept) == kept, kept
    assert wrap("- " + long).split("\n")[1].startswith("  word")
    assert wrap(long.strip() + "  \nnext").split("\n")[-2].endswith("word  ")
    assert "`a b c`" in wrap("word " * 19 + "`a b c` word word")
    assert wrap(wrap(long + "- x " + long)) == wrap(long + "- x " + long)


def main():
    self_check()
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        write(path, path.read_text())


if __name__ == "__main__":
    main()
