#!/usr/bin/env python3
"""Writes the TIFF files of tests/data/test_tiff.c with tifffile and Pillow, from real pictures.
  make.py BLOOD_CELLS.jpg NUCLEI.png     (pip install tifffile imagecodecs pillow)
cases.tsv: a file, and the PNG file with the pixels that a reader must return, or after '!' words of its refusal. The PNG
files are the arrays that were written; those of lossy files are what Pillow reads."""
import pathlib
import sys

import numpy as np
import tifffile
from PIL import Image

here = pathlib.Path(__file__).parent
cases = []
H, W = 22, 37
rgb = np.array(Image.open(sys.argv[1]).convert("RGB"))[40:40 + H, 60:60 + W]
grey = np.array(Image.open(sys.argv[2]).convert("L"))[:H, :W]
wide = (grey.astype(np.uint32) * 257 + np.arange(H * W).reshape(H, W) * 7).clip(0, 65535).astype(np.uint16)
wide_rgb = (rgb.astype(np.uint32) * 251 + np.arange(H * W * 3).reshape(H, W, 3) % 997).astype(np.uint16)
one = grey > np.median(grey)


def png(name, array):
    """16 bits as a PNG reader must round them: Pillow cannot write RGB of 16 bits."""
    if array.dtype == np.uint16:
        array = ((array.astype(np.uint64) * 510 + 65535) // 131070).astype(np.uint8)
    Image.fromarray(array).save(here / f"{name}.png", optimize=True)


png("rgb", rgb), png("grey", grey), png("wide", wide), png("wide_rgb", wide_rgb)
png("one", one.astype(np.uint8) * 255)


def good(name, array, expected, **options):
    tifffile.imwrite(here / f"{name}.tif", array, **options)
    cases.append(f"{name}.tif\t{expected}.png")


def bad(name, array, words, **options):
    tifffile.imwrite(here / f"{name}.tif", array, **options)
    cases.append(f"{name}.tif\t!{words}")


for word, array, kind in ("grey", grey, "minisblack"), ("rgb", rgb, "rgb"), ("wide", wide, "minisblack"), ("wide_rgb", wide_rgb, "rgb"):
    good(f"{word}_none", array, word, photometric=kind, rowsperstrip=5)
    good(f"{word}_tiles", array, word, photometric=kind, tile=(16, 16))
    good(f"{word}_lzw", array, word, photometric=kind, compression="lzw", predictor=True, byteorder=">" if "wide" in word else "<")
    good(f"{word}_deflate", array, word, photometric=kind, compression="zlib", predictor=True, tile=(32, 16))
for codec in "zstd", "lzma", "packbits", "lerc":
    good(f"wide_{codec}", wide, "wide", compression=codec)
good("rgb_webp", rgb, "rgb", photometric="rgb", compression="webp", compressionargs={"lossless": True})
good("grey_big", grey, "grey", bigtiff=True, byteorder=">")
good("rgb_planes", np.moveaxis(rgb, 2, 0), "rgb", photometric="rgb", planarconfig="separate", rowsperstrip=7)
good("wide_planes_tiles", np.moveaxis(wide_rgb, 2, 0), "wide_rgb", photometric="rgb", planarconfig="separate", tile=(16, 32), compression="zlib")
good("rgb_alpha", np.dstack([rgb, 255 - grey]), "rgb", photometric="rgb", extrasamples=["unassalpha"])
good("grey_alpha", np.dstack([grey, 255 - grey]), "grey", photometric="minisblack", planarconfig="contig", extrasamples=["assocalpha"])
good("planes_alpha", np.moveaxis(np.dstack([wide_rgb, wide]), 2, 0), "wide_rgb", photometric="rgb", planarconfig="separate", extrasamples=["unassalpha"])
good("grey_white0", 255 - grey, "grey", photometric="miniswhite")
good("wide_white0", 65535 - wide, "wide", photometric="miniswhite")
good("turned", grey, "grey", extratags=[(274, 3, 1, 6, True)])
good("grey_imagej", grey, "grey", imagej=True)
good("wide_ome", wide, "wide", ome=True)
good("unknown_tag", grey, "grey", extratags=[(50001, 2, 5, "cell", True)])
with tifffile.TiffWriter(here / "pyramid.tif") as file:
    file.write(wide, subifds=1)
    file.write(wide[::2, ::2], subfiletype=1)
cases.append("pyramid.tif\twide.png")
with tifffile.TiffWriter(here / "preview_first.tif") as file:
    file.write(grey[::4, ::4], subfiletype=1)
    file.write(grey)
cases.append("preview_first.tif\tgrey.png")

# Few bits, fax codes, and the lossy ones, by Pillow and imagecodecs.
for codec in "group3", "group4", "packbits":
    Image.fromarray(one).save(here / f"one_{codec}.tif", compression=codec)
    cases.append(f"one_{codec}.tif\tone.png")
for word, array, kind in ("grey", grey, None), ("rgb", rgb, None):
    Image.fromarray(array).save(here / f"{word}_jpeg.tif", compression="jpeg", quality=90)
    Image.open(here / f"{word}_jpeg.tif").save(here / f"{word}_jpeg.png", optimize=True)
    cases.append(f"{word}_jpeg.tif\t{word}_jpeg.png")
tifffile.imwrite(here / "ycbcr_tiles.tif", rgb, photometric="ycbcr", compression="jpeg", tile=(16, 16), compressionargs={"level": 90}, subsampling=(2, 2))
Image.open(here / "ycbcr_tiles.tif").convert("RGB").save(here / "ycbcr_tiles.png", optimize=True)
cases.append("ycbcr_tiles.tif\tycbcr_tiles.png")

for bits in 2, 4:
    few = grey >> (8 - bits)
    png(f"bits{bits}", (few * (255 // (2**bits - 1))).astype(np.uint8))
    good(f"bits{bits}", few, f"bits{bits}", bitspersample=bits)

bad("stack", np.stack([grey, grey, grey]), "3 pages (a stack)", photometric="minisblack")
bad("stack_imagej", np.stack([wide, wide]), "2 pages (a stack)", imagej=True)
bad("stack_imagej_one", wide, "7 pages (a stack)", description="ImageJ=1.54f\nimages=7\nslices=7\n", metadata=None)
bad("stack_ome", np.stack([wide, wide, wide, wide]), "4 pages (a stack)", ome=True, photometric="minisblack")
bad("float", grey.astype(np.float32) / 255, "32 bits, floating-point")
bad("half", grey.astype(np.float16), "16 bits, floating-point")
bad("signed", grey.astype(np.int16), "16 bits, signed")
bad("int8", (grey // 2).astype(np.int8), "8 bits, signed")
bad("bits32", grey.astype(np.uint32), "32 bits")
bad("bits64", grey.astype(np.uint64), "64 bits")
bad("palette", grey, "8 bits with a palette", photometric="palette", colormap=np.arange(768, dtype=np.uint16).reshape(3, 256))
bad("cmyk", np.dstack([rgb, grey]), "4 channels, CMYK", photometric="separated")
bad("two", np.stack([grey, grey]), "2 channels", photometric="minisblack", planarconfig="separate")
bad("five", np.dstack([wide] * 5), "5 channels", photometric="minisblack", planarconfig="contig")
bad("infrared", np.dstack([rgb, grey]), "4 channels", photometric="rgb", extrasamples=["unspecified"])
bad("bits12", (wide >> 4), "12 bits", bitspersample=12)
cases.sort()
(here / "cases.tsv").write_text("\n".join(cases) + "\n")
