"""The values that LLM takes and returns, by the names of vLLM's."""
from __future__ import annotations

import dataclasses
from typing import Any, Optional

import numpy


@dataclasses.dataclass
class SamplingParams:
    """How text is generated: vLLM's SamplingParams. Unset fields are the model's own defaults, but for
    max_tokens. `extra` holds further fields of /v1/completions, by their names."""
    n: int = 1
    temperature: Optional[float] = None
    top_p: Optional[float] = None
    top_k: Optional[int] = None
    min_p: Optional[float] = None
    seed: Optional[int] = None
    max_tokens: Optional[int] = 16
    min_tokens: Optional[int] = None
    stop: Any = None
    stop_token_ids: Optional[list] = None
    ignore_eos: Optional[bool] = None
    include_stop_str_in_output: Optional[bool] = None
    presence_penalty: Optional[float] = None
    frequency_penalty: Optional[float] = None
    repetition_penalty: Optional[float] = None
    logprobs: Optional[int] = None
    prompt_logprobs: Optional[int] = None
    logit_bias: Optional[dict] = None
    allowed_token_ids: Optional[list] = None
    skip_special_tokens: Optional[bool] = None
    truncate_prompt_tokens: Optional[int] = None
    structured_outputs: Optional[dict] = None
    priority: Optional[int] = None
    extra: Optional[dict] = None

    def fields(self) -> dict:
        """The fields of a request that are set."""
        given = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "extra"}
        return {name: value for name, value in given.items() if value is not None} | (self.extra or {})


@dataclasses.dataclass
class Logprob:
    """A token's natural log-probability. `rank` is 1 for the likeliest; None: not among those named."""
    logprob: float
    rank: Optional[int] = None
    decoded_token: Optional[str] = None


@dataclasses.dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: list
    cumulative_logprob: Optional[float]
    logprobs: Optional[list]  # [tokens] of {token id: Logprob}
    finish_reason: Optional[str]
    stop_reason: Any = None
    tool_calls: Optional[list] = None  # of chats: {"id", "type", "function": {"name", "arguments"}}


@dataclasses.dataclass
class RequestOutput:
    request_id: str
    prompt: Optional[str]
    prompt_token_ids: list
    outputs: list  # [n] of CompletionOutput
    prompt_logprobs: Optional[list] = None  # [prompt tokens] of None or {token id: Logprob}
    num_cached_tokens: int = 0
    finished: bool = True


@dataclasses.dataclass
class EmbeddingOutput:
    embedding: numpy.ndarray  # [dimensions], float32

    @property
    def hidden_size(self) -> int:
        return len(self.embedding)


@dataclasses.dataclass
class ClassificationOutput:
    probs: numpy.ndarray  # [num_classes], float32
    label: str = ""       # the likeliest class

    @property
    def num_classes(self) -> int:
        return len(self.probs)


@dataclasses.dataclass
class ScoringOutput:
    score: float


@dataclasses.dataclass
class EmbeddingRequestOutput:
    request_id: str
    outputs: EmbeddingOutput
    finished: bool = True


@dataclasses.dataclass
class ClassificationRequestOutput:
    request_id: str
    outputs: ClassificationOutput
    finished: bool = True


@dataclasses.dataclass
class ScoringRequestOutput:
    request_id: str
    outputs: ScoringOutput
    finished: bool = True


@dataclasses.dataclass
class Decision:
    """An answer of /v1/decisions. A predicate has `probability`; a choice `choice` and a score `score`,
    both with `confidence` and `probabilities`, in the order of the question's choices or levels."""
    type: str
    name: Optional[str] = None
    probability: Optional[float] = None
    choice: Any = None
    score: Optional[float] = None
    confidence: Optional[float] = None
    probabilities: Optional[list] = None  # of {"value", "label" (scores), "probability"}
    diagnostics: Optional[dict] = None
