#!/usr/bin/env python3
"""Writes the seeds of fuzz/corpus: small inputs that reach the parts of each harness, from requests that are spelt out here and
from the tests' own files, cut small.

    python3 tools/make_fuzz_seeds.py
"""
import json
import pathlib
import struct

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz/corpus"
DATA = ROOT / "tests/data"
MARK = "\n-----\n"
KEPT_TOKENS = 40  # of a vocabulary
STYLES = 5  # of tool calls

# (path, model, body): each field of a route at least once.
REQUESTS = [
    ("/v1/completions", "text", {"prompt": ["ab", [1, 2]], "max_tokens": 5, "n": 2, "temperature": 0.5, "top_p": 0.9, "top_k": 5, "min_p": 0.1, "seed": 3,
                                 "stop": ["lo", "x"], "logprobs": 2, "echo": True, "logit_bias": {"65": 2}, "presence_penalty": 1, "min_tokens": 2}),
    ("/v1/completions", "text", {"prompt": "Hi", "max_tokens": 9, "stream": True, "stream_options": {"include_usage": True}, "include_stop_str_in_output": True,
                                 "stop_token_ids": [70], "ignore_eos": True, "return_token_ids": True, "skip_special_tokens": False, "logprob_token_ids": [1, 9]}),
    ("/v1/completions", "text", {"prompt": "Hi", "prompt_logprobs": 1, "prompt_logprob_start": 1, "allowed_token_ids": [65], "repetition_penalty": 1.2,
                                 "frequency_penalty": -1, "truncate_prompt_tokens": 1, "user": "u", "priority": 1, "slo_ttft_ms": 5, "slo_tpot_ms": 2,
                                 "timeout_ms": 90, "cache_salt": "s", "add_special_tokens": False}),
    ("/v1/completions", "text", {"prompt": "Hi", "guided_choice": ["no", "yes"]}),
    ("/v1/completions", "text", {"prompt": "Hi", "structured_outputs": {"regex": "a+b"}}),
    ("/v1/chat/completions", "text", {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "t"}]}],
                                      "max_completion_tokens": 4, "top_logprobs": 2, "logprobs": True, "stream": True, "chat_template_kwargs": {"mood": "x"},
                                      "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}}}),
    ("/v1/chat/completions", "text", {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "c1", "content": "r"}],
        "tools": [{"type": "function", "function": {"name": "find", "description": "d", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}}],
        "tool_choice": {"type": "function", "function": {"name": "find"}}, "parallel_tool_calls": False, "continue_final_message": False}),
    ("/v1/messages", "text", {"model": "text", "max_tokens": 6, "system": [{"type": "text", "text": "s"}], "messages": [{"role": "user", "content": "x"}],
                              "stop_sequences": ["q"], "stream": True, "tools": [{"name": "f", "input_schema": {"type": "object"}}], "tool_choice": {"type": "auto"}}),
    ("/v1/messages/count_tokens", "text", {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}]}),
    ("/v1/responses", "text", {"input": [{"role": "user", "content": [{"type": "input_text", "text": "t"}]}, {"type": "function_call_output", "call_id": "a",
                               "output": "x"}], "instructions": "i", "max_output_tokens": 6, "stream": True, "text": {"format": {"type": "json_object"}}}),
    ("/api/chat", "text", {"model": "text", "messages": [{"role": "user", "content": "x"}], "stream": False, "format": "json",
                           "options": {"num_predict": 4, "temperature": 0, "stop": ["a"]}}),
    ("/api/generate", "text", {"model": "text", "prompt": "x", "system": "s", "raw": False, "options": {"seed": 1, "top_k": 2}}),
    ("/api/embed", "embed", {"model": "embed", "input": ["a", "b"], "truncate": True, "dimensions": 2}),
    ("/api/show", "text", {"model": "text", "verbose": True}),
    ("/v1/decisions", "text", {"input": "It is late.", "questions": [
        {"id": "a", "type": "predicate", "instructions": "Angry?", "criteria": {"yes": "shouts", "no": "calm"}},
        {"type": "choice", "instructions": "About?", "choices": [{"value": "delivery", "description": "of it"}, {"value": "price"}, {"value": "none"}]},
        {"type": "score", "instructions": "How good?", "levels": [{"value": 1, "label": "bad"}, {"value": 5, "label": "good"}]},
        {"type": "rank", "instructions": "Which?", "choices": [{"value": "x"}, {"value": "y"}]}], "reading": "letters", "prompt": "chat", "cue": "Answer:",
        "examples": [{"input": "Fine.", "answers": {"a": False}}], "diagnostics": True, "spellings": "all"}),
    ("/v1/decisions", "text", {"input": [{"role": "user", "content": "x"}], "questions": [{"type": "predicate", "instructions": "y?"}],
                               "reading": "words+calibrated+permuted", "prompt": "question"}),
    ("/v1/systemone", "laya", {"state": "It is late.", "questions": {"a": {"type": "noul", "instructions": "Angry?"}, "b": {
        "type": "choice", "instructions": "About?", "criteria": {"x": "first", "y": "second"}}, "c": {"type": "score", "instructions": "Good?",
        "criteria": {"1": "bad", "5": "good"}}}, "abstain": {"a": 0.2}}),
    ("/v1/systemone", "sysone", {"state": {"k": [1, None]}, "questions": {"a": {"type": "noul", "instructions": "Angry?"},
                                 "b": {"type": "choice", "instructions": "?", "criteria": ["x", "y"]}}}),
    ("/v1/decisions", "laya", {"input": "x", "questions": [{"type": "predicate", "instructions": "y?"}]}),
    ("/v1/score", "class", {"text_1": "q", "text_2": ["a", "b"], "truncate_prompt_tokens": 20}),
    ("/v1/score", "text", {"query": "q", "items": ["a", [1, 2]], "label_token_ids": [65, 66], "apply_softmax": True, "item_first": True}),
    ("/generative_scoring", "text", {"query": "q", "items": ["a"], "label_token_ids": [1, 2]}),
    ("/rerank", "class", {"query": "q", "documents": ["a", {"text": "b"}], "top_n": 1, "return_documents": True, "raw_scores": False}),
    ("/v2/rerank", "text", {"query": "q", "documents": ["a", "b"], "max_tokens_per_doc": 9}),
    ("/rerank", "class", {"query": "q", "texts": ["a", "b"], "return_text": True, "truncate": True, "truncation_direction": "Left"}),
    ("/v1/embeddings", "embed", {"input": ["a", [5, 6]], "encoding_format": "base64", "dimensions": 4, "prompt_name": "query", "normalize": True}),
    ("/pooling", "embed", {"input": "a", "task": "embed"}),
    ("/classify", "class", {"input": ["a"], "activation": True}),
    ("/embed", "embed", {"inputs": ["a", "b"], "normalize": False, "truncate": True}),
    ("/embed_all", "embed", {"inputs": "a"}),
    ("/predict", "class", {"inputs": [["a", "b"]], "raw_scores": True}),
    ("/similarity", "embed", {"inputs": {"source_sentence": "a", "sentences": ["b", "c"]}}),
    ("/", "text", {"inputs": "a", "parameters": {"max_new_tokens": 4, "do_sample": True, "return_full_text": True, "details": True, "stop": ["x"]}, "stream": True}),
    ("/", "class", {"inputs": "a", "parameters": {"candidate_labels": ["x", "y"], "multi_label": True, "hypothesis_template": "It is {}."}}),
    ("/", "embed", {"inputs": ["a"], "parameters": {"truncation": True}}),
    ("/tokenize", "text", {"prompt": "a <eos>", "add_special_tokens": True, "return_token_strs": True}),
    ("/tokenize", "text", {"messages": [{"role": "user", "content": "x"}], "add_generation_prompt": True}),
    ("/tokenize", "text", {"inputs": ["a", "b"], "add_special_tokens": False}),
    ("/detokenize", "text", {"tokens": [1, 65, 256, 260]}),
    ("/v1/files", "text", {}),
]
GETS = ["/v1/models", "/v1/models/text", "/api/tags", "/api/ps", "/api/version", "/info", "/model_info", "/server_info", "/tokenizer_info", "/health",
        "/livez", "/readyz", "/metrics", "/version", "/", "/v1/batches"]

