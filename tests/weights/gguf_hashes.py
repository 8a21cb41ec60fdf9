#!/usr/bin/env python3
"""Prints the table of hashes of test_gguf.c: 64 blocks of each type, as gguf.quants.dequantize unpacks them."""
import gguf
import numpy as np

SCALES = {"Q4_1": [0, 2], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
state = 1


def byte():
    global state
    state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
    return state >> 24


for name in ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"]:
    kind, state = gguf.GGMLQuantizationType[name], 1
    values, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.array([byte() for _ in range(64 * size)], np.uint8).reshape(64, size)
    for at in [size - 2] if values == 1 else SCALES.get(name, [0]):
        blocks[:, at + 1] = blocks[:, at + 1] & 0x83 | 0x30
    plain = {"F32": np.float32, "F16": np.float16}.get(name, np.uint8)
    result = gguf.quants.dequantize(blocks.reshape(1, -1).view(plain), kind).astype(np.float32)
    total = 14695981039346656037
    for one in result.tobytes():
        total = (total ^ one) * 1099511628211 % 2**64
    print(f"{{CLEAT_GGUF_TYPE_{name}, 0x{total:016x}}},")
