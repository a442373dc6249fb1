#!/usr/bin/env python3
"""Fails on a file that breaks a rule of the house which a formatter cannot mend.

    python3 tools/check_style.py [REPOSITORY]
    python3 tools/check_style.py --exceptions [REPOSITORY]    the exceptions, with what they allow

Sources are the .h, .cc, .inc and .cu files of include/, src/, bench/, fuzz/ and tests/.
- Files have at most 600 lines, lines at most 100 columns, functions at most 70 lines.
- Headers start with `#pragma once` and open no namespace to their readers.
- Nothing is left as a note to do later.
- A class has at most 25 data members and 40 functions. A struct without functions is a record: it
  may have as many members as it has values. Inherited members do not count.
- The functions of a class are defined in one .cc file.
- A folder of include/, src/ or tests/testing/ has at most 40 files.
- No sentence of a comment starts with Who, What, Whom, Of, Where, So many or Such; questions may.
- Pages keep the rules of tools/check_docs.py. Sources name only pages that exist.
EXCEPTIONS names what may break a rule, how far, and why.

The length of a function is read off the layout that clang-format gives: from a `}` alone on its line
(types and namespaces end otherwise) up to the nearest line that is indented no deeper.
"""
import collections
import pathlib
import re
import sys

import check_docs
import cpp_classes
import pages

MAX_FILE_LINES = 600
MAX_LINE_COLUMNS = 100
MAX_FUNCTION_LINES = 70
MAX_MEMBERS = 25
MAX_METHODS = 40
MAX_FOLDER_FILES = 40
FOLDERS = ("include", "src", "bench", "fuzz", "tests")
ROOMS = ("include", "src", "tests/testing")
SUFFIXES = (".h", ".cc", ".inc", ".cu")
PAGES = ("*.md", "docs/**/*.md", "bench/**/*.md", "devices/*.md", "models/*/*.md")
PAGE_NAMED = re.compile(r'\b(docs/[\w/-]+\.md)\b(?:, "([^"]+)")?')
LATER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
USING_NAMESPACE = re.compile(r"^\s*using\s+namespace\b")
CLOSES = re.compile(r"^( *)\}$")

# (rule, what, how much is allowed, why). `starters` and `columns` name the beginning of a path and the
# number of places below it, `files` the number of .cc files. Entries only shrink.
EXCEPTIONS = [
    ("members", "ModelConfig", 31, "the fields of config.json, with a few values derived from them"),
    ("methods", "ExprParser", 51, "one function a rule of the grammar"),
]


def long_functions(lines):
    """(first line's number, length) of each function that is too long; a block in one counts as it."""
    found = []
    for end, line in enumerate(lines):
        closes = CLOSES.match(line)
        if not closes:
            continue
        column = len(closes.group(1))
        start = end - 1
        while start > 0 and not starts_block(lines[start], column):
            start -= 1
        if end - start + 1 > MAX_FUNCTION_LINES:
            found = [f for f in found if f[0] < start] + [(start, end)]
    return [(start + 1, end - start + 1) for start, end in found]


def starts_block(line, column):
    """Whether a line above a `}` in this column is the first of what the brace closes."""
    text = line.lstrip()
    return text != "" and not text.startswith(("#", "}")) and len(line) - len(text) <= column


def check_text(name, text):
    """What is wrong with a file of this name and text, as lines for the reader."""
    lines = text.splitlines()
    errors = []
    if len(lines) > MAX_FILE_LINES:
        errors.append(f"{name}: {len(lines)} lines; at most {MAX_FILE_LINES}")
    is_header = name.endswith(".h")
    if is_header and "#pragma once" not in lines:
        errors.append(f"{name}: a header without #pragma once")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE_COLUMNS:
            errors.append(f"{name}:{number}: {len(line)} columns; at most {MAX_LINE_COLUMNS}")
        if LATER.search(line):
            errors.append(f"{name}:{number}: a note to do later: do it, or open an issue")
        if is_header and USING_NAMESPACE.match(line):
            errors.append(f"{name}:{number}: using namespace in a header")
    for number, length in long_functions(lines):
        errors.append(f"{name}:{number}: a function of {length} lines; at most {MAX_FUNCTION_LINES}")
    return errors


