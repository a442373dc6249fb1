"""The training data of models/smollm2-decide: its form, and that no sentence of the tests is among it."""
import json
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import decision_adapter_data as data  # noqa: E402: of tools/, not a package


RUN = 6  # words: so many in a row are no coincidence
SOURCES = ("decision_adapter_groups.txt", "decision_adapter_pairs.py", "decision_adapter_words.py",
           "default_model_words.py")


def runs(text):
    words = re.findall(r"[a-z0-9']+", text.lower())
    return {tuple(words[i:i + RUN]) for i in range(len(words) - RUN + 1)}


def test_questions_of_groups_are_answered_both_ways():
    groups = data.yes_no_groups()
    assert len(groups) >= 200
    for name, questions, texts in groups:
        for i, question in enumerate(questions):
            assert {"y", "n"} <= {marks[i] for _, marks in texts}, (name, question)


def test_no_sentence_of_the_predicates_is_trained_on():
    trained = set().union(*(runs(line) for name in SOURCES
                            for line in (ROOT / "tools" / name).read_text(encoding="utf-8").splitlines()))
    lines = (ROOT / "bench/quality/predicates.jsonl").read_text(encoding="utf-8").splitlines()
    found = {item["input"] for item in map(json.loads, lines) if runs(item["input"]) & trained}
    assert len(lines) > 600
    assert not found


@pytest.mark.parametrize("marks", ["y", "yny", "yx"])
def test_marks_have_to_fit_the_questions(tmp_path, marks):
    path = tmp_path / "groups.txt"
    path.write_text(f"# one\nQ Is it late?\nQ Is it early?\nT {marks} | It is noon.\n")
    with pytest.raises(ValueError, match="It is noon"):
        data.yes_no_groups(path)
