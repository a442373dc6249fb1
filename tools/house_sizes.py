#!/usr/bin/env python3
"""Counts the sizes of the house at two revisions and writes docs/results/house.md.

    python3 tools/house_sizes.py [--before REV] [--after REV]    writes the page
    python3 tools/house_sizes.py --revision REV                  prints one revision's figures
    python3 tools/house_sizes.py --sample N --seed S             prints N random comments of src/

Reads revisions by `git archive`, without a checkout. Classes and comments are counted as
tools/check_style.py counts them. What a reader found in a sample is kept in
docs/results/data/house-comments.json.
"""
import argparse
import collections
import io
import json
import pathlib
import random
import re
import subprocess
import tarfile

import cpp_classes
import pages
from charts import table
from check_docs import starts_badly
from check_style import FOLDERS, SUFFIXES, comments

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/results/house.md"
READ = ROOT / "docs/results/data/house-comments.json"
BEFORE = "a34ede5"  # the tree that the division into parts began with
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
JSON = "nlohmann/json.hpp"


def read_revision(revision):
    """name -> text of the C++ sources of a revision."""
    there = subprocess.run(["git", "-C", ROOT, "ls-tree", "--name-only", revision, *FOLDERS], check=True, capture_output=True,
                           text=True).stdout.split()
    archive = subprocess.run(["git", "-C", ROOT, "archive", revision, *there], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {m.name: tar.extractfile(m).read().decode() for m in tar
                if m.isfile() and m.name.endswith(SUFFIXES)}


def classes_of(sources):
    """(class, file) of every class; files of a class are the .cc that implement it."""
    found, files = [], collections.defaultdict(set)
    for name, text in sources.items():
        own = cpp_classes.classes(text)
        found += [(c, name) for c in own]
        if name.endswith(".cc"):
            for implemented in cpp_classes.implemented(text) - {c.name for c in own}:
                files[implemented].add(name)
    return found, files


def reach(sources, target):
    """The .cc files that include `target`, directly or through headers of the repository."""
    def resolve(name, path):
        bases = ("src/", "include/", "tests/", "bench/", name.rpartition("/")[0] + "/")
        return next((base + path for base in bases if base + path in sources), None)

    edges = {name: [(path, resolve(name, path)) for path in INCLUDE.findall(text)]
             for name, text in sources.items()}
    known = {}

    def reaches(name):
        if name not in known:
            known[name] = False  # as long as it is being looked at
            known[name] = any(path == target or (file and reaches(file)) for path, file in edges[name])
        return known[name]

    return [name for name in sources if name.endswith(".cc") and reaches(name)]


def presets(sources):
    """(names by which a preset can be asked for, different ones among them)."""
    for text in sources.values():
        table_of = re.search(r"\bkPresets\b[^;{]*?=?\s*(?:std::to_array<\w+>\()?\{(.*?)\n\}\)?\}?;", text, re.S)
        if not table_of or '"request-level"' not in table_of.group(1):
            continue
        entries = re.findall(r'\{\s*(?:\.name = )?"([\w-]+)",?(.*?)\}(?=,\n|,?\s*$|\}|,\s*\{|,\s*//)',
                             table_of.group(1), re.S)
        aliases = re.search(r"\bkPresetAliases\b[^;]*?\{(.*?)\n\}\)?\}?;", text, re.S)
        named = len(re.findall(r'\{"', aliases.group(1))) if aliases else 0
        return len(entries) + named, len({re.sub(r"\s+", "", rest) for _, rest in entries})
    return 0, 0


def figures(revision):
    sources = read_revision(revision)
    found, files = classes_of(sources)
    folders = collections.Counter(name.rpartition("/")[0] for name in sources if name.startswith("src/"))
    is_test = lambda name: name.endswith("_test.cc")
    sched = {name: text.count("\n") for name, text in sources.items()
             if name.startswith("src/sched/") and not is_test(name)}
    largest_folder, most_files = folders.most_common(1)[0]
    classes = [(c, name) for c, name in found if c.methods > 0]
    by_members = max(classes, key=lambda found: found[0].members)[0]
    by_methods = max(classes, key=lambda found: found[0].methods)[0]
    most_divided = max(files, key=lambda name: len(files[name]))
    largest = {name: next((c for c, _ in classes if c.name == name), cpp_classes.CppClass(name, 0, 0, 0))
               for name in ("Scheduler", "ForwardPass")}
    scheduler = files["Scheduler"]
    asked, different = presets(sources)
    bad = sum(len(starts_badly(said)) for text in sources.values() for _, said in comments(text))
    units = [name for name in sources if name.endswith(".cc")]
    return {
        "folders below src/": len(folders),
        "files in the largest folder": f"{most_files} ({largest_folder})",
        "folders of src/ with more than 40 files": sum(size > 40 for size in folders.values()),
        "most members of a class": f"{by_members.members} ({by_members.name})",
        "most functions of a class": f"{by_methods.methods} ({by_methods.name})",
        "classes with more than 25 members or 40 functions":
            sum(c.members > 25 or c.methods > 40 for c, _ in classes),
        "most .cc files of one class": f"{len(files[most_divided])} ({most_divided})",
        "classes implemented in more than one .cc file": sum(len(names) > 1 for names in files.values()),
        "`Scheduler`: members, functions": f"{largest['Scheduler'].members}, {largest['Scheduler'].methods}",
        "`Scheduler`: lines of its header": sched.get("src/sched/scheduler.h", 0),
        "`Scheduler`: lines of its .cc files": sum(sched[name] for name in scheduler),
        "`ForwardPass`: members, functions": f"{largest['ForwardPass'].members}, {largest['ForwardPass'].methods}",
        "headers of src/sched/: files, lines": count_lines(sched, ".h"),
        "sources of src/sched/ without tests: files, lines": count_lines(sched, ".cc"),
        "names of presets, different presets": f"{asked}, {different}",
        "translation units": len(units),
        "translation units that reach nlohmann/json.hpp": len(reach(sources, JSON)),
        "sentences of comments with a forbidden start": bad,
    }


def count_lines(files, suffix):
    lines = [count for name, count in files.items() if name.endswith(suffix)]
    return f"{len(lines)}, {sum(lines):,}"


def short(revision):
    return subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", revision], check=True,
                          capture_output=True, text=True).stdout.strip()


