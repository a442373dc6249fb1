"""Builds the `precompiled_charsmap` of sentencepiece-style normalizers: a table of byte strings to texts.

Layout: length of the trie in bytes (u32, little endian), the trie (u32 each), then the texts, each ended by
a zero byte. The trie is a double array: a unit holds its label in bits 0-7, whether a value hangs below it
in bit 8, and the distance to its children (exclusive or of positions) in bits 10-31, times 256 if bit 9 is set.
"""
import struct


def build_charsmap(mapping):
    """`mapping`: bytes without zero bytes -> text."""
    texts, places = bytearray(), {}
    for text in sorted(set(mapping.values())):
        places[text] = len(texts)
        texts += text.encode() + b"\0"
    root = {}
    for key, text in mapping.items():
        node = root
        for byte in key:
            node = node.setdefault(byte, {})
        node[0] = places[text]  # byte 0: the value

    units, used, bases = {}, {0}, {0}
    first_free = 1

    def place(node, position):
        """Chooses where the children of the node at `position` lie: base ^ byte."""
        nonlocal first_free
        while first_free in used:
            first_free += 1
        lowest = min(node)
        candidate = first_free
        while True:
            base = candidate ^ lowest
            distance = position ^ base
            if (base not in bases and not any(base ^ byte in used for byte in node)
                    and (distance < 1 << 21 or distance % 256 == 0)):
                break
            candidate += 1
        bases.add(base)
        used.update(base ^ byte for byte in node)
        offset = distance << 10 if distance < 1 << 21 else (distance >> 8) << 10 | 1 << 9
        units[position] = units.get(position, 0) | offset | (1 << 8 if 0 in node else 0)
        for byte, child in node.items():
            if byte == 0:
                units[base] = child | 1 << 31
            else:
                units[base ^ byte] = byte
                place(child, base ^ byte)

    place(root, 0)
    # A lookup may touch any unit of a block of 256; units that nothing uses carry a label no byte has.
    size = (max(used) // 256 + 1) * 256
    trie = [units.get(i, 1 << 31) for i in range(size)]
    return struct.pack("<I", 4 * size) + struct.pack(f"<{size}I", *trie) + bytes(texts)
