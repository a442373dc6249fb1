"""scripts/bench_encoders writes a page of what it has stored: here of figures made up."""
import importlib.machinery
import importlib.util
import json
import sys

import pytest
from skein_server import ROOT

RATES = {"short texts, one at a time": 100.0, "long texts, one at a time": 10.0, "8 long texts in a request": 12.0, "32 long texts in a request": 14.0}


@pytest.fixture
def script(monkeypatch, tmp_path):
    """scripts/bench_encoders as a module that keeps its page in a folder of its own."""
    loader = importlib.machinery.SourceFileLoader("bench_encoders", str(ROOT / "scripts/bench_encoders"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_encoders", loader))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def engine(script, speed, load_s, mib, distance=0.0):
    """Two rounds; the second is faster by a half."""
    return {**{point: [rate * speed, rate * speed * 1.5] for point, rate in RATES.items()}, script.LOAD: [load_s], script.START: [load_s + 1],
            script.MEMORY: [mib], script.IMPORTS: [mib / 2], "distance": distance}


def page(script, engines, skipped, notes=None):
    part = {"command": "scripts/bench_encoders --peers VENV", "date": "2026-01-01", "rounds": 2, "machine": "a machine", "skipped": skipped,
            "notes": notes or {}, "engines": engines}
    (script.RESULTS / "data").mkdir()
    (script.RESULTS / "data/encoders.json").write_text(json.dumps({"models": {"minilm": part}}))
    script.write_page("encoders")
    return (script.RESULTS / "encoders.md").read_text()


def test_ratios_are_of_the_same_precision(script):
    engines = {"torch f32": engine(script, 1, 2.0, 800), "onnx f32": engine(script, 1.5, 0.5, 1000, 2e-7), "skein f32": engine(script, 2, 1.0, 200, 1e-6),
               "skein int8": engine(script, 3, 1.0, 100, 3e-3), "onnx int8": engine(script, 2, 0.5, 900, 9e-3)}
    text = page(script, engines, {}, {"torch f32": "attention by sdpa (torch 1)"})
    assert "| texts/s | skein f32 | torch f32 | onnx f32 | skein / torch | skein / onnx |" in text
    assert "| short texts, one at a time | 250.0 | 125.0 | 187.5 | 2.00 | 1.33 |" in text
    assert "| memory, MiB | 200 | 800 | 1000 | 4.00 | 5.00 |" in text
    assert "| distance | 1.0e-06 | 0.0e+00 | 2.0e-07 |  |  |" in text
    assert "| f32: never slower than an engine (ratio 1) | 8 of 8; least 1.33 (minilm, short texts, one at a time, onnx f32) | reached |" in text
    assert "| f32: 1.5 times the best engine (ratio 1.5) | 0 of 4; least 1.33 (minilm, short texts, one at a time) | missed |" in text
    assert "| int8: 1.5 times the best engine (ratio 1.5) | 4 of 4; least 1.50 (minilm, short texts, one at a time) | reached |" in text
    assert "| bf16: never slower than an engine (ratio 1) | - | not measured |" in text
    assert "| loading takes no longer than theirs (ratio 1) | 1 of 3; least 0.50 (minilm, load, s, onnx f32) | missed |" in text
    assert "- torch f32: attention by sdpa (torch 1)." in text


def test_missing_engines_are_named_with_their_reason(script):
    engines = {"torch f32": engine(script, 1, 2.0, 800), "skein int8": engine(script, 3, 1.0, 100)}
    text = page(script, engines, {"onnx int8": "no module onnx", "skein bf16": script.NO_BF16})
    assert "- onnx int8: no module onnx\n" in text and f"- skein bf16: {script.NO_BF16}\n" in text
    assert "| texts/s | torch f32 |" in text and "| texts/s | skein int8 |" in text
    assert "reached" not in text and "missed" not in text


def test_a_processor_without_bf16_skips_it(script, monkeypatch):
    monkeypatch.setattr(script, "best_isa", lambda: "avx2")
    skipped = script.missing_here({"onnx": "no module"})
    assert {name for name in skipped if name.endswith("bf16")} == {"skein bf16", "torch bf16", "openvino bf16"}
    assert skipped["onnx f32"] == skipped["onnx int8"] == "no module" and "skein f32" not in skipped


def test_texts_have_the_lengths_of_the_page(script):
    points = sys.modules["encoder_points"]
    asked = points.texts()
    for _, (kind, batch, count) in script.POINTS.items():
        assert count % batch == 0 and len(asked[kind]) >= count
    assert {len(text.split()) for text in asked["short"]} == {5} and {len(text.split()) for text in asked["long"]} == {80}
    assert len(points.calibration()) == points.CALIBRATION and all(points.calibration())


def test_a_distance_is_that_of_the_directions(script):
    assert script.distance([[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [0.0, 0.5]]) == 0
    assert script.distance([[1.0, 0.0]], [[0.0, 1.0]]) == 1
