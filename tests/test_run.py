"""`skein run` and `skein decide` as commands: what goes where, and the conversation on a terminal."""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import time

import pytest

from safetensors_file import read_safetensors, widened, write_safetensors
from skein_server import ROOT, SKEIN_BIN

MODEL = ROOT / "models/default"
GREEDY = ("--temperature", "0", "--max-tokens", "24")


def run(*args, stdin="", command="run"):
    return subprocess.run([SKEIN_BIN, command, *map(str, args)], input=stdin, capture_output=True, text=True,
                          timeout=60)


def answer(*args, stdin=""):
    """What a run prints that succeeds and says nothing else."""
    done = run(*args, *GREEDY, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def no_template(tmp_path_factory):
    """The default model without its chat template."""
    model = pathlib.Path(shutil.copytree(MODEL, tmp_path_factory.mktemp("models") / "plain"))
    config = json.loads((model / "tokenizer_config.json").read_text())
    del config["chat_template"]
    (model / "tokenizer_config.json").write_text(json.dumps(config))
    return model


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """The default model in f16, which is loaded with a warning."""
    model = pathlib.Path(shutil.copytree(MODEL, tmp_path_factory.mktemp("models") / "half"))
    tensors = read_safetensors(model / "model.safetensors")
    write_safetensors(model / "model.safetensors", {name: widened(array).astype("<f2") for name, array in tensors.items()})
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"torch_dtype": "float16"}))
    return model


@pytest.fixture(scope="module")
def asked():
    """The answer to Hello."""
    return answer(MODEL, "Hello")


def test_a_text_is_asked_as_a_message_however_it_comes(asked):
    assert re.search("[a-z]{3}", asked)
    assert answer(MODEL, stdin="Hello\n") == asked
    assert answer(MODEL, "--chat", "--prompt", "Hello") == asked
    assert answer(MODEL, "--chat", "Hello") == asked
    assert answer(MODEL, "--chat", stdin="Hello\n") == asked
    prompt = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    assert answer(MODEL, "--prompt", prompt) == asked


def test_words_are_one_text():
    assert answer(MODEL, "decide", "for", "me") == answer(MODEL, "decide for me")


def test_prompt_is_continued_as_it_is(asked, no_template):
    plain = answer(MODEL, "--prompt", "Hello")
    assert plain != asked
    assert answer(no_template, "Hello") == plain
    assert answer(no_template, stdin="Hello\n") == plain


def test_lines_of_a_chat_are_turns(asked):
    lines = answer(MODEL, "--chat", stdin="Hello\nAnd now?\n")
    assert lines.startswith(asked)
    turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": asked[:-1]},
             {"role": "user", "content": "And now?"}]
    text = "".join(f"<|im_start|>{t['role']}\n{t['content']}<|im_end|>\n" for t in turns)
    assert lines[len(asked):] == answer(MODEL, "--prompt", text + "<|im_start|>assistant\n")


def test_a_system_message_stands_before(asked):
    assert answer(MODEL, "--system", "Say no.", "Hello") != ""
    refused = run(MODEL, "--system", "Say no.", "--prompt", "Hello")
    assert (refused.returncode, refused.stdout) == (2, "")


def test_input_json(tmp_path):
    file = tmp_path / "requests.json"
    file.write_text(json.dumps([{"prompt": "a"}, {"messages": [{"role": "user", "content": "Hello"}]}]))
    lines = answer(MODEL, "--input-json", file).splitlines()
    assert [json.loads(line)["index"] for line in lines] == [0, 1]


@pytest.mark.parametrize("args, stdin, named", [
    ([MODEL], "", "the text is empty"), ([MODEL], " \n", "the text is empty"), ([MODEL, ""], "", "the text is empty"),
    ([MODEL, "--chat"], "", "the text is empty"), (["/nonexistent"], "a", "/nonexistent"),
    ([MODEL, "--input-json", "/nonexistent"], "", "/nonexistent")])