HTTP = [
    "GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "POST /ab HTTP/1.1\r\nHost: a:80\r\nContent-Length: 5\r\nContent-Type: application/json\r\n\r\nhelloPOST /abcde HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=1\r\nhello\r\n0\r\nT: 1\r\n\r\nHEAD /ab HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /ab HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\nabc",
    "GET http://host/%41%zz?q=1 HTTP/1.0\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\nX-Request-Id: 7\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab",
    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: a\r\nX: y\r\n Content-Length: 2\r\n\r\nab",
]

TEMPLATES = [
    "{{ s|upper }}{% for m in messages %}<|{{ m.role }}|>{{ m['content'] | trim }}{% endfor %}{{ bos_token }}",
    "{% set ns = namespace(n=0) %}{% for i in range(3) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }} {{ x|sort|join(',') }} {{ x[::-1][0:2] }}",
    "{%- macro f(a, b=1) -%}{{ a ~ b }}{%- endmacro -%}{{ f(2) }}{% filter upper %}a{% endfilter %}{{ tools | tojson(indent=2) }}",
    "{% if n > 3 and not (s is defined and s == '') %}{{ loop is undefined }}{% elif n in x %}b{% else %}c{% endif %}{{ n // 2 % 3 }}{{ -n * 2.5 }}",
    "{% for k, v in {'a': 1, 'b': [1, 2]}.items() if v %}{{ loop.index }}{{ loop.last }}{{ k }}{{ v }}{% if loop.first %}{% continue %}{% endif %}{% endfor %}",
    "{{ 'a b'.split(' ')|map('upper')|list }}{{ messages|selectattr('role', 'equalto', 'user')|list|length }}{{ raise_exception('no') }}",
    "{{ s.strip().replace('a', 'b')|title }}{{ (n|string)[0] }}{{ \"\\u00e9\\x41\"|capitalize }}{{ dict(a=1)|items|list }}{{ strftime_now('%Y') }}",
    "{% set t %}x{{ n }}{% endset %}{{ t|default('d')|indent(2)|safe|unique|first }}{# c #}{% generation %}g{% endgeneration %}{% raw %}{{ }}{% endraw %}",
    "{% set o = '{{' ~ '}}' %}{{ o }}" + MARK + '{"messages": [], "n": 1}',
]

