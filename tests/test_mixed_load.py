"""The mixed load in short, and that it would notice a wrong text."""
from mixed_load import run_load


def test_mixed_load(stories):
    assert run_load(seconds=3, clients=12, seed=2) == []


def test_mixed_load_notices_a_wrong_text(stories):
    def spoil(expected):
        spoiled = next(request for request in expected if '"max_tokens": 60' in request)
        expected[spoiled] = [text + "!" for text in expected[spoiled]]

    errors = run_load(seconds=30, clients=12, seed=3, spoil=spoil)
    assert errors and "gave" in errors[0] and "!" in errors[0]
