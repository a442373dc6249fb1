"""Reads and writes safetensors files for tests, without a package."""
import json
import struct

import numpy

# The arrays that stand for each type; bf16 and FP8 are their bits.
ARRAYS = {"F32": numpy.float32, "F16": numpy.float16, "BF16": numpy.uint16, "F64": numpy.float64, "I32": numpy.int32,
          "I64": numpy.int64, "I8": numpy.int8, "F8_E4M3": numpy.uint8}
TYPES = {numpy.dtype(array): name for name, array in ARRAYS.items()}


def read_raw(path):
    """name -> (type, shape, bytes)."""
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]])
            for name, entry in header.items()}


def write_raw(path, entries, metadata=None):
    """entries: name -> (type, shape, bytes)."""
    header, data = {"__metadata__": metadata} if metadata else {}, []
    end = 0
    for name, (dtype, shape, raw) in entries.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + len(raw)]}
        data.append(raw)
        end += len(raw)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def read_safetensors(path):
    """name -> array (ARRAYS)."""
    return {name: numpy.frombuffer(raw, ARRAYS[dtype]).reshape(shape) for name, (dtype, shape, raw) in read_raw(path).items()}


def write_safetensors(path, tensors):
    """tensors: name -> array (ARRAYS); numbers of 64 bits are written as F32."""
    entries = {}
    for name, array in tensors.items():
        if array.dtype == numpy.float64:
            array = array.astype(numpy.float32)
        entries[name] = (TYPES[array.dtype], array.shape, numpy.ascontiguousarray(array).tobytes())
    write_raw(path, entries)


def bf16(array):
    """f32 rounded to nearest even, as bits; of numbers, not of NaN."""
    bits = numpy.ascontiguousarray(array, dtype=numpy.float32).view(numpy.uint32)
    return ((bits + numpy.uint32(0x7fff) + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def widened(array):
    """An array of ARRAYS' numbers as f32."""
    if array.dtype == numpy.uint16:
        return (array.astype(numpy.uint32) << 16).view(numpy.float32)
    return array.astype(numpy.float32)
