"""The rules of the house for pages: called by tools/check_style.py.

Pages are the Markdown files of the repository. Their relative links lead to files, and to headings
where they name one; paths in `backticks` exist; prose has at most 100 columns, tables, commands,
headings, images and lone long words excepted; no sentence starts with a free relative (STARTERS).
"""
import re

MAX_PROSE_COLUMNS = 100
STARTERS = ("Who", "What", "Whom", "Of", "Where", "So many", "Such")
STARTS = re.compile(r"(?:^|(?<=[.!?:]) |(?<=[.!?:]\") |(?<=[.!?:]\) ))(?:%s)\b(?!['’?])" % "|".join(STARTERS))
LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
PATH = re.compile(r"^[\w.-]+(?:/[\w.-]+)+\.(?:md|h|cc|inc|py|json|jsonl|cfg|svg)$")
BULLET = re.compile(r"^\s*(?:[-*] |\d+\. |#+ |> )+")


def starts_badly(sentences):
    """The forbidden starters in this text, whose first word starts a sentence."""
    return [match.group(0).strip() for match in STARTS.finditer(sentences)
            if not asks(sentences, match.end())]


def asks(text, start):
    """Whether the sentence around `start` is a question."""
    end = re.search(r"[.!?]", text[start:])
    return bool(end) and end.group(0) == "?"


def anchors(text):
    """The names by which a page's headings can be linked to, as GitHub makes them."""
    names = set()
    for line in text.splitlines():
        if line.startswith("#"):
            title = re.sub(r"[`*]", "", line.lstrip("#").strip()).lower()
            names.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return names


def prose(text):
    """(number, line) of each line that is neither a table's nor a command's."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("|", "    ", "\t", "<")):
            yield number, line


def paragraphs(text):
    """(number of the first line, text) of each paragraph, bullet and heading."""
    found, last = [], -1
    for number, line in prose(text):
        if not line.strip():
            last = -1
        elif last == number - 1 and not BULLET.match(line):
            found[-1][1] += " " + line.strip()
            last = number
        else:
            found.append([number, BULLET.sub("", line.strip() + " ").strip()])
            last = number if not line.startswith("#") else -1
    return found


def check_page(name, text, exists, page_text):
    """What is wrong with a page. `exists(path)` knows the repository, `page_text(path)` reads."""
    errors = []
    folder = name.rpartition("/")[0]
    for number, line in prose(text):
        if len(line) > MAX_PROSE_COLUMNS and len(line.split()) > 3 and not line.startswith(("#", "!")):
            errors.append(("columns", f"{name}:{number}: {len(line)} columns; at most {MAX_PROSE_COLUMNS}"))
    for number, line in enumerate(text.splitlines(), 1):
        for link in LINK.findall(CODE.sub("", line)):
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", path):
                continue
            target = joined(folder, path) if path else name
            if not exists(target):
                errors.append(("links", f"{name}:{number}: {link} leads nowhere"))
            elif anchor and target.endswith(".md") and anchor not in anchors(page_text(target)):
                errors.append(("links", f"{name}:{number}: {link}: no such heading"))
    for number, line in prose_and_tables(text):
        for path in CODE.findall(line):
            if PATH.match(path) and not any(exists(joined(base, path))
                                            for base in ("", "src", "include", "docs/results", folder)):
                errors.append(("links", f"{name}:{number}: no file {path}"))
    for number, paragraph in paragraphs(text):
        for starter in starts_badly(CODE.sub("x", paragraph)):
            errors.append(("starters", f"{name}:{number}: a sentence that starts with {starter}"))
    return errors


def prose_and_tables(text):
    return [(number, line) for number, line in enumerate(text.splitlines(), 1)
            if not line.startswith("    ")]


def joined(folder, path):
    parts = [p for p in folder.split("/") if p]
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def self_check():
    files = {"docs/a.md": "# The `first` one\n", "src/kv/block.h": ""}
    good = ["[a](docs/a.md) [b](docs/a.md#the-first-one) [c](https://x.org/y) `kv/block.h`\n",
            "x " * 50 + "\n", "| " + "x " * 80 + "|\n", "    " + "x " * 80 + "\n",
            "Where is it? It is here.\n", "It says what\nOffers are.\n"]
    bad = ["[a](b.md)\n", "[a](docs/a.md#second)\n", "`kv/gone.h`\n", "x " * 51 + "\n",
           "- Of two one.\n", "It is. Where two are, one is.\n", "It\nis.\nWhat is there is.\n"]
    for text in good:
        assert not check_page("README.md", text, files.__contains__, files.get), text
    for text in bad:
        assert len(check_page("README.md", text, files.__contains__, files.get)) == 1, text
