#!/usr/bin/env python3
"""The numbers of test_sweep.c, by a separate implementation of Philox4x32-10: python3 tests/sweep/draws.py
A value is drawn from the stream with the key (seed, 0) and the counter (0, 0, number of the draw, of the axis)."""
import math


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def uniform(seed, draw, axis):
    block = philox([0, 0, draw, axis], [seed, 0])
    return ((block[0] >> 5) * 67108864 + (block[1] >> 6)) / 9007199254740992


def below(seed, draw, axis, n):
    return philox([0, 0, draw, axis], [seed, 0])[0] * n >> 32  # rejection is rare enough: none here


def main():
    # Random123's known answer for counter and key 0
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    for draw in range(4):
        rate = 1e-5 * (1e-2 / 1e-5) ** uniform(7, draw, 0)
        decay = 0 + uniform(7, draw, 1) * 0.5
        layers = 2 + math.floor(uniform(7, draw, 2) * 7)
        seed = [11, 12, 13][below(7, draw, 3, 3)]
        print(f'{{"{rate:.4g}", "{decay:.4g}", "{layers}", "{seed}"}},')


main()
