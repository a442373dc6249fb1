"""deploy/haproxy.cfg with the real HAProxy in front of two servers: a user's requests stay on one replica, users
spread over both, and a replica that goes loses only its own users."""
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from skein_server import ROOT, STORIES, SkeinServer

USERS = [f"user-{i}" for i in range(24)]
REQUESTS = "skein_requests_total"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(origin, user=None):
    body = {"model": "stories260K", "prompt": "Once", "max_tokens": 1, "user": user or "nobody"}
    headers = {"Content-Type": "application/json"}
    if user:
        headers["X-Skein-User"] = user
    request = urllib.request.Request(origin + "/v1/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


class Proxy:
    def __init__(self, replicas):
        self.origin = f"http://127.0.0.1:{free_port()}"
        self.environment = {"SKEIN_BIND": self.origin.removeprefix("http://")}
        for number, replica in enumerate(replicas, 1):
            self.environment[f"SKEIN_REPLICA_{number}"] = replica.url.removeprefix("http://")

    def __enter__(self):
        command = [shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin"), "-db", "-f", str(ROOT / "deploy/haproxy.cfg")]
        self.process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                ask(self.origin)
                return self
            except (OSError, urllib.error.HTTPError):
                time.sleep(0.1)
        self.process.kill()
        raise RuntimeError("the proxy never answered: " + self.process.stdout.read())

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)


def answered(servers):
    """Requests that each server has answered."""
    counts = []
    for server in servers:
        counts.append(sum(value for name, value in server.metrics().items() if name.startswith(REQUESTS)))
    return counts


def replica_of(proxy, servers, user):
    before = answered(servers)
    ask(proxy.origin, user)
    after = answered(servers)
    moved = [i for i in range(len(servers)) if after[i] > before[i]]
    assert len(moved) == 1, f"{user}: {before} -> {after}"
    return moved[0]


@pytest.fixture(scope="module")
def servers():
    with SkeinServer(STORIES) as one, SkeinServer(STORIES) as two:
        yield [one, two]


def test_a_user_stays_and_users_spread(servers):
    with Proxy(servers) as proxy:
        first = {user: replica_of(proxy, servers, user) for user in USERS}
        again = {user: replica_of(proxy, servers, user) for user in reversed(USERS)}
        assert again == first
        share = sum(first.values()) / len(first)
        assert 0.2 <= share <= 0.8, first


def test_requests_without_a_user_go_to_all(servers):
    with Proxy(servers) as proxy:
        before = answered(servers)
        for _ in range(12):
            ask(proxy.origin)
        shares = [b - a for a, b in zip(before, answered(servers))]
        assert sum(shares) == 12 and min(shares) >= 3, shares


def test_metrics_are_each_replicas_own(servers):
    with Proxy(servers) as proxy:
        for _ in range(3):
            ask(proxy.origin, "somebody")
        for number, server in enumerate(servers, 1):
            with urllib.request.urlopen(f"{proxy.origin}/metrics/{number}", timeout=10) as response:
                lines = [line for line in response.read().decode().splitlines() if line.startswith(REQUESTS)]
            assert sum(float(line.rsplit(" ", 1)[1]) for line in lines) == answered([server])[0]


def test_a_replica_that_goes_moves_its_own_users_only(servers):
    with SkeinServer(STORIES) as third:
        pair = [servers[0], third]
        with Proxy(pair) as proxy:
            before = {user: replica_of(proxy, pair, user) for user in USERS}
            third.stop()
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:  # until the health check has noticed
                try:
                    for user in USERS:
                        ask(proxy.origin, user)
                    break
                except urllib.error.HTTPError:
                    time.sleep(0.2)
            for user in USERS:
                ask(proxy.origin, user)
            kept = [user for user, replica in before.items() if replica == 0]
            assert 0 < len(kept) < len(USERS)
            for user in kept:
                assert replica_of(proxy, [servers[0]], user) == 0