def comments(text):
    """(first line's number, text) of each comment; lines whose // are below each other are one."""
    found, last = [], (-1, -1)
    for number, line in enumerate(text.splitlines(), 1):
        whole = re.match(r"^(\s*)//+ ?(.*)$", line)
        behind = None if whole else re.search(r"[;{},(]\s+(// )(.*)$", line)
        column = len(whole.group(1)) if whole else behind.start(1) if behind else -1
        said = (whole.group(2) if whole else behind.group(2) if behind else "").strip()
        if column < 0 or not said:
            last = (-1, -1)
        elif whole and last == (number - 1, column):
            found[-1][1] += " " + said
            last = (number, column)
        else:
            found.append([number, said])
            last = (number, column)
    return found


def check_comments(name, text):
    return [f"{name}:{number}: a comment's sentence that starts with {starter}"
            for number, said in comments(text) for starter in check_docs.starts_badly(said)]


def check_pages_named(name, text, pages_by_name):
    """Comments name pages, and sections of them, that exist. `pages_by_name`: name -> text."""
    errors = []
    for number, said in comments(text):
        for page, section in PAGE_NAMED.findall(said):
            if page not in pages_by_name:
                errors.append(f"{name}:{number}: no page {page}")
            elif section and f"# {section}\n" not in pages_by_name[page]:
                errors.append(f"{name}:{number}: {page} has no section {section}")
    return errors


def check_classes(sources):
    """(rule, class, how much, error) of each broken rule about classes. `sources`: name -> text."""
    found = []
    files = collections.defaultdict(set)
    for name, text in sources.items():
        own = set()
        for c in cpp_classes.classes(text):
            own.add(c.name)
            if c.members > MAX_MEMBERS and c.methods > 0:
                found.append(("members", c.name, c.members, f"{name}:{c.line}: {c.name} has "
                              f"{c.members} data members; at most {MAX_MEMBERS}"))
            if c.methods > MAX_METHODS:
                found.append(("methods", c.name, c.methods, f"{name}:{c.line}: {c.name} has "
                              f"{c.methods} functions; at most {MAX_METHODS}"))
        if name.endswith(".cc"):
            for implemented in cpp_classes.implemented(text) - own:
                files[implemented].add(name)
    for implemented, names in sorted(files.items()):
        if len(names) > 1:
            found.append(("files", implemented, len(names), f"{min(names)}: {implemented} is "
                          f"implemented in {len(names)} files: {', '.join(sorted(names))}"))
    return found


def check_folders(names):
    """The same of each folder that holds too many of the files `names`."""
    sizes = collections.Counter(name.rpartition("/")[0] for name in names)
    return [("folder", folder, size, f"{folder}: {size} files; at most {MAX_FOLDER_FILES}")
            for folder, size in sorted(sizes.items()) if size > MAX_FOLDER_FILES]


def without_excepted(found, exceptions):
    """The errors that no exception allows. One about places allows so many below its path."""
    counts = collections.Counter()
    errors = []
    for rule, what, size, error in found:
        allowed = False
        for e_rule, e_what, e_size, _ in exceptions:
            if e_rule == rule and size is None and what.startswith(e_what):
                counts[e_rule, e_what] += 1
                allowed = counts[e_rule, e_what] <= e_size
            elif e_rule == rule and e_what == what and size is not None:
                allowed = size <= e_size
        if not allowed:
            errors.append(error)
    return errors