SCHEMAS = [
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}, "b": {"type": "array", "items": {"enum": ["x", None, 1.5]}, "minItems": 1}},
     "required": ["a"], "additionalProperties": False},
    {"anyOf": [{"type": "string", "pattern": "^a+$", "maxLength": 3}, {"$ref": "#/$defs/t"}], "$defs": {"t": {"const": {"k": [1]}}}},
    {"type": "object", "patternProperties": {"^x": {"type": "boolean"}}, "unevaluatedProperties": {"type": "number"}},
    {"allOf": [{"type": "object"}, {"properties": {"a": {"format": "date-time"}}}], "prefixItems": [{"type": "null"}], "multipleOf": 2},
]


def write(name, number, data):
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number:02d}").write_bytes(data.encode() if isinstance(data, str) else data)


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def routes():
    heads = [f"POST {path} {model}" for path, model, _ in REQUESTS]
    heads[1] += "\nx-slo-ttft-ms: 5\nx-gateway-inference-fairness-id: u\nx-stainless-read-timeout: 3\nContent-Type: application/json"
    for i, (head, (_, _, body)) in enumerate(zip(heads, REQUESTS)):
        write("routes", i, head + MARK + compact(body))
    for i, path in enumerate(GETS):
        write("routes", len(REQUESTS) + i, f"GET {path} text" + MARK)


def small(tokenizer):
    """The tokenizer with the first tokens of its vocabulary, those that it names elsewhere, and the merges among them."""
    model = tokenizer["model"]
    named = {token["content"] for token in tokenizer.get("added_tokens", [])} | {model.get("unk_token")}
    named |= set(json.dumps(tokenizer.get("post_processor")).split('"'))
    if isinstance(model["vocab"], list):
        model["vocab"] = model["vocab"][:KEPT_TOKENS]
        tokenizer["added_tokens"] = [t for t in tokenizer["added_tokens"] if t["id"] < KEPT_TOKENS]
    else:
        kept = [t for i, t in enumerate(model["vocab"]) if i < KEPT_TOKENS or t in named]
        model["vocab"] = {token: i for i, token in enumerate(kept)}
        for i, token in enumerate(tokenizer.get("added_tokens", [])):
            token["id"] = model["vocab"].get(token["content"], len(kept) + i)
    if "merges" in model:
        pairs = [m if isinstance(m, list) else m.split(" ", 1) for m in model["merges"]]
        model["merges"] = [p for p in pairs if all(part in model["vocab"] for part in (*p, "".join(p)))]
    return tokenizer


