#!/usr/bin/env python3
"""What a build costs, in processor seconds of user time: unlike wall time, nearly the same on a busy machine.

As a compiler launcher it runs the command without a compiler cache and appends a line to a log:
    BUILD_TIMES_LOG=$PWD/times.log cmake --preset release -B build/times \\
        -DCMAKE_CXX_COMPILER_LAUNCHER=$PWD/tools/build_times.py
    BUILD_TIMES_LOG=$PWD/times.log cmake --build build/times
With `report LOG` it sums the log by folder and by kind, as Markdown. With `sample BUILD_DIR N` it
compiles every Nth command of BUILD_DIR/compile_commands.json and prints the same lines as the log.
"""

import collections
import json
import os
import resource
import shlex
import subprocess
import sys


def timed(command, directory=None):
    """Runs one compiler command; returns its exit status and its user and system seconds."""
    env = dict(os.environ, CCACHE_DISABLE="1")
    status = subprocess.run(command, cwd=directory, env=env, check=False).returncode
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return status, usage.ru_utime, usage.ru_stime


def source_of(command):
    return command[command.index("-c") + 1] if "-c" in command else command[-1]


def launch(command):
    status, user, system = timed(command)
    with open(os.environ["BUILD_TIMES_LOG"], "a", encoding="utf-8") as log:
        log.write(f"{user:.2f} {system:.2f} {source_of(command)}\n")
    return status


def sample(build_dir, step):
    with open(os.path.join(build_dir, "compile_commands.json"), encoding="utf-8") as file:
        entries = sorted(json.load(file), key=lambda entry: entry["file"])
    before = (0.0, 0.0)
    for entry in entries[::step]:
        command = shlex.split(entry["command"])
        command[command.index("-o") + 1] = os.devnull
        status, user, system = timed(command, entry["directory"])
        print(f"{user - before[0]:.2f} {system - before[1]:.2f} {entry['file']}", flush=True)
        before = (user, system)
        if status != 0:
            return status
    return 0


def kind_of(path):
    if "cmake_pch" in path:
        return "precompiled header"
    if path.endswith("_test.cc") or "/tests/" in path:
        return "test"
    return "command" if path.endswith("_command.cc") else "other source"


def folder_of(path):
    for root in ("/src/", "/bench/", "/tests/"):
        if root in path:
            rest = path.rsplit(root, 1)[1]
            return rest.split("/")[0] if root == "/src/" else root.strip("/")
    return "build folder"


def report(log):
    sums = {"kind": collections.defaultdict(list), "folder": collections.defaultdict(list)}
    with open(log, encoding="utf-8") as file:
        for line in file:
            user, _, path = line.rstrip("\n").split(" ", 2)
            sums["kind"][kind_of(path)].append(float(user))
            sums["folder"][folder_of(path)].append(float(user))
    for name, groups in sums.items():
        print(f"| {name} | units | user seconds | seconds each |\n|---|---|---|---|")
        for key, values in sorted(groups.items(), key=lambda item: -sum(item[1])):
            total = sum(values)
            print(f"| {key} | {len(values)} | {total:.1f} | {total / len(values):.1f} |")
        print()
    total = sum(sum(values) for values in sums["kind"].values())
    print(f"All: {total:.0f} user seconds, {total / 120:.1f} minutes on two cores.")


def main():
    if sys.argv[1] == "report":
        report(sys.argv[2])
        return 0
    if sys.argv[1] == "sample":
        return sample(sys.argv[2], int(sys.argv[3]))
    return launch(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
