"""The Debian package: what it holds, its manual and completion, and a server from its files alone."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import urllib.request

import pytest

from skein_server import SKEIN_BIN, SkeinServer, fetched

BUILD = pathlib.Path(SKEIN_BIN).resolve().parent.parent
BODY = {"input": "The parcel came a week late. I want my money back.",
        "questions": [{"type": "predicate", "instructions": "Is the writer unhappy?"}]}


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    run("cpack", "-G", "DEB", "-B", folder, "--config", BUILD / "CPackConfig.cmake", cwd=folder)
    (made,) = folder.glob("skein_*_amd64.deb")
    return made


@pytest.fixture(scope="module")
def root(package, tmp_path_factory):
    """The package's files, in a folder in the place of /."""
    folder = tmp_path_factory.mktemp("root")
    run("dpkg-deb", "-x", package, folder)
    return folder


def test_the_package_depends_on_what_its_program_links(package, root):
    depends = run("dpkg-deb", "-f", package, "Depends")
    assert {"libc6", "libssl3", "libsimdjson14"} <= {entry.split()[0] for entry in depends.split(", ")}
    version = run("dpkg-deb", "-f", package, "Version").strip()
    assert version in run(root / "usr/bin/skein", "--version")
    assert (root / "usr/lib/systemd/system/skein.service").exists()


def test_the_manual_names_every_option(root):
    manual = (root / "usr/share/man/man1/skein.1").read_text().replace("\\-", "-")
    listed = re.findall(r"^  (--[a-z-]+)", run(root / "usr/bin/skein", "serve", "--help-all"), re.MULTILINE)
    assert len(listed) > 70 and [option for option in listed if option not in manual] == ["--help-all"]
    if shutil.which("groff"):
        warned = subprocess.run(["groff", "-man", "-ww", "-Wbreak", "-Tutf8", "-z", root / "usr/share/man/man1/skein.1"],
                                capture_output=True, text=True, timeout=60).stderr
        assert warned == ""


def test_completion_of_commands_and_options(root):
    completion = root / "usr/share/bash-completion/completions/skein"
    ask = ('source {file}; COMP_WORDS=({words}); COMP_CWORD={last}; COMP_LINE="{words}"; COMP_POINT=${{#COMP_LINE}}; '
           '$(complete -p skein | sed -E "s/.*-F ([^ ]+).*/\\1/"); echo "${{COMPREPLY[@]}}"')
    offered = run("bash", "-c", ask.format(file=completion, words="skein ser", last=1)).split()
    assert offered == ["serve"]
    offered = run("bash", "-c", ask.format(file=completion, words="skein serve --max-num", last=2)).split()
    assert "--max-num-seqs" in offered and all(word.startswith("--max-num") for word in offered)


def test_its_program_finds_its_own_adapters(root, monkeypatch):
    """Without SKEIN_DATA_DIR: the adapter for decisions is the package's, not the checkout's."""
    monkeypatch.delenv("SKEIN_DATA_DIR", raising=False)
    fetched("smollm2")

    def answer(program):
        monkeypatch.setattr("skein_server.SKEIN_BIN", str(program))
        with SkeinServer("smollm2", "--max-model-len", 512) as server:
            request = urllib.request.Request(server.url + "/v1/decisions", json.dumps(BODY).encode(),
                                             {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.loads(response.read())["answers"]

    program = root / "usr/bin/skein"
    assert answer(program) == answer(SKEIN_BIN)
    # Where the package's adapter is gone, the model itself answers.
    os.rename(root / "usr/share/skein/models/smollm2-decide", root / "gone")
    assert answer(program) != answer(SKEIN_BIN)
