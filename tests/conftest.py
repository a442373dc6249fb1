import json
import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from skein_server import ROOT, SHARED, SKEIN_BIN, STORIES, needed, users_models  # noqa: E402


@pytest.fixture(autouse=True, scope="session")
def skein_cache(tmp_path_factory):
    """A cache for what Skein makes of the tests' GGUF files. Fetched models are those of the user's cache."""
    cache = tmp_path_factory.mktemp("cache")
    (cache / "models").symlink_to(users_models())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKEIN_CACHE", str(cache))
        yield cache


@pytest.fixture(scope="session")
def stories():
    """The real small model."""
    return needed(STORIES)


@pytest.fixture(scope="session")
def long_context(tmp_path_factory):
    """The default model with positions enough for prompts whose memory is large beside what every process takes."""
    model = tmp_path_factory.mktemp("models") / "long"
    shutil.copytree(ROOT / "models/default", model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 65536}))
    return model


@pytest.fixture(scope="session")
def tiny_qwen3(tmp_path_factory):
    """A small random model with Qwen3's tokenizer and chat template: its decisions are noise, but they
    are read as those of any chat model."""
    tokenizer = needed(SHARED / "tokenizers/qwen3")
    model = tmp_path_factory.mktemp("models") / "tiny"
    subprocess.run([SKEIN_BIN, "model", "init", "--shape", "tiny", "--tokenizer", str(tokenizer),
                    str(model)], check=True)
    return model
