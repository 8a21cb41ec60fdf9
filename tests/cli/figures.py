"""Data for test_figures.sh, and comparisons of the figures with what they show.

figures.py make-series FILE | make-shops FILE | make-masks FOLDER plain|dark|classes COUNT
figures.py errors CHECKPOINT DATA PREDICTIONS LOOKBACK    the errors of a checkpoint, against those of all forecasts
figures.py series OUT CHECKPOINT DATA HORIZON             lines and bands of the SVG files, against the table
figures.py outlines OUT IMAGES | structures FIGURES FASTA | texts OUT COUNT
"""
import csv
import datetime
import json
import math
import os
import random
import re
import struct
import sys
import zlib
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def near(found, expected, most, what):
    assert abs(found - expected) <= most, f"{what}: {found} instead of {expected}"


# --- series


def make_series(path):
    random.seed(3)
    start = datetime.datetime(2020, 1, 1)
    with open(path, "w") as out:
        out.write("date,a,b\n")
        for i in range(500):
            a = 50 + 10 * math.sin(i / 4) + random.gauss(0, 1)
            out.write(f"{start + datetime.timedelta(hours=i)},{a:.4f},{0.01 * math.cos(i / 9) + random.gauss(0, 1e-3):.6f}\n")


def make_shops(path):
    with open(path, "w") as out:
        out.write("date,shop,sold\n")
        for shop in "a/b", "../x", "late":
            for i in range(120):
                if shop != "late" or i != 115:
                    out.write(f"{2015 + i // 12}-{i % 12 + 1:02}-01,{shop},{100 + 9 * math.sin(i / 2):.3f}\n")


def table(path):
    with open(path) as file:
        header, *rows = csv.reader(file)
    return header, rows


def scales(checkpoint):
    _, rows = table(f"{checkpoint}/series.csv")
    return {row[1]: float(row[3]) for row in rows if row[0] == "target"}


def errors(checkpoint, data, predictions, lookback):
    header, rows = table(data)
    names, at = header[1:], {row[0].replace(" ", "T"): i for i, row in enumerate(rows)}
    _, found = table(predictions)
    assert len({row[0] for row in found}) == len(rows) - int(lookback) + 1  # every row with enough rows before it
    test = val = len(rows) // 10
    begin, end = len(rows) - val - test, len(rows) - test
    with open(f"{checkpoint}/series_errors.json") as file:
        saved = json.load(file)
    horizon = len(saved) // len(names)
    squares = [[] for _ in saved]
    for row in found:
        last, step = at[row[0]], int(row[2])
        if begin <= last + 1 and last + horizon < end:
            for k in range(len(names)):
                squares[(step - 1) * len(names) + k].append((float(row[3 + k]) - float(rows[last + step][1 + k])) ** 2)
    deviations = scales(checkpoint)
    for i, of_step in enumerate(squares):
        assert len(of_step) == val - horizon + 1
        rmse = math.sqrt(sum(of_step) / len(of_step)) / deviations[names[i % len(names)]]
        near(saved[i], rmse, 1e-4 * rmse, f"error {i}")


def points(path):
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path.get("d"))]


def axis(svg):
    """Values of y from pixels, by the grid and its labels; x of times, by the labels below."""
    labels = [(t.text or "", float(t.get("x")), float(t.get("y"))) for t in svg.iter(f"{SVG}text")]
    ticks = [(y - 4, float(text)) for text, x, y in labels if x < 56 and re.fullmatch(r"-?[\d.e-]+", text)]
    (y0, v0), (y1, v1) = ticks[0], ticks[-1]
    below = [(x, text) for text, x, y in labels if y > 220]
    midnights = [(x, datetime.datetime.fromisoformat(text)) for x, text in below if "-" in text]
    days = []
    for x, text in below:
        _, day = ([m for m in midnights if m[0] <= x] or [(None, midnights[0][1] - datetime.timedelta(days=1))])[-1]
        days.append((x, day + datetime.timedelta(hours=int(text[:2]) if ":" in text else 0)))
    return lambda y: v0 + (y - y0) * (v1 - v0) / (y1 - y0), abs((v1 - v0) / (y1 - y0)), days