def write_page(before, after):
    old, new = figures(before), figures(after)
    pages.write(PAGE, "\n".join([
        "# The house", "",
        "Sizes of the sources before and after their division into rooms and parts. "
        f"`tools/house_sizes.py --before {short(before)} --after {short(after)}` counts them and writes this page.", "",
        *table(["", f"before ({short(before)})", f"after ({short(after)})"],
               [[name, old[name], new[name]] for name in old]),
        "- A class counts its own data members and the functions that it declares. Deleted and defaulted functions, "
        "constants and inherited members do not count. Structs without functions are records and do not count.",
        "- A forbidden start is Who, What, Whom, Of, Where, So many or Such where the sentence is no question.",
        "- `tools/check_style.py` holds the limits, `tools/check_style.py --exceptions` prints what may exceed them.", "",
        *readers_part()]))
    print(PAGE)


def print_sample(revision, count, seed):
    """Comments of src/ of at least six words, without generated sources."""
    found = [(name, number, said) for name, text in sorted(read_revision(revision).items())
             if name.startswith("src/") and "/generated/" not in name
             for number, said in comments(text) if len(said.split()) >= 6]
    for name, number, said in random.Random(seed).sample(found, count):
        print(f"{name}:{number}: {said}\n")


def readers_part():
    """The page's lines about the samples that readers have read; the failures of the last."""
    samples = json.loads(READ.read_text())
    lines = ["## Comments read as a stranger", "",
             "`tools/house_sizes.py --sample COUNT --seed SEED --revision REVISION` draws a sample. Fresh readers read each comment once, "
             "beside nothing but the glossary.", "", "| revision | seed | comments | failed, by reader | mended since |", "|---|---:|---:|---|---:|"]
    for read in samples:
        by_reader = ", ".join(map(str, read["failed_by_reader"]))
        lines.append(f"| {read['revision']} | {read['seed']} | {read['count']} | {by_reader} | {read['mended']} of {read['failed']} |")
    last = samples[-1]
    return [*lines, "", f"The comments of the sample at {last['revision']} that failed:", "", "| file | before | now |", "|---|---|---|",
            *(f"| {one['file']} | {one['before']} | {one['now']} |" for one in last["comments"]), ""]


def self_check():
    sources = {"src/a.h": '#include "b.h"\n', "src/b.h": f"#include <{JSON}>\n", "src/a.cc": '#include "a.h"\n',
               "src/c.cc": "#include <map>\n"}
    assert reach(sources, JSON) == ["src/a.cc"]
    listed = 'constexpr std::array<Preset, 3> kPresets = {{\n    {"request-level", A::kB},\n    {"b", A::kC},\n' \
             '    {.name = "c",\n     .x = 1},\n    {"d", A::kC},\n}};\n'
    assert presets({"x.cc": listed}) == (4, 3), presets({"x.cc": listed})


def main():
    self_check()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", default=BEFORE)
    parser.add_argument("--after", default="HEAD")
    parser.add_argument("--revision")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.sample:
        print_sample(args.revision or "HEAD", args.sample, args.seed)
    elif args.revision:
        print(json.dumps(figures(args.revision), indent=1))
    else:
        write_page(args.before, args.after)


if __name__ == "__main__":
    main()
