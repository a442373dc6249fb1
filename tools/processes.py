"""Facts about processes that benchmarks share: their memory, and which environments have an engine. Needs the standard library
alone, since engines' own environments import it, too."""
import os
import pathlib
import subprocess


def resident_mib(pid="self"):
    """The memory of a process that is resident, files that it has mapped included."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def find_pythons(modules, venvs):
    """({name: the python of the first environment that has its modules}, {name: why none has}); modules: {name: names of modules}."""
    pythons, skipped = {}, {}
    for name, wanted in modules.items():
        reasons = []
        for venv in venvs:
            python = pathlib.Path(venv).absolute() / "bin/python"
            found = subprocess.run([python, "-c", f"import {', '.join(wanted)}"], capture_output=True, text=True)
            if found.returncode == 0:
                pythons[name] = str(python)
                break
            reasons.append(found.stderr.strip().splitlines()[-1])
        else:
            skipped[name] = "; ".join(reasons) or "no environment was given (--peers)"
    return pythons, skipped
