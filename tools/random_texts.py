"""Random texts to compare tokenizers with, and what the reference makes of them."""
import json

SCRIPTS = [(0x20, 0x7E), (0xA0, 0x17F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF),
           (0x900, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x27BF),
           (0x2E80, 0x30FF), (0x4E00, 0x4FFF), (0xAC00, 0xAFFF), (0xF900, 0xFFFD),
           (0x10000, 0x1FFFF), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF)]
SNIPPETS = ["def f(x):\n\treturn x**2  # no\n", "for (int i = 0; i < n; ++i) {\r\n", "it's we'LL I'd don\u2019t ",
            "'\u017f", "'S", "'Re", "1234567890", "\u00bd\u00b2", "\u0661\u0662\u0663", "   ", "\n\n\n", " \t ", "\r\n",
            "\u2581", " \u2581", "\u00a0", "\u3000", "\u200d", "\ufeff", "\u0000", "\ufffd", "<0x41>", "A\u030a", "\u1100\u1161\u11a8",
            "\u2026", "\u00ad", "e\u0301\u0323", "\u0e01\u0e33", "\u0915\u094d\u0937\u093f", "\u00a9\u200d\u00a9\u0301",
            "\u0600a", "\ufdfa", "\ufb01", "\u0130\u01c5", "\u1e9e", "\u03a3\u03c2", "\u0344\u0323", "\uac00\u11a8", "\U0001f1e9\U0001f1ea\U0001f1eb",
            "{\"key\": [1, 2.5e-3, null], \"b\": {\"c\": \"d\\n\"}}", "<a href=\"x\">y</a>", "Hello world", "the quick brown fox", "a", "-----", "=" * 20, "!!!", "\u4f60\u597d", "\U0001f468\u200d\U0001f469\u200d\U0001f467"]


def random_text(rng, specials):
    parts = []
    for _ in range(rng.randrange(1, 9)):
        kind = rng.randrange(9)
        if kind <= 2:
            low, high = rng.choice(SCRIPTS)
            parts.append("".join(chr(rng.randint(low, high)) for _ in range(rng.randrange(1, 12))))
        elif kind <= 5:
            parts.append(rng.choice(SNIPPETS))
        elif kind == 6:
            parts.append("".join(
                chr(c) for c in (rng.randrange(0x110000) for _ in range(rng.randrange(1, 8)))
                if not 0xD800 <= c < 0xE000))
        elif kind == 7:
            parts.append(rng.choice(["a", " ", "\n", "9", "ab", "\u00e9", "\u5b57", "\u0301", "(", "x "])
                         * rng.randrange(1, 60))
        elif specials:
            special = rng.choice(specials)
            cut = rng.randrange(4)
            parts.append(special if cut < 2 else special[:-1] if cut == 2 else special[1:])
        if rng.randrange(3) == 0:
            parts.append(" " * rng.randrange(1, 4))
    return "".join(parts)


def added_tokens(folder):
    state = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    return [token["content"] for token in state["added_tokens"]]


def random_line(rng, specials):
    """A line for `skein tokenize --full`."""
    line = {"text": random_text(rng, specials)}
    if rng.randrange(3) > 0:
        line["pair"] = random_text(rng, specials)
    if rng.randrange(3) == 0:
        line["truncation"] = {
            "max_length": rng.choice([4, 5, 7, 10, 20, 60]), "direction": rng.choice(["right", "left"]),
            "strategy": rng.choice(["longest_first", "longest_first", "only_first", "only_second"])}
    return line


def encode_full(reference, line, special):
    """What `skein tokenize --full` should answer; of an error only that there is one."""
    if "truncation" in line:
        reference.enable_truncation(**line["truncation"])
    else:
        reference.no_truncation()
    try:
        encoding = reference.encode(line["text"], line.get("pair"), add_special_tokens=special)
    except Exception:  # pylint: disable=broad-except
        return {"error": ""}
    return {"ids": encoding.ids, "type_ids": encoding.type_ids, "offsets": [list(o) for o in encoding.offsets]}
