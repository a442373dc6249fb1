"""What the experiments have in common: the program, models with random weights, the processor's name and peaks, a server of one's own
with what it counts, and how much of the processor's time is taken away meanwhile."""
import json
import os
import pathlib
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKEIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build/release/bin/skein"))


def random_model(shape, layers=None):
    """The directory of a model of this shape, in bf16, with all of its layers or the first ones; made if it is not there."""
    path = ROOT / "build/bench-models" / (f"{shape}-{layers}-layers" if layers else shape)
    if not (path / "config.json").exists():
        subprocess.run([SKEIN, "model", "init", "--shape", shape, "--dtype", "bf16", "--seed", "1", path, *(["--layers", str(layers)] if layers else [])],
                       check=True)
    return path


def processor():
    """Its name."""
    with open("/proc/cpuinfo") as file:
        return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))


def best_isa():
    """The best instruction set here, as SKEIN_FORCE_ISA names it."""
    return subprocess.run([SKEIN, "--isas"], capture_output=True, text=True, check=True).stdout.split()[0]


def limits(runs):
    """What `skein bench limits` measures: the machine's peak rates, by name."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([SKEIN, "bench", "limits", "--runs", str(runs), "--json", file.name], check=True, stdout=subprocess.DEVNULL)
        return json.loads(pathlib.Path(file.name).read_text())["limits"]


class Server:
    """`skein serve MODEL --port PORT OPTION...` from the beginning of a with statement, where it answers, to its end. Raises
    RuntimeError with the last line of its log where it does not come up."""
    START_S = 300

    def __init__(self, model, port, *options):
        self.url = f"http://127.0.0.1:{port}"
        self.command = list(map(str, [SKEIN, "serve", model, "--port", port, "--max-wait", 0, *options]))  # measured loads overload it

    def __enter__(self):
        self.log = tempfile.TemporaryFile()
        begin = time.monotonic()
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=self.log)
        while time.monotonic() - begin < self.START_S and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=1):
                    self.ready_s = time.monotonic() - begin
                    return self
            except OSError:
                time.sleep(0.01)
        self.process.kill()
        self.process.wait()
        self.log.seek(0)
        lines = self.log.read().decode().strip().splitlines()
        self.log.close()
        raise RuntimeError((lines or [f"the server was not ready within {self.START_S} s"])[-1])

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()

    def metrics(self, name, **labels):
        """The values of /metrics with this name and these labels."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return [float(line.rsplit(" ", 1)[1]) for line in lines
                if line.startswith((name + "{", name + " ")) and all(f'{key}="{value}"' in line for key, value in labels.items())]


class StolenTime:
    """Over a with statement: `share` of the processor's time that the host of this virtual machine gave to others."""

    def __enter__(self):
        self.begin = self.ticks()
        return self

    def __exit__(self, *_):
        end = self.ticks()
        total = sum(end) - sum(self.begin)
        self.share = (end[7] - self.begin[7]) / total if total else 0.0

    @staticmethod
    def ticks():
        with open("/proc/stat") as file:
            return list(map(int, file.readline().split()[1:9]))
