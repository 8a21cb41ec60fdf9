#!/usr/bin/env python3
"""Every 85th value of a 32 x 32 image after each effect of test_effects.c, by scipy and Pillow: prints the table. The
random numbers are those of cleat_random_stream(1, 2, b)."""
import math

import numpy as np
from PIL import Image, ImageEnhance, ImageOps
from scipy.ndimage import gaussian_filter, map_coordinates

S = 32
i, j = np.mgrid[:S, :S]
BYTES = ((5 * i + 3 * j + i * j // 7) % 200 + 20).astype(np.uint8)
COLOURS = np.stack([BYTES, BYTES.T, 255 - BYTES], 2)
M = 20 / 30


def warped(image, yy, yx, ty, xy, xx, tx):
    y, x = i + 0.5 - S / 2, j + 0.5 - S / 2
    at = [yy * y + yx * x + ty + S / 2 - 0.5, xy * y + xx * x + tx + S / 2 - 0.5]
    return map_coordinates(image / 255.0, at, order=1, mode="reflect")


def turned(degrees):
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return warped(BYTES, c, s, 0, -s, c, 0)


def pillow(image):
    return np.asarray(image) / 255.0


grey, colour = Image.fromarray(BYTES), Image.fromarray(COLOURS)
sigma = 2 * 0.43438464051775094  # the first number of stream b = 1
rows = [
    ("rotate", turned(-30 + 60 * 0.90313749425488055)),  # of stream b = 0
    ("blur", gaussian_filter(BYTES / 255.0, sigma, mode="reflect", radius=math.ceil(3 * sigma))),
    ("gamma", (BYTES / 255.0) ** math.exp(math.log(2) * (2 * 0.43438464051775094 - 1))),
    ("shear x", warped(BYTES, 1, 0, 0, 0.3 * M, 1, 0)),
    ("shear y", warped(BYTES, 1, 0.3 * M, 0, 0, 1, 0)),
    ("translate x", warped(BYTES, 1, 0, 0, 0, 1, 150 / 331 * M * S)),
    ("translate y", warped(BYTES, 1, 0, 150 / 331 * M * S, 0, 1, 0)),
    ("rotate by 20", turned(20)),
    ("brightness", pillow(ImageEnhance.Brightness(grey).enhance(1.6))),
    ("contrast", pillow(ImageEnhance.Contrast(grey).enhance(0.4))),
    ("saturation", pillow(ImageEnhance.Color(colour).enhance(1.6))[:, :, 0]),
    ("posterize", pillow(ImageOps.posterize(grey, 8 - round(4 * M)))),
    ("solarize", pillow(ImageOps.solarize(grey, 85))),
    ("autocontrast", pillow(ImageOps.autocontrast(grey))),
    ("equalize", pillow(ImageOps.equalize(grey))),
]
for name, values in rows:
    shown = values.reshape(-1)[::85][:12]
    print(f'{{"{name}", {{{", ".join(f"{v:.7f}" for v in shown)}}}}},')
