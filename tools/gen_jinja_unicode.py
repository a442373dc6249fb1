#!/usr/bin/env python3
"""Write src/text/jinja/generated/unicode_tables.h from this Python's own Unicode tables.

    python3 tools/gen_jinja_unicode.py

What chat templates do to text (upper, lower, title, printing lists) follows Python's tables.
"""
import pathlib
import unicodedata

OUT = pathlib.Path(__file__).resolve().parent.parent / "src/text/jinja/generated/unicode_tables.h"
CODE_POINTS = [c for c in range(0x80, 0x110000) if not 0xD800 <= c < 0xE000]


def mapping_runs(change):
    """[first, last, stride, delta] of characters that map to another one, by a common distance."""
    runs = []
    for c in CODE_POINTS:
        mapped = change(chr(c))
        if len(mapped) != 1 or mapped == chr(c):
            continue
        delta = ord(mapped) - c
        last = runs[-1] if runs else None
        if last and last[3] == delta and (c - last[1] == last[2] or
                                          (last[0] == last[1] and c - last[1] <= 2)):
            last[2] = c - last[1]
            last[1] = c
        else:
            runs.append([c, c, 1, delta])
    return runs


def class_runs(holds):
    runs = []
    for c in CODE_POINTS:
        if not holds(chr(c)):
            continue
        if runs and c - runs[-1][1] == 1:
            runs[-1][1] = c
        else:
            runs.append([c, c])
    return runs


def expansions(change):
    return [[c, change(chr(c))] for c in CODE_POINTS if len(change(chr(c))) > 1]


def entries(rows):
    cells, line, lines = [], "    ", []
    for row in rows:
        cells.append("{" + ", ".join(f"0x{x:X}" if i < 2 else str(x) for i, x in enumerate(row)) + "},")
    for cell in cells:
        if len(line) + len(cell) + 1 > 100:
            lines.append(line.rstrip())
            line = "    "
        line += cell + " "
    return "\n".join(lines + [line.rstrip()])


def expansion_entries(rows):
    def literal(text):
        return '"' + "".join(f"\\x{b:02x}" for b in text.encode()) + '"'
    cells = [[c, literal(text)] for c, text in rows]
    line, lines = "    ", []
    for c, text in cells:
        cell = f"{{0x{c:X}, {text}}},"
        if len(line) + len(cell) + 1 > 100:
            lines.append(line.rstrip())
            line = "    "
        line += cell + " "
    return "\n".join(lines + [line.rstrip()])


def table(kind, name, comment, body):
    return f"// {comment}\ninline constexpr {kind} {name}[] = {{\n{body}\n}};\n"


def main():
    parts = [
        "#pragma once",
        "",
        "// Made by tools/gen_jinja_unicode.py. Do not edit. Characters of U+0080 and above.",
        "",
        '#include "text/jinja/unicode.h"',
        "",
        "namespace skein::jinja {",
        "",
        f"// Unicode {unicodedata.unidata_version}",
        "",
        "// clang-format off",
        table("CaseRun", "kToUpper", "str.upper, where it gives one character.",
              entries(mapping_runs(str.upper))),
        table("CaseRun", "kToLower", "str.lower, where it gives one character.",
              entries(mapping_runs(str.lower))),
        table("CaseExpansion", "kUpperExpansions", "str.upper, where it gives several (UTF-8).",
              expansion_entries(expansions(str.upper))),
        table("CaseExpansion", "kLowerExpansions", "str.lower, where it gives several (UTF-8).",
              expansion_entries(expansions(str.lower))),
        table("CodePointRun", "kNotPrintable", "Not str.isprintable.",
              entries(class_runs(lambda c: not c.isprintable()))),
        "// clang-format on",
        "",
        "}  // namespace skein::jinja",
    ]
    OUT.write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
