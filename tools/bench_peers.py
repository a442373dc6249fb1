#!/usr/bin/env python3
"""Times other engines on a model directory as `skein bench forward` times Skein: whole prompts of random tokens up to
the first logits, then decode steps of a batch.

    VENV/bin/python tools/bench_peers.py PEER MODEL [--prompt-tokens 128,512] [--batch 1,4] [--context 128]
                                         [--decode 16] [--repetitions 3] [--threads 2]

PEER: torch (with transformers), llama-bf16, llama-q8_0 and llama-q4_0 (llama.cpp), openvino,
openvino-int8 and openvino-int4 (OpenVINO GenAI), onnx-int4 (ONNX Runtime GenAI), ctranslate2-int8. The last line of the
output is JSON: {"version", "note", "bits" (of a weight), "blocks" (each 32 weights have a scale), "load_s", "resident_mib", "prefill": [{"prompt_tokens",
"tokens_per_s"}], "decode": [{"batch", "context", "tokens_per_s"}]}; medians, a first run warms up. Loading does not count
the import of packages, nor the conversion of the model, which is kept beside it. Memory: what the process has taken since
before loading, behind a first prompt. Needs nothing of Skein; scripts/bench_cpu runs it.
"""
import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

from processes import resident_mib


def median_seconds(run, repetitions):
    """Of run(), after one that does not count."""
    seconds = []
    for _ in range(repetitions + 1):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[1:])


def random_ids(vocab, count, seed):
    numbers = random.Random(seed)
    return [numbers.randrange(vocab) for _ in range(count)]


def vocabulary_size(model):
    return json.loads((pathlib.Path(model) / "config.json").read_text())["vocab_size"]


def gguf_file(model, format, vocabulary=False):
    """The model in this format, written at the first call."""
    from write_gguf import write_gguf

    path = pathlib.Path(f"{model}.{format}{'.vocabulary' if vocabulary else ''}.gguf")
    if not path.exists():
        write_gguf(pathlib.Path(model), path, format, vocabulary=vocabulary)
    return path


def converted(model, name, write):
    """The folder that write(folder) has filled, at the first call."""
    path = pathlib.Path(f"{model}.{name}")
    if not path.exists():
        unfinished = pathlib.Path(f"{model}.{name}.part")
        shutil.rmtree(unfinished, ignore_errors=True)
        write(unfinished)
        unfinished.rename(path)
    return path


class Torch:
    modules = ("torch", "transformers")
    format = "bf16"
    bits = 16

    def __init__(self, model, args):
        import torch
        import transformers

        torch.set_num_threads(args.threads)
        self.torch, self.transformers = torch, transformers
        self.dtype = self.faster_type()
        self.vocab = vocabulary_size(model)
        self.version = f"torch {torch.__version__}, transformers {transformers.__version__}"
        words = "bf16" if self.dtype == torch.bfloat16 else "f32, in which products of 128 rows are faster here, decoding too"
        self.note = f"{words}; {self.kernels(self.dtype)}"

    def load(self, model):
        self.model = self.transformers.AutoModelForCausalLM.from_pretrained(model, dtype=self.dtype).eval()

    def faster_type(self):
        """The type in which a product of 128 rows takes less time: f32 where there are no instructions for bf16."""
        torch = self.torch
        seconds = {}
        for dtype in (torch.bfloat16, torch.float32):
            weight, rows = torch.nn.Linear(1024, 1024, dtype=dtype), torch.randn(128, 1024, dtype=dtype)
            with torch.inference_mode():
                seconds[dtype] = median_seconds(lambda: weight(rows), 3)
        return min(seconds, key=seconds.get)

    def kernels(self, dtype):
        """Words on what oneDNN uses for a product, from its own log."""
        torch = self.torch
        if not torch.backends.mkldnn.is_available():
            return "built without oneDNN"
        read, write = os.pipe()
        former = os.dup(1)
        os.dup2(write, 1)
        try:
            with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
                weight = torch.nn.Linear(256, 256, dtype=dtype)
                weight(torch.randn(64, 256, dtype=dtype))
        finally:
            os.dup2(former, 1)
            os.close(write)
        with open(read) as log:
            kernels = {line.split(",")[6] for line in log if "matmul" in line or "inner_product" in line
                       if line.count(",") > 6 and "exec" in line}
        return f"oneDNN runs {', '.join(sorted(kernels))}" if kernels else "its products do not go through oneDNN"

    def prefill(self, count, repetitions):
        torch = self.torch
        ids = torch.tensor([random_ids(self.vocab, count, 1)])
        with torch.inference_mode():
            return median_seconds(lambda: self.model(ids, logits_to_keep=1, use_cache=True), repetitions)

    def decode(self, batch, context, steps):
        torch = self.torch
        ids = torch.tensor([random_ids(self.vocab, context, seed) for seed in range(batch)])
        with torch.inference_mode():
            cache = self.model(ids, logits_to_keep=1, use_cache=True).past_key_values

            def step():
                nonlocal ids
                logits = self.model(ids[:, -1:], past_key_values=cache, use_cache=True).logits
                ids = logits.argmax(-1)

            return median_seconds(step, steps)


