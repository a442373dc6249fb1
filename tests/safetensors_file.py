"""Writes safetensors files for tests, without a package."""
import json
import struct


def write_safetensors(path, tensors):
    """`tensors`: name -> NumPy array, stored as F32."""
    header, data = {}, b""
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": array.shape,
                        "data_offsets": [len(data), len(data) + 4 * array.size]}
        data += array.astype("<f4").tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
