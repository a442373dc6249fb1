"""Random models of the tests' data."""
import json
import pathlib
import shutil

from skein_server import ROOT


def modernbert(kind, folder):
    """The directory of a ModernBERT of this kind (tests/data/modernbert) in `folder`."""
    data = ROOT / "tests/data"
    golden = json.loads((data / f"modernbert/{kind}/golden.json").read_text())
    model = pathlib.Path(shutil.copytree(data / f"modernbert/{kind}", folder / kind))
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(data / "tokenizers" / golden["tokenizer"] / file, model)
    return model