class Llama:
    modules = ("llama_cpp", "gguf")
    format = "bf16"
    bits = 16

    def __init__(self, model, args):
        import llama_cpp

        self.api = llama_cpp
        self.path = gguf_file(model, self.format)
        llama_cpp.llama_backend_init()
        self.vocab = vocabulary_size(model)
        self.threads = args.threads
        self.version = f"llama-cpp-python {llama_cpp.__version__}"
        features = llama_cpp.llama_print_system_info().decode()
        self.note = f"{self.format}; built with " + ", ".join(
            name for name in ("AMX_INT8", "AVX512_BF16", "AVX512_VNNI", "AVX512", "AVX2") if f"{name} = 1" in features)

    def load(self, _model):
        self.model = self.api.llama_model_load_from_file(str(self.path).encode(), self.api.llama_model_default_params())
        if not self.model:
            raise RuntimeError(f"llama.cpp does not load {self.path}")

    def context(self, num_tokens, num_sequences):
        api = self.api
        params = api.llama_context_default_params()
        params.n_ctx = -(-num_tokens // 256) * 256 * num_sequences  # each sequence has its part
        params.n_batch = params.n_ubatch = max(512, num_sequences)
        params.n_seq_max = num_sequences
        params.kv_unified = False
        params.n_threads = params.n_threads_batch = self.threads
        context = api.llama_init_from_model(self.model, params)
        if not context:
            raise RuntimeError("llama.cpp gives no context")
        return context

    def run(self, context, entries):
        """Entries: (token, position, sequence, whether its logits are wanted)."""
        api = self.api
        batch = api.llama_batch_init(len(entries), 0, 1)
        for i, (token, position, sequence, wanted) in enumerate(entries):
            batch.token[i], batch.pos[i], batch.logits[i] = token, position, wanted
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
        batch.n_tokens = len(entries)
        status = api.llama_decode(context, batch)
        api.llama_synchronize(context)
        api.llama_batch_free(batch)
        if status != 0:
            raise RuntimeError(f"llama_decode: {status}")

    def fill(self, context, ids, sequence):
        for first in range(0, len(ids), 512):  # as llama.cpp's own programs feed prompts
            part = ids[first:first + 512]
            self.run(context, [(token, first + i, sequence, first + i == len(ids) - 1) for i, token in enumerate(part)])

    def prefill(self, count, repetitions):
        api = self.api
        context = self.context(count, 1)
        ids = random_ids(self.vocab, count, 1)

        def run():
            api.llama_memory_clear(api.llama_get_memory(context), True)
            self.fill(context, ids, 0)

        seconds = median_seconds(run, repetitions)
        api.llama_free(context)
        return seconds

    def decode(self, batch, context_tokens, steps):
        context = self.context(context_tokens + steps + 2, batch)
        for sequence in range(batch):
            self.fill(context, random_ids(self.vocab, context_tokens, sequence), sequence)
        position = context_tokens
        numbers = random.Random(2)

        def step():
            nonlocal position
            self.run(context, [(numbers.randrange(self.vocab), position, sequence, True) for sequence in range(batch)])
            position += 1

        seconds = median_seconds(step, steps)
        self.api.llama_free(context)
        return seconds


class LlamaQ8(Llama):
    format = "q8_0"
    bits = 8


class LlamaQ4(Llama):
    format = "q4_0"
    bits = 4


class WholeAnswers:
    """An engine without a call for one step, by the clock around whole answers of generate(batch, prompt tokens, new tokens)."""

    def prefill(self, count, repetitions):
        return median_seconds(lambda: self.generate(1, count, 1), repetitions)

    def decode(self, batch, context, steps):
        short, long = (median_seconds(lambda: self.generate(batch, context, count), self.repetitions) for count in (1, steps + 1))
        return (long - short) / steps


class OpenVino(WholeAnswers):
    """Its own time for a token is divided by the batch. It answers prompts that it has seen from a cache."""
    modules = ("openvino_genai", "gguf")
    format = "f16"
    bits = 16

    def __init__(self, model, args):
        import numpy
        import openvino
        import openvino_genai

        self.path = gguf_file(model, self.format, vocabulary=True)
        self.numpy, self.openvino, self.genai = numpy, openvino, openvino_genai
        self.vocab = vocabulary_size(model)
        self.threads, self.repetitions, self.seed = args.threads, args.repetitions, 0
        self.version = f"openvino-genai {openvino_genai.__version__}"
        self.note = (f"from {self.format} GGUF, its default precision on this processor; new prompts each time; "
                     "a step is the difference of whole answers")

    def load(self, _model):
        self.pipeline = self.genai.LLMPipeline(str(self.path), "CPU", INFERENCE_NUM_THREADS=self.threads)

    def generate(self, batch, count, num_new):
        """Answers prompts that it has never seen."""
        self.seed += batch
        ids = self.numpy.array([random_ids(self.vocab, count, self.seed + i) for i in range(batch)], dtype="int64")
        mask = self.numpy.ones_like(ids)
        inputs = self.genai.TokenizedInputs(self.openvino.Tensor(ids), self.openvino.Tensor(mask))
        self.pipeline.generate(inputs, max_new_tokens=num_new, ignore_eos=True, do_sample=False)


class OpenVinoInt8(OpenVino):
    format = "q8_0"
    bits = 8


class OpenVinoInt4(OpenVino):
    format = "q4_0"
    bits = 4


def named_tokens(model):
    """The model with a tokenizer that has a word for each token, which converters insist on."""
    def write(folder):
        import tokenizers

        folder.mkdir()
        for file in pathlib.Path(model).absolute().iterdir():
            if "token" not in file.name:
                (folder / file.name).symlink_to(file)
        words = {f"<{i}>": i for i in range(vocabulary_size(model))}
        tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<0>")).save(str(folder / "tokenizer.json"))
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<0>", "bos_token": "<0>", "eos_token": "<0>"}))

    return converted(model, "named", write)


class CTranslate2(WholeAnswers):
    modules = ("ctranslate2", "transformers", "tokenizers")
    format = "int8"
    bits = 8

    def __init__(self, model, args):
        import ctranslate2

        def write(folder):
            ctranslate2.converters.TransformersConverter(str(named_tokens(model))).convert(str(folder), quantization=self.format)

        self.api, self.folder = ctranslate2, converted(model, f"ctranslate2-{self.format}", write)
        self.vocab = vocabulary_size(model)
        self.threads, self.repetitions = args.threads, args.repetitions
        self.version = f"ctranslate2 {ctranslate2.__version__}"
        self.note = f"{self.format}; a step is the difference of whole answers"

    def load(self, _model):
        self.generator = self.api.Generator(str(self.folder), "cpu", compute_type=self.format, intra_threads=self.threads)

    def generate(self, batch, count, num_new):
        prompts = [[f"<{i}>" for i in random_ids(self.vocab, count, seed)] for seed in range(batch)]
        self.generator.generate_batch(prompts, max_length=num_new, min_length=num_new, sampling_topk=1, beam_size=1,
                                      include_prompt_in_result=False)


class OnnxGenAi:
    modules = ("onnxruntime_genai", "onnx", "onnx_ir", "torch", "transformers")
    format = "int4"
    bits = 4

    def __init__(self, model, args):
        import numpy
        import onnxruntime_genai

        def write(folder):
            builder = pathlib.Path(onnxruntime_genai.__file__).parent / "models/builder.py"
            subprocess.run([sys.executable, builder, "-i", named_tokens(model), "-o", folder, "-p", self.format, "-e", "cpu", "-c", f"{folder}.cache",
                            "--extra_options", "int4_block_size=32", "int4_accuracy_level=4"], check=True, stdout=sys.stderr)

        self.numpy, self.api = numpy, onnxruntime_genai
        self.folder = converted(model, f"onnx-{self.format}", write)
        self.vocab, self.threads = vocabulary_size(model), args.threads
        self.version = f"onnxruntime-genai {onnxruntime_genai.__version__}"
        self.note = f"{self.format} in groups of 32, activations in int8 (accuracy level 4)"

    def load(self, _model):
        config = self.api.Config(str(self.folder))
        config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": self.threads}}}}))
        self.model = self.api.Model(config)

    def begin(self, batch, count, room):
        """A generator that has computed prompts and the first token of each."""
        params = self.api.GeneratorParams(self.model)
        params.set_search_options(batch_size=batch, max_length=count + room, min_length=count + room, do_sample=False)
        generator = self.api.Generator(self.model, params)
        generator.append_tokens(self.numpy.array([random_ids(self.vocab, count, seed) for seed in range(batch)], dtype="int32"))
        generator.generate_next_token()
        return generator

    def prefill(self, count, repetitions):
        return median_seconds(lambda: self.begin(1, count, 1), repetitions)

    def decode(self, batch, context, steps):
        return median_seconds(self.begin(batch, context, steps + 3).generate_next_token, steps)


IN_BLOCKS = ("q8_0", "q4_0", "int4")
PEERS = {"torch": Torch, "llama-bf16": Llama, "openvino": OpenVino,
         "llama-q8_0": LlamaQ8, "openvino-int8": OpenVinoInt8, "ctranslate2-int8": CTranslate2,
         "llama-q4_0": LlamaQ4, "openvino-int4": OpenVinoInt4, "onnx-int4": OnnxGenAi}


def main():
    numbers = lambda text: [int(n) for n in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("model")
    parser.add_argument("--prompt-tokens", type=numbers, default=[128, 512])
    parser.add_argument("--batch", type=numbers, default=[1, 4])
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--decode", type=int, default=16)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr):
        # Another process converts the model: this one would keep the memory, and loading would seem to take none.
        converter = multiprocessing.get_context("fork").Process(target=PEERS[args.peer], args=(args.model, args))
        converter.start()
        converter.join()
        if converter.exitcode:
            raise SystemExit(f"{args.peer} cannot take the model")
        peer = PEERS[args.peer](args.model, args)
        before = resident_mib()
        begin = time.perf_counter()
        peer.load(args.model)
        load_s = time.perf_counter() - begin
        peer.prefill(args.prompt_tokens[0], 1)
        result = {"version": peer.version, "note": peer.note, "bits": peer.bits, "blocks": peer.format in IN_BLOCKS, "load_s": load_s, "resident_mib": resident_mib() - before,
                  "prefill": [{"prompt_tokens": n, "tokens_per_s": n / peer.prefill(n, args.repetitions)} for n in args.prompt_tokens],
                  "decode": [{"batch": b, "context": args.context, "tokens_per_s": b / peer.decode(b, args.context, args.decode)}
                             for b in args.batch]}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
