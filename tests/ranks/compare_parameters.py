#!/usr/bin/env python3
"""Compares the parameters of two checkpoints: prints the largest difference, relative to the largest value of its tensor.

    compare_parameters.py CHECKPOINT CHECKPOINT [norm]

With `norm`: the Euclidean norm of the difference of all parameters, relative to that of the parameters.
"""
import array
import json
import struct
import sys


def read(folder):
    """The f32 tensors of a checkpoint by name."""
    with open(folder + "/model.safetensors", "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            start, end = entry["data_offsets"]
            tensors[name] = array.array("f", data[start:end])
    return tensors


def main():
    first, second = read(sys.argv[1]), read(sys.argv[2])
    if not first or first.keys() != second.keys():
        sys.exit("the checkpoints have different tensors")
    largest = 0.0
    squares = [0.0, 0.0]
    for name, values in first.items():
        scale = max(max(abs(v) for v in values), 1e-30)
        difference = max(abs(a - b) for a, b in zip(values, second[name], strict=True))
        if difference != difference:
            sys.exit(f"{name}: not finite")
        largest = max(largest, difference / scale)
        squares[0] += sum((a - b) ** 2 for a, b in zip(values, second[name], strict=True))
        squares[1] += sum(a * a for a in values)
    print(f"{(squares[0] / squares[1]) ** 0.5 if sys.argv[3:] == ['norm'] else largest:.3g}")


main()