def series(out, checkpoint, data, horizon):
    horizon = int(horizon)
    names = table(data)[0][1:]
    header, rows = table(f"{out}/predictions.csv")
    with open(f"{checkpoint}/series_errors.json") as file:
        rmse = json.load(file)
    known = table(data)[1]
    for k, name in enumerate(names):
        [file] = [f for f in os.listdir(f"{out}/figures") if f.startswith(f"{name}-") and f.endswith(".svg")]
        assert file == f"{name}-{rows[0][0].replace(':', '_')}.svg", file
        root = ElementTree.parse(f"{out}/figures/{file}").getroot()
        assert not any("var(" in (e.text or "") for e in root.iter()), "variables of CSS"
        value, pixel, days = axis(root)
        lines = {p.get("class"): points(p) for p in root.iter(f"{SVG}path") if p.get("class") != "grid"}
        assert set(lines) == {"line c7", "line c1", "band"}, set(lines)
        past = [float(row[1 + k]) for row in known[-4 * horizon :]]
        assert len(lines["line c7"]) == len(past)
        for (_, y), expected in zip(lines["line c7"], past):
            near(value(y), expected, pixel, f"past of {name}")
        for h, (_, y) in enumerate(lines["line c1"]):
            expected = float(rows[h][3 + k])
            half = 1.2816 * rmse[h * len(names) + k] * scales(checkpoint)[name]
            near(value(y), expected, pixel, f"prediction of {name}")
            near(value(lines["band"][h][1]), expected + half, pixel, "band")
            near(value(lines["band"][2 * horizon - 1 - h][1]), expected - half, pixel, "band")
        (x0, d0), (x1, d1) = days[0], days[-1]
        hours = (d1 - d0).total_seconds() / 3600
        step = lines["line c1"][1][0] - lines["line c1"][0][0]
        near(step, (x1 - x0) / hours, 0.2, "pixels of an hour")
        first = datetime.datetime.fromisoformat(rows[0][1])
        near(lines["line c1"][0][0], x0 + (first - d0).total_seconds() / 3600 * (x1 - x0) / hours, 0.2, "first hour")


