#!/usr/bin/env python3
"""Fails on an #include that the table below does not allow (docs/ARCHITECTURE.md, "The parts").

    python3 tools/check_includes.py [REPOSITORY]

Only direct includes count. A folder may always include itself; tests (`*_test.cc`) may also include
`testing/`. `kernels` as an allowance means its interface: files directly in kernels/, not below. The
table of that page must be this one.
"""
import pathlib
import re
import sys

ALLOWED = {
    "base": ["skein"],
    "text": ["skein", "base"],
    "io": ["base"],
    "grammar": ["skein", "base"],
    "kernels": ["base"],
    "model": ["base", "io", "kernels"],
    "kv": ["base"],
    "sched": ["skein", "base", "kv"],
    "engine": ["skein", "base", "kv", "sched"],
    "runtime": ["skein", "base", "kernels", "model", "kv", "sched", "engine"],
    "cuda": ["skein", "base", "kernels", "model", "kv", "sched", "engine", "runtime"],
    "sim": ["skein", "base", "kv", "sched", "engine"],
    "server": ["skein", "base", "text", "grammar"],
    "apps": None,  # anything
    "bench": None,
}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def check_file(path, folder, errors):
    allowed = ALLOWED[folder]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        parts = match.group(1).split("/")
        target = parts[0]
        if len(parts) < 2:
            errors.append(f"{path}:{number}: {match.group(1)}: name the folder")
        elif target == folder or allowed is None:
            continue
        elif target == "testing" and path.name.endswith("_test.cc"):
            continue
        elif target not in allowed:
            errors.append(f"{path}:{number}: {folder}/ may not include {target}/")
        elif target == "kernels" and len(parts) > 2:
            errors.append(f"{path}:{number}: {folder}/ may include only the interface of kernels/")


PAGE = "docs/ARCHITECTURE.md"
ROW = re.compile(r"^\| `(\w+)/` \| .* \| ([^|]+) \|$", re.M)


def check_page(text, errors):
    """Holds the page's rows `folder/` | contents | may include against the table."""
    rows = {folder: None if names == "anything" else names for folder, names in ROW.findall(text)}
    for folder in sorted(rows.keys() ^ ALLOWED.keys()):
        errors.append(f"{PAGE}: the table of the parts and the one of check_includes.py differ: {folder}/")
    for folder in sorted(rows.keys() & ALLOWED.keys()):
        named = rows[folder]
        if named is not None:
            named = [name.replace("kernels' interface", "kernels").replace("include", "skein")
                     for name in named.split(", ")]
        if named != ALLOWED[folder]:
            errors.append(f"{PAGE}: {folder}/ may include {rows[folder]}; the check says {ALLOWED[folder]}")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    errors = []
    check_page((root / PAGE).read_text(), errors)
    for path in sorted((root / "include").rglob("*.h")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match and not match.group(1).startswith("skein/"):
                errors.append(f"{path}:{number}: the public face includes only itself")
    checked = 0
    for folder in sorted(p for p in (root / "src").iterdir() if p.is_dir()):
        if folder.name not in ALLOWED:
            errors.append(f"{folder}: not a folder of the design")
            continue
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".h", ".cc", ".inc", ".cu"):
                check_file(path, folder.name, errors)
                checked += 1
    print("\n".join(errors) or f"{checked} files include only what they may")
    return 1 if errors or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
