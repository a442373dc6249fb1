"""Which servers time a few steps at their start: those whose choices depend on what steps take."""
import concurrent.futures
import json
import time
import urllib.error
import urllib.request

import pytest
from skein_server import ROOT, SkeinServer

MODEL = ROOT / "models/default"
PLAIN = ["--scheduling", "prelude"]
# For each a reason of its own, and the presets with several, of which one is the default.
PROFILED = [[], [*PLAIN, "--order", "s-edf"], [*PLAIN, "--order", "srjf"], [*PLAIN, "--order", "srjf-calibrated"],
            [*PLAIN, "--order", "edf", "--batching", "slo-aware"], [*PLAIN, "--batching", "saturate"], [*PLAIN, "--sharing", "preempt-op"],
            ["--scheduling", "flow-prefill"], ["--scheduling", "layer-level"]]
OTHERS = [PLAIN, [*PLAIN, "--order", "edf"], [*PLAIN, "--sharing", "preempt-op", "--decode-steps", "own"]]


def num_predicted(*args):
    """Of four requests, one after the other, those whose time to the first token was held against a prediction."""
    with SkeinServer(MODEL, *args) as server:
        for i in range(4):
            body = {"model": "default", "prompt": [100 + i] * 60, "max_tokens": 1, "slo_ttft_ms": 60_000}
            request = urllib.request.Request(server.url + "/v1/completions", json.dumps(body).encode())
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert answer.status == 200
        metrics = server.metrics()
    labels = 'model_name="default",alone='
    assert metrics[f'skein_ttft_prediction_error_count{{{labels}"false"}}'] == 0
    return metrics[f'skein_ttft_prediction_error_count{{{labels}"true"}}']


@pytest.mark.parametrize("choice", PROFILED, ids=lambda choice: " ".join(choice) or "default")
def test_what_depends_on_the_time_of_steps_is_profiled(choice):
    assert num_predicted(*choice) > 0


@pytest.mark.parametrize("choice", OTHERS, ids=" ".join)
def test_what_does_not_starts_without_a_profile(choice):
    assert num_predicted(*choice) == 0


@pytest.mark.parametrize("refuses", [False, True], ids=["served late", "refused"])
def test_a_request_that_misses_its_deadline(refuses):
    """The only decode slot is taken for longer than the deadline of the second request."""
    with SkeinServer(MODEL, "--max-num-seqs", "1", *["--refuse-late"][:refuses]) as server:
        def complete(num_tokens, **more):
            body = {"model": "default", "prompt": [100] * 20, "max_tokens": num_tokens, "ignore_eos": True, **more}
            request = urllib.request.Request(server.url + "/v1/completions", json.dumps(body).encode())
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status
            except urllib.error.HTTPError as error:
                return error.code

        with concurrent.futures.ThreadPoolExecutor() as threads:
            first = threads.submit(complete, 400)
            while server.metric("vllm:num_requests_running") == 0 and not first.done():
                time.sleep(0.005)
            second = threads.submit(complete, 4, slo_ttft_ms=1)
            assert first.result() == 200
            assert second.result() == (429 if refuses else 200)