def check_repository(root):
    """(errors about files alone, [(rule, what, size, error)] about what can be excepted, files)."""
    errors, found, sources = [], [], {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES:
                sources[path.relative_to(root).as_posix()] = path.read_text()
    page_paths = {p.relative_to(root).as_posix() for pattern in PAGES for p in root.glob(pattern)}
    pages_by_name = {name: (root / name).read_text() for name in sorted(page_paths)}
    for name, text in sources.items():
        errors += check_text(name, text)
        found += [("starters", name, None, error) for error in check_comments(name, text)]
        errors += check_pages_named(name, text, pages_by_name)
    found += check_classes(sources)
    found += check_folders(p.relative_to(root).as_posix() for room in ROOMS
                           for p in (root / room).rglob("*") if p.is_file())
    for name, text in pages_by_name.items():
        found += [(rule, name, None, error) for rule, error in check_docs.check_page(
            name, text, lambda path: (root / path).exists(), lambda path: (root / path).read_text())]
    return errors, found, len(sources) + len(pages_by_name)


def print_exceptions(found):
    """Each exception beside what it is needed for now; 0: it can go."""
    for rule, what, size, why in EXCEPTIONS:
        now = [f for f in found if f[0] == rule and (f[1].startswith(what) if f[2] is None else f[1] == what)]
        used = sum(1 if f[2] is None else f[2] for f in now)
        print(f"{rule} {what}: {used} of {size}: {why}")


def self_check():
    """Each rule finds what it is for, and lets the largest allowed thing pass."""
    cpp_classes.self_check()
    check_docs.self_check()
    pages.self_check()
    head = "#pragma once\n"
    body = "  x();\n"

    def function(lines):
        return "void F(int a,\n       int b) {\n" + body * (lines - 3) + "}\n"

    def method(lines):
        return "class C {\n  void F() {\n" + ("  " + body) * (lines - 2) + "  }\n};\n"

    good = [head, head + "x\n" * 599, head + "x" * 100, head + function(70), head + method(70),
            head + "struct S {\n" + body * 200 + "};\n",
            head + "namespace a {\n" + body * 200 + "}  // namespace a\n"]
    bad = ["", head + "x\n" * 600, head + "x" * 101, head + function(71), head + method(71),
           head + "// TO" + "DO: more\n", head + "using namespace std;\n"]
    for text in good:
        assert not check_text("a.h", text), (text[:80], check_text("a.h", text))
    for text in bad:
        assert len(check_text("a.h", text)) == 1, (text[:80], check_text("a.h", text))
    for text in ("// It says what\n// Offers are.\n", "// Where is it?\n", "int x;  // what it is\n"):
        assert not check_comments("a.h", text), text
    for text in ("// What is it.\n", "// It is.\n// Of two one.\n", "  int x;  // Such\n"):
        assert len(check_comments("a.h", text)) == 1, (text, comments(text))
    page = {"docs/a.md": "# A\n## One part\n"}
    assert not check_pages_named("a.h", '// See docs/a.md, "One\n// part".\n', page)
    assert len(check_pages_named("a.h", '// See docs/a.md, "Two". See docs/b.md.\n', page)) == 2
    check_self_classes()


def check_self_classes():
    def of(members, methods):
        return {"a.h": "class C {\n" + "  int x;\n" * members + "  void F();\n" * methods + "};\n"}

    assert not check_classes(of(25, 40)) and not check_classes(of(99, 0))
    assert len(check_classes(of(26, 1))) == 1 and len(check_classes(of(1, 41))) == 1
    one, other = {"a.cc": "void C::F() {\n}\n"}, {"a_more.cc": "int C::G() {\n}\n"}
    assert not check_classes(one) and len(check_classes({**one, **other})) == 1
    files = [f"src/a/{i}.h" for i in range(40)]
    assert not check_folders(files) and len(check_folders(files + ["src/a/x"])) == 1
    found = [("starters", "src/a/b.h", None, "1"), ("starters", "src/a/c.h", None, "2"),
             ("members", "C", 30, "3")]
    assert len(without_excepted(found, [])) == 3
    assert without_excepted(found, [("starters", "src/a/", 1, "")]) == ["2", "3"]
    assert without_excepted(found, [("members", "C", 29, "")]) == ["1", "2", "3"]
    assert without_excepted(found, [("members", "C", 30, "")]) == ["1", "2"]


def main():
    self_check()
    arguments = [a for a in sys.argv[1:] if a != "--exceptions"]
    errors, found, checked = check_repository(pathlib.Path(arguments[0] if arguments else "."))
    if "--exceptions" in sys.argv:
        print_exceptions(found)
        return 0
    errors += without_excepted(found, EXCEPTIONS)
    print("\n".join(errors) or f"{checked} files keep the rules")
    return 1 if errors or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
