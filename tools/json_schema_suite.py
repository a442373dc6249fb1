"""Measures structured outputs on schemas with valid and invalid texts:

    python3 tools/json_schema_suite.py suite TESTS MODEL_DIR [--json OUT]
    python3 tools/json_schema_suite.py maskbench DATA MODEL_DIR [--json OUT] [--sample N]

TESTS: the folder of one draft of the JSON-Schema-Test-Suite (tests/draft2020-12). DATA: MaskBench's
data/, one file a schema. MODEL_DIR: a model with a tokenizer. For each schema the grammar that
/v1/chat/completions would use is compiled, and each text is walked through its masks token by token.

A schema *passes* if it compiles, every valid text is accepted and no invalid one is. Otherwise it is
counted once, as the first of: timeout (a minute), refused (does not compile, with a reason), invalid accepted,
valid refused.
Valid texts are also walked with the members of their objects in the order of the schema's properties,
since a grammar writes them in that order: then they count as accepted.
"""
import argparse
import collections
import json
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHECK = ROOT / "build/release/bin/grammar_check"
OUTCOMES = ("passes", "refused", "timeout", "invalid accepted", "valid refused")
TIMEOUT_S = 60


def suite_cases(folder):
    """(category, schema, [(value, valid)]) of the required tests."""
    for path in sorted(folder.glob("*.json")):
        for group in json.loads(path.read_text()):
            yield path.stem, group["schema"], [(test["data"], test["valid"]) for test in group["tests"]]


def maskbench_cases(folder, sample):
    paths = sorted(folder.glob("*.json"))
    if sample and sample < len(paths):
        paths = sorted(random.Random(7).sample(paths, sample))
    for path in paths:
        entry = json.loads(path.read_text())
        tests = [(test["data"], test["valid"]) for test in entry.get("tests", [])]
        yield re.sub(r"(_\d+|---.*)$", "", path.stem), entry["schema"], tests


def in_schema_order(value, schema):
    """`value` with the members that `schema` lists first, in its order."""
    if isinstance(value, list):
        items = schema.get("items") if isinstance(schema, dict) else None
        return [in_schema_order(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    listed = schema.get("properties") if isinstance(schema, dict) else None
    listed = listed if isinstance(listed, dict) else {}
    names = [name for name in listed if name in value] + [name for name in value if name not in listed]
    return {name: in_schema_order(value[name], listed.get(name)) for name in names}


class Checker:
    """grammar_check, begun anew after a schema that takes too long."""

    def __init__(self, model_dir):
        self.model_dir, self.process = model_dir, None

    def check(self, line):
        """The answer to a line; None after a timeout."""
        if self.process is None:
            self.process = subprocess.Popen([CHECK, self.model_dir], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            text=True)
        watch = threading.Timer(TIMEOUT_S, self.process.kill)
        watch.start()
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        watch.cancel()
        if answer:
            return json.loads(answer)
        if self.process.wait() != -signal.SIGKILL:
            raise RuntimeError(f"grammar_check ended with {self.process.returncode} at {json.dumps(line)[:2000]}")
        self.process = None
        return None

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def measure(cases, model_dir):
    """(outcomes by category, reasons of refusals, all times of compiling and of masks)."""
    outcomes = collections.defaultdict(collections.Counter)
    reasons, compile_us, mask_us = collections.Counter(), [], []
    checker = Checker(model_dir)
    for category, schema, tests in cases:
        texts = []
        for value, _ in tests:
            texts += [json.dumps(value, ensure_ascii=False),
                      json.dumps(in_schema_order(value, schema), ensure_ascii=False)]
        answer = checker.check({"schema": json.dumps(schema, ensure_ascii=False), "texts": texts})
        if answer is None:
            outcomes[category]["timeout"] += 1
            continue
        compile_us.append(answer["compile_us"])
        mask_us += answer["mask_us"]
        if answer["error"] is not None:
            outcomes[category]["refused"] += 1
            reasons[answer["error"][:100]] += 1
            continue
        accepted = [answer["accepted"][2 * i] or answer["accepted"][2 * i + 1] for i in range(len(tests))]
        if any(taken and not valid for taken, (_, valid) in zip(accepted, tests)):
            outcomes[category]["invalid accepted"] += 1
        elif any(valid and not taken for taken, (_, valid) in zip(accepted, tests)):
            outcomes[category]["valid refused"] += 1
        else:
            outcomes[category]["passes"] += 1
    checker.close()
    return outcomes, reasons, compile_us, mask_us


def times(values):
    if not values:
        return {}
    ranked = sorted(values)
    at = lambda share: ranked[min(len(ranked) - 1, int(share * len(ranked)))]
    return {"mean": statistics.fmean(ranked), "p50": at(.5), "p90": at(.9), "p99": at(.99), "max": ranked[-1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=["suite", "maskbench"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("model_dir")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--sample", type=int, default=0, help="so many schemas of MaskBench, the same in every run")
    options = parser.parse_args()
    cases = suite_cases(options.folder) if options.kind == "suite" else maskbench_cases(options.folder, options.sample)
    outcomes, reasons, compile_us, mask_us = measure(cases, options.model_dir)
    total = sum(outcomes.values(), collections.Counter())
    if not total:
        sys.exit(f"no schemas in {options.folder}")
    print("| category | " + " | ".join(OUTCOMES) + " |\n|---|" + "---:|" * len(OUTCOMES))
    for category in sorted(outcomes):
        print(f"| {category} | " + " | ".join(str(outcomes[category][name]) for name in OUTCOMES) + " |")
    print("| all | " + " | ".join(str(total[name]) for name in OUTCOMES) + " |")
    result = {"kind": options.kind, "schemas": sum(total.values()), "total": total, "categories": outcomes,
              "refusals": reasons.most_common(), "compile_us": times(compile_us), "mask_us": times(mask_us),
              "tokens": len(mask_us)}
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
