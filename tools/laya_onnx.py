#!/usr/bin/env python3
"""Export a Laya model to ONNX, or serve such an export by the package's own ONNX runtime, for comparisons.

    python tools/laya_onnx.py export MODEL FILE
    python tools/laya_onnx.py int8 FILE OUT           weights in int8, activations rounded for each product
    python tools/laya_onnx.py serve MODEL FILE PORT   until it is ended

`serve` answers /v1/systemone and /health; requests run one at a time, each on all cores. Needs the
packages laya, torch, onnx, onnxruntime.
"""
import http.server
import json
import sys
import threading

INPUTS = ["input_ids", "attention_mask", "marker_pos", "marker_mask", "qtype"]


def export(model, path):
    import torch
    from laya import agent as laya_agent

    module = laya_agent.Agent(model, device="cpu").model.float().eval()
    ids = torch.randint(0, 100, (2, 40))
    example = (ids, torch.ones_like(ids), torch.tensor([[3, 9, 12]] * 2), torch.ones(2, 3, dtype=torch.bool), torch.tensor([0, 1]))
    axes = {name: {0: "rows", 1: "tokens"} for name in INPUTS[:2]} | {name: {0: "rows", 1: "options"} for name in INPUTS[2:4]}
    torch.onnx.export(module, example, path, input_names=INPUTS, output_names=["logits", "act_logits"], opset_version=18, dynamo=False,
                      dynamic_axes=axes | {"qtype": {0: "rows"}, "logits": {0: "rows", 1: "options"}, "act_logits": {0: "rows"}})


def to_int8(path, out):
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(onnx.load(path), out, per_channel=True, weight_type=QuantType.QInt8)


def serve(model, path, port):
    from laya.onnx_agent import ONNXAgent

    agent = ONNXAgent(model, onnx_path=path)
    gate = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def send(self, body):
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            self.send({"status": "ok"})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with gate:
                answer = agent.system_one(body["state"], body["questions"], max_len=body.get("max_len"))
            self.send(answer)

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "export":
        export(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 4 and sys.argv[1] == "int8":
        to_int8(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 5 and sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        sys.exit(__doc__)