def test_a_failure_is_one_line_and_status_1(args, stdin, named):
    done = run(*args, stdin=stdin)
    assert (done.returncode, done.stdout) == (1, "")
    assert named in done.stderr and done.stderr.startswith("skein run: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_chat_needs_a_template(no_template):
    done = run(no_template, "--chat", "Hello")
    assert (done.returncode, done.stdout) == (1, "")
    assert "has no chat template" in done.stderr


@pytest.mark.parametrize("args", [[], [MODEL, "a", "--prompt", "b"], [MODEL, "a", "--input-json", "b"],
                                  [MODEL, "--bogus"], [MODEL, "--max-tokens", "many"]])
def test_wrong_usage_is_status_2(args):
    done = run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_warnings_of_run_go_to_standard_error(half):
    done = run(half, "Hello", *GREEDY)
    assert done.returncode == 0
    assert "f16" in done.stderr
    assert "f16" not in done.stdout and len(done.stdout) > 3


def test_warnings_of_decide_go_to_standard_error(half, tmp_path):
    questions = tmp_path / "questions.json"
    questions.write_text(json.dumps({"questions": [{"type": "predicate", "instructions": "Is it spam?"}]}))
    done = run(half, "--questions", questions, stdin='"Win a prize now"\n', command="decide")
    assert done.returncode == 0, done.stderr
    assert "f16" in done.stderr
    [line] = done.stdout.splitlines()
    assert "answers" in json.loads(line)


class Terminal:
    """A run on a pseudo-terminal of its own. `shown` is all it printed, control sequences removed."""

    def __init__(self, *args, home):
        environment = os.environ | {"TERM": "xterm", "HOME": str(home), "LC_ALL": "C.UTF-8"}
        environment.pop("XDG_STATE_HOME", None)
        self.process_id, self.terminal = pty.fork()
        if self.process_id == 0:
            os.execve(SKEIN_BIN, [SKEIN_BIN, "run", *map(str, args)], environment)
        self.shown = ""
        self.held = b""  # a control sequence that has not ended yet

    def __enter__(self):
        return self

    def read(self, timeout_s):
        """False: nothing came, or the terminal is closed."""
        if not select.select([self.terminal], [], [], timeout_s)[0]:
            return False
        try:
            data = os.read(self.terminal, 1 << 16)
        except OSError:
            return False
        text = self.held + data
        whole = len(re.sub(rb"\x1b[\[(]?[0-9;?]*\Z", b"", text))
        self.held = text[whole:]
        self.shown += re.sub(r"\x1b[\[(][0-9;?]*[A-Za-z]|\x1b[=>]|\r", "", text[:whole].decode(errors="replace"))
        return bool(data)

    def expect(self, pattern, timeout_s=30):
        """Waits until `pattern` has been shown; what stood before it, and it, are then forgotten."""
        deadline = time.monotonic() + timeout_s
        while not (found := re.search(pattern, self.shown, re.DOTALL)):
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"no {pattern!r} in {self.shown!r}"
            if not self.read(min(left_s, 1)) and self.ended():
                pytest.fail(f"ended without {pattern!r}: {self.shown!r}")
        self.shown = self.shown[found.end():]
        return found

    def send(self, text):
        os.write(self.terminal, text.encode())

    def ended(self):
        done, self.status = os.waitpid(self.process_id, os.WNOHANG)
        if done:
            self.process_id = None
        return done != 0

    def exit_status(self, timeout_s=30):
        deadline = time.monotonic() + timeout_s
        while not self.ended():
            assert time.monotonic() < deadline, f"still runs: {self.shown!r}"
            self.read(0.05)
        while self.read(0.05):
            pass
        return os.waitstatus_to_exitcode(self.status)

    def __exit__(self, *exc):
        if self.process_id is not None:
            os.kill(self.process_id, signal.SIGKILL)
            os.waitpid(self.process_id, 0)
        os.close(self.terminal)


def test_a_conversation_on_a_terminal(tmp_path, asked):
    first = re.escape(asked.rstrip("\n"))
    with Terminal(MODEL, *GREEDY, home=tmp_path) as terminal:
        terminal.expect("/help .*\n> ")
        terminal.send("/help\n")
        terminal.expect("/reset.*/exit.*> ")
        terminal.send("Hello\n")
        terminal.expect(f"Hello\n{first}\n.*> ")
        terminal.send("Hello\n")  # with the first turn before it
        second = terminal.expect("Hello\n(.*)\n> ").group(1)
        both = answer(MODEL, "--chat", stdin="Hello\nHello\n")
        assert second.strip() == both[len(asked):].strip()
        terminal.send("/reset\n")
        terminal.expect("anew.*> ")
        terminal.send("\x1b[A\x1b[A\n")  # two lines up in the history: Hello
        terminal.expect(f"Hello\n{first}\n.*> ")
        terminal.send("/bogus\n")
        terminal.expect("no command /bogus.*> ")
        terminal.send("\x04")
        assert terminal.exit_status() == 0
    history = tmp_path / ".local/state/skein/history"
    assert "Hello" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def test_lines_are_edited_and_kept_for_the_next_time(tmp_path, asked):
    first = re.escape(asked.rstrip("\n"))
    with Terminal(MODEL, *GREEDY, home=tmp_path) as terminal:
        terminal.expect("\n> ")
        terminal.send("ello\x01H\n")  # Ctrl-A: to the beginning
        terminal.expect(f"\n{first}\n.*> ")
        terminal.send("Grüße, 世界\x7f\x7f\x7f\x7f\n")
        terminal.expect("\n> ")
        terminal.send("/exit\n")
        assert terminal.exit_status() == 0
    with Terminal(MODEL, *GREEDY, home=tmp_path) as terminal:
        terminal.expect("\n> ")
        terminal.send("\x1b[A\x1b[A\x1b[A\n")
        terminal.expect(f"\n{first}\n.*> ")


def test_ctrl_c_clears_the_line_and_stops_an_answer(tmp_path, asked):
    first = re.escape(asked.rstrip("\n"))
    endless = ("--temperature", "0", "--ignore-eos", "--max-model-len", "2048")
    with Terminal(MODEL, *endless, home=tmp_path) as terminal:
        terminal.expect("\n> ")
        terminal.send("never asked\x03")
        terminal.expect("\\^C\n.*> ")
        terminal.send("Hello\n")
        terminal.expect("Hello\n.*[a-z]{3}")
        terminal.send("\x03")
        terminal.expect("\n> ", timeout_s=10)
        terminal.send("\x04")
        assert terminal.exit_status() == 0
    with Terminal(MODEL, *GREEDY, home=tmp_path) as terminal:
        terminal.expect("\n> ")
        terminal.send("never asked\x03")
        terminal.expect("\\^C\n.*> ")
        terminal.send("Hello\n")
        terminal.expect(f"Hello\n{first}\n.*> ")


def test_a_model_without_a_template_continues_each_line(tmp_path, no_template):
    plain = re.escape(answer(no_template, "Hello").rstrip("\n"))
    with Terminal(no_template, *GREEDY, home=tmp_path) as terminal:
        terminal.expect("no chat template.*\n> ")
        for _ in range(2):
            terminal.send("Hello\n")
            terminal.expect(f"Hello\n{plain}\n.*> ")


def test_an_error_does_not_end_the_conversation(tmp_path):
    with Terminal(MODEL, *GREEDY, "--max-model-len", "64", home=tmp_path) as terminal:
        terminal.expect("\n> ")
        terminal.send("word " * 100 + "\n")
        terminal.expect("64.*\n> ")
        terminal.send("Hello\n")
        terminal.expect("Hello\n.*[a-z]{3}.*\n> ")
