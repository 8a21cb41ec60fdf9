"""Reads a safetensors file with NumPy only: read(PATH) returns a dictionary of arrays."""
import json
import pathlib

import numpy as np

DTYPES = {"F32": np.float32, "I32": np.int32, "I64": np.int64, "F64": np.float64}


def read(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        part = np.frombuffer(data[8 + size + begin : 8 + size + end], DTYPES[entry["dtype"]])
        found[name] = part.reshape(entry["shape"])
    return found
