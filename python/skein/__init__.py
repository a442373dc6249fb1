"""Skein in this process: decisions, scores, classes, embeddings and text from one loaded model.

    import skein
    llm = skein.LLM(skein.fetch("smollm2"))
    answer, = llm.decide("The parcel came late.", ["Is the customer content?"])
    answer.probability

`LLM` has the names and results of vLLM's `LLM`, and `encode`, `predict` and `rank` those of
sentence-transformers. `AsyncLLM` has the same methods as coroutines. Answers have the bits of the
server's.
"""
import os
import pathlib
import sys

# The decision profiles and adapters of known models, which the package brings along.
os.environ.setdefault("SKEIN_DATA_DIR", str(pathlib.Path(__file__).parent / "models"))
# The interpreter whose pip gets models.
os.environ.setdefault("SKEIN_PYTHON", sys.executable)

# Debian 12's packages of what the module links.
DEBIAN_PACKAGES = ("libboost-context1.81.0 libfmt9 libpcre2-8-0 libprometheus-cpp-core1.0 libsimdjson14 "
                   "libspdlog1.10 libssl3 libxxhash0")
try:
    from ._skein import __version__, fetch
except ImportError as error:
    if "shared object file" not in str(error):
        raise
    raise ImportError(f"{error}. The module needs libraries of Debian 12: "
                      f"apt-get install {DEBIAN_PACKAGES}") from error
from .llm import LLM, AsyncLLM, RequestError
from .results import (ClassificationOutput, ClassificationRequestOutput, CompletionOutput, Decision,
                      EmbeddingOutput, EmbeddingRequestOutput, Logprob, RequestOutput, SamplingParams,
                      ScoringOutput, ScoringRequestOutput)

__all__ = ["LLM", "AsyncLLM", "ClassificationOutput", "ClassificationRequestOutput", "CompletionOutput",
           "Decision", "EmbeddingOutput", "EmbeddingRequestOutput", "Logprob", "RequestError",
           "RequestOutput", "SamplingParams", "ScoringOutput", "ScoringRequestOutput", "__version__", "fetch"]
