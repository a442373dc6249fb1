#!/usr/bin/env python3
"""Times sentence-transformers on an encoder's directory, by one of its backends.

    VENV/bin/python tools/encoder_peers.py PEER MODEL EXPORTS --prepare
    VENV/bin/python tools/encoder_peers.py PEER MODEL EXPORTS [--threads 2] [--sample-s 1] [--vectors]

PEER: a backend and a precision, such as torch-f32 (PEERS). MODEL is a directory with modules.json. --prepare writes the
backend's own files to EXPORTS, where they are not there yet. Without it, the last line of the output is JSON: {"version",
"note", "load_s" (from the end of the imports to the first embedding), "start_s" (from the start of the process to there),
"rates" (texts/s by point), "resident_mib", "imports_mib" (of it before loading), "vectors"}. Nothing is asked of the network. Needs nothing of Skein;
scripts/bench_encoders runs it.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import sys
import time

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", CUDA_VISIBLE_DEVICES="")

from encoder_points import all_texts, calibration, measured  # noqa: E402: the environment precedes imports
from processes import resident_mib  # noqa: E402


def process_age_s():
    """Since this process started; counted in hundredths."""
    with open("/proc/self/stat") as file:
        ticks = int(file.read().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def version_of(*packages):
    import importlib.metadata

    return ", ".join(f"{package} {importlib.metadata.version(package)}" for package in ("sentence-transformers", *packages))


class Torch:
    packages = ("torch", "transformers")

    def __init__(self, precision, model, exports, threads):
        import sentence_transformers
        import torch

        torch.set_num_threads(threads)
        self.precision, self.model, self.exports, self.threads = precision, model, exports, threads
        self.SentenceTransformer, self.torch = sentence_transformers.SentenceTransformer, torch

    def prepare(self):
        """Nothing: the directory is read as it is."""

    def load(self):
        dtype = {"f32": self.torch.float32, "bf16": self.torch.bfloat16}[self.precision]
        return self.SentenceTransformer(str(self.model), device="cpu", model_kwargs={"dtype": dtype})

    def note(self, loaded):
        return f"attention by {loaded[0].auto_model.config._attn_implementation}"


class Exported(Torch):
    """A backend that reads files of its own, in `exports`/`backend`."""
    backend, file = "", ""

    def __init__(self, *args):
        super().__init__(*args)
        self.folder = self.exports / self.backend

    def prepare(self):
        if not (self.folder / self.file).exists():
            exporting = self.SentenceTransformer(str(self.model), device="cpu", backend=self.backend, model_kwargs={"export": True})
            exporting.save_pretrained(str(self.folder))
        if self.precision == "int8" and not (self.folder / self.int8_file()).exists():
            self.quantize(self.load_file(self.file))

    def load(self):
        return self.load_file(self.int8_file() if self.precision == "int8" else self.file)

    def load_file(self, file):
        return self.SentenceTransformer(str(self.folder), device="cpu", backend=self.backend, model_kwargs={"file_name": file, **self.options()})


class Onnx(Exported):
    packages = ("onnxruntime", "optimum", "optimum-onnx", "transformers")
    backend, file = "onnx", "onnx/model.onnx"

    def __init__(self, *args):
        super().__init__(*args)
        import onnxruntime
        import optimum.onnxruntime  # noqa: F401: an import that is no part of loading

        self.onnxruntime = onnxruntime

    @staticmethod
    def instructions():
        """Sentence-transformers' name of its rules for this processor."""
        with open("/proc/cpuinfo") as file:
            return "avx512_vnni" if "avx512_vnni" in file.read() else "avx2"

    def int8_file(self):
        return f"onnx/model_qint8_{self.instructions()}.onnx"

    def options(self):
        options = self.onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        return {"session_options": options, "provider": "CPUExecutionProvider"}

    def quantize(self, loaded):
        import sentence_transformers

        sentence_transformers.export_dynamic_quantized_onnx_model(
            loaded, self.instructions(), str(self.folder), file_suffix=f"qint8_{self.instructions()}")

    def note(self, _):
        return "dynamic, by the rules for " + self.instructions() if self.precision == "int8" else "as exported by optimum"


class OpenVino(Exported):
    packages = ("openvino", "optimum-intel", "transformers")
    backend, file = "openvino", "openvino/openvino_model.xml"

    def __init__(self, *args):
        super().__init__(*args)
        import optimum.intel.openvino

        self.optimum = optimum.intel.openvino

    def int8_file(self):
        return "openvino/openvino_model_qint8_quantized.xml"

    def options(self):
        hint = {} if self.precision == "int8" else {"INFERENCE_PRECISION_HINT": self.precision}
        return {"ov_config": {"INFERENCE_NUM_THREADS": str(self.threads), **hint}}

    def quantize(self, loaded):
        """As sentence-transformers' export_static_quantized_openvino_model, but calibrated with texts of this project: its own are
        fetched from the network."""
        import nncf

        wanted = {port.get_any_name() for port in loaded[0].auto_model.model.inputs}
        samples = [{name: array for name, array in loaded.tokenizer(text, truncation=True, max_length=loaded.max_seq_length, return_tensors="np").items()
                    if name in wanted} for text in calibration()]
        quantizer = self.optimum.OVQuantizer.from_pretrained(loaded[0].auto_model)
        config = self.optimum.OVConfig(quantization_config=self.optimum.OVQuantizationConfig(num_samples=len(samples)))
        out = self.folder / "quantized"
        quantizer.quantize(nncf.Dataset(samples), save_directory=out, ov_config=config)
        for suffix in (".bin", ".xml"):
            (out / "openvino/openvino_model").with_suffix(suffix).rename((self.folder / self.int8_file()).with_suffix(suffix))
        shutil.rmtree(out)

    def note(self, loaded):
        said = f"static, calibrated with {len(calibration())} pieces of this project's pages; " if self.precision == "int8" else ""
        precision = loaded[0].auto_model.request.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        return f"{said}other operators in {precision}" if self.precision == "int8" else f"inference precision {precision}"


PEERS = {f"{name}-{precision}": (peer, precision)
         for name, peer, precisions in (("torch", Torch, ("f32", "bf16")), ("onnx", Onnx, ("f32", "int8")), ("openvino", OpenVino, ("f32", "bf16", "int8")))
         for precision in precisions}


def run(peer, sample_s, vectors):
    imports_mib, begin = resident_mib(), time.perf_counter()
    loaded = peer.load()

    def embed(texts):
        return loaded.encode(texts, batch_size=len(texts), normalize_embeddings=True, show_progress_bar=False)

    embed(all_texts()[:1])
    result = {"load_s": time.perf_counter() - begin, "start_s": process_age_s()}
    result |= {"version": version_of(*peer.packages), "note": peer.note(loaded), "rates": measured(embed, sample_s)}
    result |= {"resident_mib": resident_mib(), "imports_mib": imports_mib}
    if vectors:
        result["vectors"] = [vector.tolist() for text in all_texts() for vector in embed([text])]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("exports", type=pathlib.Path)
    parser.add_argument("--prepare", action="store_true", help="write the backend's own files, and measure nothing")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--sample-s", type=float, default=1.0, help="seconds of each point at least")
    parser.add_argument("--vectors", action="store_true", help="also the embeddings of all texts")
    args = parser.parse_args()
    kind, precision = PEERS[args.peer]
    with contextlib.redirect_stdout(sys.stderr):
        peer = kind(precision, args.model, args.exports, args.threads)
        result = peer.prepare() if args.prepare else run(peer, args.sample_s, args.vectors)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
