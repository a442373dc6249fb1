"""LLM and AsyncLLM: the server's routes of a model in this process."""
from __future__ import annotations

import asyncio
import dataclasses
import functools
import itertools
import json
import queue
import weakref
from typing import Any, Callable

import numpy

from ._skein import LocalModel
from .results import (ClassificationOutput, ClassificationRequestOutput, CompletionOutput, Decision,
                      EmbeddingOutput, EmbeddingRequestOutput, Logprob, RequestOutput, SamplingParams,
                      ScoringOutput, ScoringRequestOutput)

CHUNK = 32  # texts in one request: progress counts these
TOKEN_PREFIX = "token_id:"


class RequestError(ValueError):
    """A request that was refused or failed. `index`: of the input; `param`: the field by its name in the
    HTTP interface; `status`: the HTTP status that the server would answer with."""

    def __init__(self, index: int, status: int, error: dict):
        super().__init__(error.get("message", f"status {status}"))
        self.index, self.status, self.param = index, status, error.get("param")


@dataclasses.dataclass
class Call:
    """A request. `weight`: the reads or samples that it asks for; `index`: of its first input."""
    path: str
    body: dict
    weight: int = 1
    index: int = 0
    num_vectors: int = 0  # of an answer that is vectors alone, in bytes; 0: it is JSON


@dataclasses.dataclass
class Work:
    calls: list
    collect: Callable[[list], Any]  # from the answers, in the order of the calls


def option_arguments(options: dict) -> list:
    """Options of `skein serve` from keyword arguments: max_model_len=4096 is --max-model-len 4096."""
    arguments = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None:
            continue
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(item, bool):
                if item:
                    arguments.append(option)
                elif name == "enable_prefix_caching":
                    arguments.append("--no-enable-prefix-caching")
                else:
                    raise ValueError(f"{name} must not be False: leave it out")
            else:
                arguments += [option, str(item)]
    return arguments


