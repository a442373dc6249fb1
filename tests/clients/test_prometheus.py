"""A real Prometheus reads the server's metrics: its linter finds nothing to say about Skein's own names, and
each query of the dashboard (deploy/grafana.json) finds samples."""
import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

from skein_server import ROOT, SkeinServer

DASHBOARD = ROOT / "deploy/grafana.json"


def post(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def needed_program(name):
    path = shutil.which(name)
    assert path, f"no {name}: run scripts/setup tests"
    return path


def load(server, seconds=0):
    """Decodes, reads with deadlines that are met, and prompts that share a beginning."""
    end = time.monotonic() + seconds
    while True:
        for number in range(3):
            post(server, "/v1/completions", {"prompt": f"{'Once upon a time ' * 20}{number}", "max_tokens": 12,
                                             "slo_ttft_ms": 10000, "temperature": 0})
            post(server, "/v1/completions", {"prompt": f"{'The dog ' * 30}{number}", "max_tokens": 1,
                                             "slo_ttft_ms": 10000})
        if time.monotonic() >= end:
            return


@pytest.fixture(scope="module")
def server(stories):
    with SkeinServer(stories) as running:
        yield running


@pytest.fixture(scope="module")
def prometheus(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    host = server.url.removeprefix("http://")
    (folder / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "skein", "static_configs": [{"targets": [host]}]}]}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [needed_program("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
         f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"])
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def query(prometheus, expression):
    url = prometheus + "/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.loads(answer.read())["data"]["result"]


def test_the_linter_finds_nothing_in_own_names(server):
    load(server)
    with urllib.request.urlopen(server.url + "/metrics", timeout=10) as answer:
        metrics = answer.read()
    lint = subprocess.run([needed_program("promtool"), "check", "metrics"], input=metrics, capture_output=True,
                          timeout=60)
    told = (lint.stdout + lint.stderr).decode().splitlines()
    assert [line for line in told if not line.startswith("vllm:")] == []


def expressions():
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$__rate_interval", "20s").replace("$model", ".*")


def test_every_query_of_the_dashboard_finds_samples(server, prometheus):
    missing = dict((expression, title) for title, expression in expressions())
    assert len(missing) > 20
    deadline = time.monotonic() + 60
    while missing and time.monotonic() < deadline:
        load(server, seconds=2)
        for expression in list(missing):
            try:
                result = query(prometheus, expression)
            except OSError:  # it starts, or the expression is wrong: the last round tells
                continue
            if any(sample["value"][1] != "NaN" for sample in result):
                del missing[expression]
    assert missing == {}
