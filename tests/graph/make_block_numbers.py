#!/usr/bin/env python3
"""Writes block_numbers.h: values of weights in blocks by the reference implementations, gguf and bitsandbytes."""
import math
import os

import numpy
import torch
from bitsandbytes import functional
from gguf import GGMLQuantizationType, quants

COUNT, STEP = 64 * 300, 131


def value(i):
    return math.sin(0.37 * i) * (1 + i // 64 % 7) * 0.05 + 0.001 * math.cos(1.7 * i)


def main():
    x = numpy.array([value(i) for i in range(COUNT)], dtype=numpy.float32)
    kind = GGMLQuantizationType.Q8_0
    q8 = quants.dequantize(quants.quantize(x.reshape(-1, 64), kind), kind).reshape(-1)
    kind = GGMLQuantizationType.Q4_1
    q4 = quants.dequantize(quants.quantize(x.reshape(-1, 64), kind), kind).reshape(-1)
    packed, state = functional.quantize_4bit(
        torch.from_numpy(x), blocksize=64, compress_statistics=True, quant_type="nf4"
    )
    nf4 = functional.dequantize_4bit(packed, state).numpy().reshape(-1)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "block_numbers.h")
    with open(path, "w", encoding="utf-8") as file:
        file.write("/* Every 131st value of a weight in blocks: see make_block_numbers.py, which wrote this file. */\n")
        for name, values in (("q8", q8), ("nf4", nf4), ("q4", q4)):
            texts = ["%.9gf" % v if "." in "%.9g" % v or "e" in "%.9g" % v else "%.9g.0f" % v for v in values[::STEP]]
            file.write("static const float %s_numbers[] = {\n    %s,\n};\n" % (name, ", ".join(texts)))


main()