def plain(value):
    """`value` for JSON: arrays of NumPy become lists."""
    if isinstance(value, numpy.ndarray):
        return value.tolist()
    if isinstance(value, numpy.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be sent")


def is_ids(value) -> bool:
    if isinstance(value, numpy.ndarray):
        return value.ndim == 1 and value.dtype.kind in "iu"
    return isinstance(value, (list, tuple)) and len(value) > 0 and not isinstance(value[0], (str, list, tuple, dict,
                                                                                             numpy.ndarray))


def prompt_of(value):
    """A text or token ids, from either or from a dict of vLLM's form."""
    if isinstance(value, dict):
        return value["prompt_token_ids"] if "prompt_token_ids" in value else value["prompt"]
    return value


def listed(value) -> tuple:
    """(inputs, whether it was one alone): a text, token ids or a dict is one."""
    if isinstance(value, (str, dict)) or is_ids(value):
        return [prompt_of(value)], True
    if not hasattr(value, "__iter__"):
        raise TypeError(f"inputs must be a text, token ids or a list of these, got {type(value).__name__}")
    return [prompt_of(item) for item in value], False


def chunks(items, size=CHUNK):
    return [(begin, items[begin:begin + size]) for begin in range(0, len(items), size)]


def named_logprobs(named: dict, num_top: int) -> dict:
    """{token id: Logprob} of {"token_id:7": -0.1, ...}, whose first entries are the likeliest."""
    return {int(name[len(TOKEN_PREFIX):]): Logprob(value, place + 1 if place < num_top else None)
            for place, (name, value) in enumerate(named.items())}


def prompt_logprobs(positions):
    return positions and [position and {int(token): Logprob(**entry) for token, entry in position.items()}
                          for position in positions]


class Model:
    """The loaded model, and how its requests are planned. LLM and AsyncLLM run the plans."""

    def __init__(self, model: str, **options):
        """Loads a model: a directory, a GGUF file or a known name, and the options of `skein serve` by
        their names (dtype, quantization, threads, max_model_len, kv_cache_memory, lora, ...)."""
        self._local = LocalModel(str(model), option_arguments(options))
        self._info = self._local.info()
        self._ids = itertools.count()
        # It also runs before the interpreter ends, which the model's threads call.
        self._finalizer = weakref.finalize(self, self._local.close)

    @property
    def info(self) -> dict:
        """What the model is and can do: name, max_model_len, generates, embeds, classifies, ..."""
        return dict(self._info)

    def close(self):
        """Frees the model. Running requests fail."""
        self._finalizer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- Plans -----------------------------------------------------------------------------------

    def _parameters(self, params, count: int) -> list:
        if params is None or isinstance(params, (SamplingParams, dict)):
            params = [params] * count
        if len(params) != count:
            raise ValueError(f"there are {len(params)} sampling_params for {count} prompts")
        fields = []
        for given in params:
            given = SamplingParams() if given is None else given
            given = dict(given) if isinstance(given, dict) else given.fields()
            # Without a bound an answer may fill the context.
            given.setdefault("max_tokens", self._info["max_model_len"])
            fields.append(given)
        return fields

    def _generate(self, prompts, sampling_params=None) -> Work:
        """Continues texts or token ids; one RequestOutput for each. `sampling_params`: one for all or one for
        each."""
        prompts, _ = listed(prompts)
        calls = []
        for index, (prompt, fields) in enumerate(zip(prompts, self._parameters(sampling_params, len(prompts)))):
            body = {**fields, "prompt": prompt, "return_token_ids": True, "return_tokens_as_token_ids": True}
            calls.append(Call("/v1/completions", body, fields.get("n") or 1, index))

        def output(call, answer):
            prompt = call.body["prompt"]
            choices = answer["choices"]
            return RequestOutput(
                self._next_id(), prompt if isinstance(prompt, str) else None, choices[0]["prompt_token_ids"],
                [self._completion(choice, call.body.get("logprobs")) for choice in choices],
                prompt_logprobs(choices[0].get("prompt_logprobs")), cached_tokens(answer))
        return Work(calls, lambda answers: [output(*pair) for pair in zip(calls, answers)])

    @staticmethod
    def _completion(choice, num_logprobs):
        logprobs = choice.get("logprobs")
        told = logprobs and [named_logprobs(named, num_logprobs) for named in logprobs["top_logprobs"]]
        return CompletionOutput(choice["index"], choice["text"], choice["token_ids"],
                                sum(logprobs["token_logprobs"]) if logprobs else None, told,
                                choice["finish_reason"], choice.get("stop_reason"))

    def _chat(self, messages, sampling_params=None, *, tools=None, chat_template_kwargs=None,
              add_generation_prompt=True) -> Work:
        """Answers one chat (a list of messages) or several; one RequestOutput for each."""
        chats = [messages] if messages and isinstance(messages[0], dict) else list(messages)
        calls = []
        for index, (chat, fields) in enumerate(zip(chats, self._parameters(sampling_params, len(chats)))):
            num_logprobs = fields.pop("logprobs", None)
            body = {**fields, "messages": chat, "return_token_ids": True, "return_tokens_as_token_ids": True,
                    "add_generation_prompt": add_generation_prompt}
            if num_logprobs is not None:
                body |= {"logprobs": True, "top_logprobs": num_logprobs}
            body |= given(tools=tools, chat_template_kwargs=chat_template_kwargs)
            calls.append(Call("/v1/chat/completions", body, fields.get("n") or 1, index))

        def output(call, answer):
            return RequestOutput(self._next_id(), None, answer["prompt_token_ids"],
                                 [self._message(choice, call.body.get("top_logprobs"))
                                  for choice in answer["choices"]],
                                 prompt_logprobs(answer.get("prompt_logprobs")), cached_tokens(answer))
        return Work(calls, lambda answers: [output(*pair) for pair in zip(calls, answers)])

    @staticmethod
    def _message(choice, num_logprobs):
        content = (choice.get("logprobs") or {}).get("content")
        told = content and [named_logprobs({entry["token"]: entry["logprob"]
                                            for entry in [*token["top_logprobs"], token]}, num_logprobs)
                            for token in content]
        message = choice["message"]
        return CompletionOutput(choice["index"], message["content"] or "", choice["token_ids"],
                                sum(token["logprob"] for token in content) if content else None, told,
                                choice["finish_reason"], choice.get("stop_reason"), message.get("tool_calls"))

    def _vectors(self, texts, fields, batch_size=CHUNK) -> list:
        return [Call("/v1/embeddings", {**fields, "input": part, "encoding_format": "bytes_only"}, len(part), begin,
                     len(part)) for begin, part in chunks(texts, batch_size)]

    @staticmethod
    def _matrix(answers) -> numpy.ndarray:
        """[texts, dimensions], float32. It is the memory of an answer; several are copied into one."""
        if len(answers) == 1:
            return answers[0]
        return numpy.concatenate(answers) if answers else numpy.empty((0, 0), numpy.float32)

    def _embed(self, prompts, *, dimensions=None, normalize=None, prompt_name=None,
               truncate_prompt_tokens=None) -> Work:
        """Embeds texts or token ids; one EmbeddingRequestOutput for each."""
        texts, _ = listed(prompts)
        fields = given(dimensions=dimensions, normalize=normalize, prompt_name=prompt_name,
                       truncate_prompt_tokens=truncate_prompt_tokens)
        return Work(self._vectors(texts, fields),
                    lambda answers: [EmbeddingRequestOutput(self._next_id(), EmbeddingOutput(row))
                                     for answer in answers for row in answer])

    def _encode(self, sentences, *, prompt_name=None, batch_size=CHUNK, normalize_embeddings=False,
                truncate_dim=None) -> Work:
        """Embeds as SentenceTransformer.encode does: an array [sentences, dimensions] of float32, or
        [dimensions] for one text. Longer texts lose their end. `batch_size`: texts in one request."""
        texts, alone = listed(sentences)
        fields = given(prompt_name=prompt_name, dimensions=truncate_dim, truncate_prompt_tokens=-1,
                       normalize=True if normalize_embeddings else None)

        def collect(answers):
            matrix = self._matrix(answers)
            return matrix[0] if alone else matrix
        return Work(self._vectors(texts, fields, batch_size), collect)

    def _classify(self, prompts, *, use_activation=None, truncate_prompt_tokens=None) -> Work:
        """Classifies texts or token ids; one ClassificationRequestOutput for each."""
        texts, _ = listed(prompts)
        fields = given(use_activation=use_activation, truncate_prompt_tokens=truncate_prompt_tokens)
        calls = [Call("/classify", {**fields, "input": part}, len(part), begin) for begin, part in chunks(texts)]

        def collect(answers):
            return [ClassificationRequestOutput(
                self._next_id(), ClassificationOutput(numpy.array(entry["probs"], numpy.float32), entry["label"]))
                for answer in answers for entry in answer["data"]]
        return Work(calls, collect)

    def _scores(self, queries, documents, fields, batch_size=CHUNK) -> list:
        queries = [queries] if isinstance(queries, str) else list(queries)
        documents = [documents] if isinstance(documents, str) else list(documents)
        if len(queries) not in (1, len(documents)):
            raise ValueError(f"there are {len(queries)} queries for {len(documents)} documents: "
                             "give one, or as many")
        calls = []
        for begin, part in chunks(documents, batch_size):
            own = queries if len(queries) == 1 else queries[begin:begin + len(part)]
            calls.append(Call("/v1/score", {**fields, "queries": own, "documents": part}, 2 * len(part), begin))
        return calls

    def _score(self, data_1, data_2, *, truncate_prompt_tokens=None, instruction=None) -> Work:
        """Scores pairs, 1:N or N:N; one ScoringRequestOutput for each document."""
        fields = given(truncate_prompt_tokens=truncate_prompt_tokens, instruction=instruction)
        return Work(self._scores(data_1, data_2, fields),
                    lambda answers: [ScoringRequestOutput(self._next_id(), ScoringOutput(entry["score"]))
                                     for answer in answers for entry in answer["data"]])

    def _predict(self, pairs, *, batch_size=CHUNK) -> Work:
        """Scores pairs as CrossEncoder.predict does: an array [pairs] of float32, or one number for one pair.
        Longer pairs lose their end."""
        alone = len(pairs) == 2 and isinstance(pairs[0], str)
        pairs = [pairs] if alone else list(pairs)
        fields = {"truncate_prompt_tokens": -1}

        def collect(answers):
            scores = numpy.array([entry["score"] for answer in answers for entry in answer["data"]], numpy.float32)
            return scores[0] if alone else scores
        return Work(self._scores([a for a, _ in pairs], [b for _, b in pairs], fields, batch_size), collect)

    def _rerank(self, query, documents, *, top_n=None, instruction=None) -> Work:
        """Ranks documents for a query: [{"index", "relevance_score", "document": {"text"}}], best first."""
        documents = list(documents)
        fields = given(top_n=top_n, instruction=instruction)
        call = Call("/rerank", {**fields, "query": query, "documents": documents}, 2 * len(documents))
        return Work([call], lambda answers: answers[0]["results"])

    def _rank(self, query, documents, *, top_k=None, return_documents=False) -> Work:
        """Ranks as CrossEncoder.rank does: [{"corpus_id", "score", "text"}], best first."""
        work = self._rerank(query, documents, top_n=top_k)
        work.calls[0].body["truncate_prompt_tokens"] = -1

        def collect(answers):
            ranked = [{"corpus_id": entry["index"], "score": numpy.float32(entry["relevance_score"])}
                      for entry in answers[0]["results"]]
            for entry in ranked if return_documents else []:
                entry["text"] = documents[entry["corpus_id"]]
            return ranked
        return Work(work.calls, collect)

    def _decide(self, inputs, questions, **fields) -> Work:
        """Answers questions about one input or several: a list of Decision, or one for each input. A question
        is a text (yes or no) or one of /v1/decisions; `fields` are further fields of that route."""
        alone = isinstance(inputs, str)
        questions = [questions] if isinstance(questions, (str, dict)) else questions
        questions = [{"type": "predicate", "instructions": question} if isinstance(question, str) else question
                     for question in questions]
        calls = [Call("/v1/decisions", {**fields, "input": text, "questions": questions}, len(questions), index)
                 for index, text in enumerate([inputs] if alone else inputs)]

        def collect(answers):
            decisions = [[Decision(**answer) for answer in answered["answers"]] for answered in answers]
            return decisions[0] if alone else decisions
        return Work(calls, collect)

    # --- Running ---------------------------------------------------------------------------------

    def _next_id(self) -> str:
        return str(next(self._ids))

    def _post(self, call: Call, done: Callable[[int, numpy.ndarray], None]):
        self._local.post(call.path, json.dumps(call.body, default=plain).encode(), done)

    @property
    def _most(self) -> int:
        """The weight of calls that may wait in the engine's queue."""
        return max(1, self._info["max_queued_requests"] // 2)


def given(**fields) -> dict:
    return {name: value for name, value in fields.items() if value is not None}


def cached_tokens(answer) -> int:
    return ((answer.get("usage") or {}).get("prompt_tokens_details") or {}).get("cached_tokens", 0)


def parsed(call: Call, status: int, body: numpy.ndarray):
    if status == 200 and call.num_vectors:
        return body.view(numpy.dtype("<f4")).reshape(call.num_vectors, -1)
    answer = json.loads(body.tobytes())
    if status == 200:
        return answer
    raise RequestError(call.index, status, answer.get("error") or {})


def progress_bar(total: int, wanted: bool):
    if wanted and total > 1:
        try:
            from tqdm.auto import tqdm
            return tqdm(total=total)
        except ImportError:
            pass
    return None


def posting(model: Model, calls: list, use_tqdm: bool, deliver: Callable[[tuple], None]):
    """Posts `calls`, as many at once as the engine's queue takes. It yields while it waits and is sent each
    answer that `deliver` got, on another thread. Returns the answers in the order of the calls. The first
    error is raised once what runs has ended."""
    answers: list = [None] * len(calls)
    bar = progress_bar(len(calls), use_tqdm)
    running, begun, weight, error = 0, 0, 0, None
    try:
        while True:
            while begun < len(calls) and error is None and (
                    running == 0 or weight + calls[begun].weight <= model._most):
                model._post(calls[begun], lambda *answer, place=begun: deliver((place, *answer)))
                weight += calls[begun].weight
                running += 1
                begun += 1
            if running == 0:
                break
            place, status, body = yield
            running -= 1
            weight -= calls[place].weight
            try:
                answers[place] = parsed(calls[place], status, body)
            except RequestError as refused:
                error = error or refused
            if bar is not None:
                bar.update()
    finally:
        if bar is not None:
            bar.close()
    if error is not None:
        raise error
    return answers


def run(model: Model, calls: list, use_tqdm: bool) -> list:
    """The answers to `calls`."""
    arrived: queue.SimpleQueue = queue.SimpleQueue()
    steps = posting(model, calls, use_tqdm, arrived.put)
    try:
        next(steps)
        while True:
            steps.send(arrived.get())
    except StopIteration as end:
        return end.value
    except RequestError:
        raise
    except BaseException:  # an interrupt: nobody reads the answers any more
        model._local.abort()
        raise


async def run_async(model: Model, calls: list, use_tqdm: bool) -> list:
    """As run, in an event loop, whose other tasks go on. What runs for a cancelled task runs to its end."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue = asyncio.Queue()

    def deliver(answer):
        try:
            loop.call_soon_threadsafe(arrived.put_nowait, answer)
        except RuntimeError:  # the loop is closed: nobody waits
            pass

    steps = posting(model, calls, use_tqdm, deliver)
    try:
        next(steps)
        while True:
            steps.send(await arrived.get())
    except StopIteration as end:
        return end.value


def planned(plan, model, args, kwargs, adapter) -> Work:
    work = plan(model, *args, **kwargs)
    for call in work.calls if adapter is not None else []:
        call.body["model"] = adapter
    return work


def _sync(plan, shows_progress=False):
    @functools.wraps(plan)
    def method(self, *args, adapter=None, use_tqdm=shows_progress, show_progress_bar=None, **kwargs):
        use_tqdm = use_tqdm if show_progress_bar is None else show_progress_bar
        work = planned(plan, self, args, kwargs, adapter)
        return work.collect(run(self, work.calls, use_tqdm))
    method.__name__ = plan.__name__[1:]
    return method


def _coroutine(plan):
    @functools.wraps(plan)
    async def method(self, *args, adapter=None, use_tqdm=False, **kwargs):
        work = planned(plan, self, args, kwargs, adapter)
        return work.collect(await run_async(self, work.calls, use_tqdm))
    method.__name__ = plan.__name__[1:]
    return method


class LLM(Model):
    """A model in this process. Every method takes `adapter`, the name of a LoRA adapter, and `use_tqdm` (or
    `show_progress_bar`), which shows progress where tqdm is installed. Methods may be called from several
    threads; their requests then run together, as those of a server's clients do."""
    generate = _sync(Model._generate, shows_progress=True)
    chat = _sync(Model._chat, shows_progress=True)
    embed = _sync(Model._embed, shows_progress=True)
    encode = _sync(Model._encode)
    classify = _sync(Model._classify, shows_progress=True)
    score = _sync(Model._score, shows_progress=True)
    predict = _sync(Model._predict)
    rerank = _sync(Model._rerank)
    rank = _sync(Model._rank)
    decide = _sync(Model._decide)


class AsyncLLM(Model):
    """The same methods as coroutines. Loading blocks."""
    generate = _coroutine(Model._generate)
    chat = _coroutine(Model._chat)
    embed = _coroutine(Model._embed)
    encode = _coroutine(Model._encode)
    classify = _coroutine(Model._classify)
    score = _coroutine(Model._score)
    predict = _coroutine(Model._predict)
    rerank = _coroutine(Model._rerank)
    rank = _coroutine(Model._rank)
    decide = _coroutine(Model._decide)