def tokenizers():
    for i, folder in enumerate(sorted((DATA / "tokenizers").iterdir())):
        config = json.loads((folder / "tokenizer_config.json").read_text())
        config = {key: value for key, value in config.items() if key != "added_tokens_decoder"}
        text = compact(small(json.loads((folder / "tokenizer.json").read_text()))) + MARK + compact(config)
        if len(text) < 16384:
            write("tokenizer_load", i, text)
        lines = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines()]
        texts = sorted((line["text"] for line in lines if isinstance(line.get("text"), str)), key=len)
        chosen = (texts[len(texts) // 3], texts[2 * len(texts) // 3]) if texts else ("Hello, world! 12", "a <s> é")
        for j, said in enumerate(chosen):
            special = next(t["content"] for t in json.loads((folder / "tokenizer.json").read_text())["added_tokens"] if t["special"])
            write("prompt_text", 2 * i + j, bytes([i]) + f"{said[:60]}{special} \ufdd1{special[:3]}{special}{special}".encode())
            write("tokenizer_text", 2 * i + j, bytes([i, i % 4]) + said.encode()[:300])


def tensors(header, data=b""):
    text = compact(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def configs():
    number = 0
    for folder in sorted((DATA / "models").iterdir()) + sorted((DATA / "encoders").iterdir()):
        if (folder / "config.json").exists() and not folder.name.endswith("-bf16"):
            write("model_config", number, "config" + MARK + compact(json.loads((folder / "config.json").read_text())))
            number += 1
    laya, sysone = DATA / "laya", DATA / "sysone"
    write("model_config", number, "laya" + MARK + compact(json.loads((laya / "rl_agent_config.json").read_text())) + MARK +
          compact(json.loads((laya / "encoder/config.json").read_text())))
    for i, folder in enumerate(sorted(sysone.iterdir())):
        own = json.loads((folder / "config.json").read_text())
        write("model_config", number + 1 + i, "sysone" + MARK + compact(own) + MARK + compact(json.loads((folder / "base/config.json").read_text())))


def loras():
    prefix = "base_model.model.model.layers.0.self_attn.q_proj"
    header = {f"{prefix}.lora_A.weight": {"dtype": "F32", "shape": [2, 4], "data_offsets": [0, 32]},
              f"{prefix}.lora_B.weight": {"dtype": "BF16", "shape": [4, 2], "data_offsets": [32, 48]}}
    config = {"r": 2, "lora_alpha": 4, "target_modules": ["q_proj"], "peft_type": "LORA", "bias": "none", "use_rslora": True, "decision_temperature": 1.5}
    write("lora", 0, (compact(config) + MARK).encode() + tensors(header, bytes(range(48))))
    published = json.loads((DATA / "sysone/modernbert-parallel/adapter/adapter_config.json").read_text())
    write("lora", 1, (compact(published) + MARK).encode() + tensors(header, bytes(48)))


def gguf():
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    def file(version, metadata, directory, data):
        head = b"GGUF" + struct.pack("<IQQ", version, len(directory), len(metadata))
        head += b"".join(text(key) + struct.pack("<I", kind) + value for key, kind, value in metadata)
        head += b"".join(text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in shape) + struct.pack("<IQ", kind, offset)
                         for name, shape, kind, offset in directory)
        return head + bytes(-len(head) % 32) + data

    arrays = struct.pack("<IQ", 8, 2) + text("a") + text("bc")
    metadata = [("general.architecture", 8, text("llama")), ("general.alignment", 4, struct.pack("<I", 32)), ("tokenizer.ggml.tokens", 9, arrays),
                ("x.f", 6, struct.pack("<f", 1.5)), ("x.b", 7, b"\x01"), ("x.i", 11, struct.pack("<q", -5))]
    write("gguf", 0, file(3, metadata, [("a", [32], 0, 0), ("b", [32, 2], 2, 128)], bytes(range(128)) + bytes(36) + bytes(28)))
    # One block of each type: number, bytes.
    blocks = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 12: (256, 144), 13: (256, 176), 14: (256, 210),
              20: (32, 18), 23: (256, 136), 30: (1, 2)}
    for i, (kind, (elements, size)) in enumerate(blocks.items()):
        write("gguf", 1 + i, file(2 + i % 2, metadata[:1], [("t", [elements], kind, 0)], bytes((7 * j + i) % 256 for j in range(size)) + bytes(-size % 32)))


def main():
    routes()
    tokenizers()
    configs()
    loras()
    gguf()
    for i, text in enumerate(HTTP):
        write("http_connection", i, bytes([7 * i % 64, 10]) + text.encode())
        write("http_head", i, text)
    for i, text in enumerate(TEMPLATES):
        write("chat_template", i, text)
    for i, path in enumerate(sorted((DATA / "chat_templates").glob("*.jinja"))):
        write("chat_template", len(TEMPLATES) + i, path.read_text())
    for i, schema in enumerate(SCHEMAS):
        write("grammar", i, "\x00\x01" + compact(schema))
    for i, (kind, text) in enumerate([(1, "(a|b)+[c-z]{2,3}\\d?$"), (2, 'root ::= "a" ("b" | [c-d])* root2?\nroot2 ::= "x"'), (3, 'start: "a" B+\nB: /[x-z]/ | "q"i'),
                                      (4, compact({"type": "structural_tag", "format": {"type": "tag", "begin": "<a>", "content": {"type": "json_schema", "json_schema": {}}, "end": "</a>"}}))]):
        write("grammar", len(SCHEMAS) + i, chr(kind) + "\x02" + text)
    for i, value in enumerate(['{"a": [1, -2.5e3, null, true, "x\\u00e9\\n"], "b": {}}', '[1e999, 18446744073709551615]', '"\\ud800"', "[[[[]]]]", '{"a":1,"a":2}']):
        write("json", i, value)
    write("safetensors", 0, tensors({"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
                                     "b": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]}}, bytes(16)))
    write("safetensors", 1, tensors({"a": {"dtype": "BF16", "shape": [0, 3], "data_offsets": [0, 0]}}))
    write("safetensors", 2, tensors({"a": {"dtype": "F8_E4M3", "shape": [3], "data_offsets": [0, 3]}}, b"abc"))
    count = {"count": 2, "value": 1.5}
    for i, rule in enumerate(("bandit", "q-learning")):
        write("stop_table", i, compact({"policy": rule, "batches": 2, "decisions": 4, "best_reward": 9.5, "states": [
            {"batch": 1, "lost_tokens": 129, "peers": 4, "add": count, "stop": count}, {"batch": 0, "lost_tokens": 0, "peers": 0, "add": count, "stop": {"count": 0, "value": 0}}]}))
    questions = [{"type": "predicate", "instructions": "Angry?"}]
    write("decide_file", 0, compact(questions) + MARK + '"a text"\n\n{"input": "b", "id": 7}\n[{"role": "user", "content": "c"}]\nno JSON\n')
    write("decide_file", 1, compact({"questions": {"a": {"type": "noul", "instructions": "x"}}, "reading": "letters"}) + MARK + '{"state": {"k": 1}, "id": "x"}\n{"input": 1}\n5\n')
    body = "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jsonl\"\r\n" \
           "Content-Type: text/plain\r\n\r\n{}\r\n\r\n--b--\r\n"
    write("form", 0, "multipart/form-data; boundary=b" + MARK + body)
    write("form", 1, 'multipart/form-data; boundary="b"' + MARK + body.replace("\r\n", "\n"))
    call = '{"name": "find", "arguments": {"q": "a}b", "n": [1, {"x": "\\""}]}}'
    calls = [f"I look. <tool_call>\n{call}\n</tool_call> <tool_call>{call}</tool_call>", f"<tool_call>[{call}, {call}]</tool_call>",
             call.replace("arguments", "parameters"), f"[TOOL_CALLS][{call}]", call, "[TOOL_CALLS]find[ARGS]{\"q\": 1}"]
    for i, text in enumerate(calls):
        write("tool_calls", i, chr(min(i, STYLES - 2) if i != 4 else 4) + chr(i) + text)
    for i in range(6):
        write("scheduler", i, bytes([5 + 3 * i]) + struct.pack("<Q", 7919 * i + 1))


if __name__ == "__main__":
    main()