# --- pictures


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def write_png(path, rows, bits, kind):
    head = struct.pack(">IIBBBBB", len(rows[0]) * 8 // (bits * (3 if kind == 2 else 1)), len(rows), bits, kind, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b""))


def read_png(path):
    """Rows of pixels, tuples of samples; of 16 bits the rounded byte; and the palette."""
    with open(path, "rb") as file:
        data = file.read()
    at, parts = 8, {}
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at : at + 8])
        parts[name] = parts.get(name, b"") + data[at + 8 : at + 8 + size]
        at += 12 + size
    width, height, bits, kind = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    channels, depth = 3 if kind == 2 else 1, bits // 8
    bpp = channels * depth
    raw, stride, above, rows = zlib.decompress(parts[b"IDAT"]), width * bpp, bytearray(width * bpp), []
    for y in range(height):
        rule, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        for i in range(stride):
            a, b, c = row[i - bpp] if i >= bpp else 0, above[i], above[i - bpp] if i >= bpp else 0
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            row[i] = (row[i] + (0, a, b, (a + b) // 2, paeth)[rule]) & 255
        above = row
        values = [round(int.from_bytes(row[i : i + 2], "big") / 257) for i in range(0, stride, 2)] if depth == 2 else row
        rows.append([tuple(values[i : i + channels]) for i in range(0, len(values), channels)])
    return rows, parts.get(b"PLTE")


def make_masks(folder, kind, count):
    random.seed(5)
    height, width, colours = 32, 48, [(60, 90, 60), (200, 60, 60), (60, 60, 220), (230, 220, 60)]
    os.makedirs(f"{folder}/images")
    os.makedirs(f"{folder}/masks")
    for n in range(int(count)):
        discs = [(random.randrange(8, 24), random.randrange(8, 40), c) for c in range(1, 4 if kind == "classes" else 2)]
        ids = [[0] * width for _ in range(height)]
        for cy, cx, c in discs:
            for y in range(height):
                for x in range(width):
                    if (y - cy) ** 2 + (x - cx) ** 2 < 40:
                        ids[y][x] = c
        if kind == "dark":
            grey = [[2000 + 4000 * v + random.randrange(500) for v in row] for row in ids]
            write_png(f"{folder}/images/{n}.png", [b"".join(v.to_bytes(2, "big") for v in row) for row in grey], 16, 0)
        else:
            noisy = [[min(255, v + random.randrange(25)) for c in row for v in colours[c]] for row in ids]
            write_png(f"{folder}/images/{n}.png", noisy, 8, 2)
        scale = 1 if kind == "classes" else 255
        write_png(f"{folder}/masks/{n}.png", [[v * scale for v in row] for row in ids], 8, 0)


def brightened(rows):
    """Between the percentiles 1 and 99, if that is below 96: what is dark."""
    values = sorted(v for row in rows for pixel in row for v in pixel)
    low, high = values[len(values) // 100], values[-1 - len(values) // 100]
    if high >= 96:
        return rows
    return [[tuple(max(0, min(255, int(255 * (v - low) / (high - low)))) for v in p) for p in row] for row in rows]


def outlines(out, images):
    names = [name for name in os.listdir(out) if name.endswith(".png")]
    assert sorted(names) == sorted(n for n in os.listdir(f"{out}/figures") if n.endswith(".png")) and len(names) == 12
    edges = 0
    for name in names:
        mask, palette = read_png(f"{out}/{name}")
        image, found = brightened(read_png(f"{images}/{name}")[0]), read_png(f"{out}/figures/{name}")[0]
        height, width = len(mask), len(mask[0])
        assert (len(found), len(found[0])) == (height, width)
        for y in range(height):
            for x in range(width):
                beside = [(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
                edge = any(0 <= r < height and 0 <= c < width and mask[r][c] != mask[y][x] for r, c in beside)
                [v] = mask[y][x]
                colour = tuple(palette[3 * v : 3 * v + 3]) if palette else (213, 94, 0)
                expected = colour if edge and (palette or v) else image[y][x] * (3 // len(image[y][x]))
                assert found[y][x] == expected, f"{name}, row {y}, column {x}: {found[y][x]} instead of {expected}"
                edges += edge
    assert edges > 100
    with open(f"{out}/figures/examples.json") as file:
        document = json.load(file)
    assert len(document["examples"]) == 12 and all(e["truth"] is None and e["image"] for e in document["examples"])


# --- structures and texts


def structures(figures, fasta):
    with open(fasta) as file:
        sequences = re.findall(r"^[ACGU]+$", file.read(), re.M)
    drawn = sorted(name for name in os.listdir(figures) if name.endswith(".svg"))
    lengths = []
    for name in drawn:
        root = ElementTree.parse(f"{figures}/{name}").getroot()
        traces = {p.get("class"): points(p) for p in root.iter(f"{SVG}path") if p.get("class", "").startswith("trace")}
        assert not traces["trace truth"], "no truth is known"
        assert all(0 <= x <= 240 and 0 <= y <= 240 for x, y in traces["trace prediction"])
        lengths.append(len(traces["trace prediction"]))
        places = [s.get("x") for s in root.iter(f"{SVG}svg") if s.get("x")]
        assert len(places) == 2 and places[0] != places[1]
    assert sorted(lengths) == sorted(map(len, sequences))


def texts(out, count):
    _, rows = table(f"{out}/predictions.csv")
    with open(f"{out}/figures/examples.json") as file:
        examples = json.load(file)["examples"]
    with open(f"{out}/figures/index.html", encoding="utf-8") as file:
        page = file.read()
    assert len(examples) == int(count) and len(rows) > int(count)
    for row, example in zip(rows, examples):
        assert (example["name"], example["prediction"], example["truth"]) == (row[0], row[1], None)
        near(example["confidence"], float(row[2]), 1e-4, "confidence")
    assert page.count('data-drawn="class"') == int(count)
    assert "<b>day</b>" not in page and "&lt;b&gt;day" in page
    assert "✗" not in page.split("<script")[0] and "truth:" not in page.split("<script")[0]


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")](*sys.argv[2:])
