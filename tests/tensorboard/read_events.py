#!/usr/bin/env python3
"""Reads TensorBoard event files without TensorBoard: framing, CRC-32C and protobuf wire format are implemented here.
  read_events.py FOLDER          prints a JSON summary of the folder's event files; fails on any fault in them
  read_events.py FOLDER RUN      also compares their scalars with metrics.jsonl and system.jsonl of the run folder RUN
  read_events.py --self-test     finds every flipped byte of a made-up file

Restarts are handled as in TensorBoard: a session that starts at a step drops that step and later ones.
If the package `tensorboard` can be imported, its EventAccumulator must show the same ("accumulator": true)."""
import collections
import json
import math
import pathlib
import struct
import sys
import tempfile

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


class Fault(Exception):
    pass


def require(good, text):
    if not good:
        raise Fault(text)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frames(data):
    at = 0
    while at < len(data):
        require(at + 12 <= len(data), f"an incomplete frame at byte {at}")
        size, crc = struct.unpack_from("<QI", data, at)
        require(crc == masked_crc(data[at:at + 8]), f"wrong checksum of a size at byte {at}")
        require(at + 16 + size <= len(data), f"an incomplete record at byte {at}")
        body = data[at + 12:at + 12 + size]
        require(struct.unpack_from("<I", data, at + 12 + size)[0] == masked_crc(body), f"wrong checksum of a record at byte {at}")
        yield body
        at += 16 + size


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """{number: [value]}: varints as int, 64 and 32 bits and lengths as bytes."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire in (1, 2, 5):
            size, at = (8, at) if wire == 1 else (4, at) if wire == 5 else varint(data, at)
            require(at + size <= len(data), "a field longer than its message")
            value, at = data[at:at + size], at + size
        else:
            raise Fault(f"wire type {wire}")
        found[number].append(value)
    return found


def one(found, number, default=None):
    require(len(found[number]) <= 1, f"field {number} occurs twice")
    return found[number][0] if found[number] else default


class Series:
    """Scalars and texts by tag as [(step, value, time)], after the restarts."""

    def __init__(self):
        self.scalars, self.texts = collections.defaultdict(list), collections.defaultdict(list)
        self.records, self.starts = 0, []

    def add(self, body):
        event = fields(body)
        step, time = one(event, 2, 0), struct.unpack("<d", one(event, 1, bytes(8)))[0]
        self.records += 1
        if event[7]:
            if one(fields(one(event, 7)), 1, 0) == 1:
                self.starts.append(step)
                for series in list(self.scalars.values()) + list(self.texts.values()):
                    series[:] = [entry for entry in series if entry[0] < step]
        for value in fields(one(event, 5, b""))[1]:
            value = fields(value)
            tag = one(value, 1).decode()
            if value[2]:
                self.scalars[tag].append((step, struct.unpack("<f", one(value, 2))[0], time))
            else:
                tensor = fields(one(value, 8))
                plugin = one(fields(one(fields(one(value, 9)), 1)), 1)
                require(one(tensor, 1) == 7 and plugin == b"text", f"{tag}: a tensor that is not text")
                self.texts[tag].append((step, one(tensor, 8).decode(), time))


def event_files(folder):
    return sorted(path for path in pathlib.Path(folder).iterdir() if "tfevents" in path.name)


def read(folder):
    series = Series()
    for path in event_files(folder):
        first = True
        for body in frames(path.read_bytes()):
            if first:
                require(one(fields(body), 3) == b"brain.Event:2", f"{path}: the first record is not a version")
            first = False
            series.add(body)
        require(not first, f"{path}: empty")
    return series


# --- comparison with the run folder


def f32(value):
    return math.nan if value is None else struct.unpack("<f", struct.pack("<f", value))[0]


def lines(path):
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def wanted(run):
    scalars = collections.defaultdict(list)
    for record in lines(run / "metrics.jsonl"):
        for name, value in record.items():
            if name not in ("kind", "epoch", "step"):
                scalars[f"{record['kind']}/{name}"].append((record["step"], f32(value)))
    kept = []
    for record in lines(run / "system.jsonl"):
        if record["kind"] == "start":
            kept = [other for other in kept if other["step"] <= record["step"]]
        kept.append(record)
    for record in kept:
        for name, value in record.get("values", {}).items():
            if value is not None:
                scalars[f"system/{name}"].append((record["step"], f32(value)))
    return scalars


def same(have, want):
    return len(have) == len(want) and all(a[0] == b[0] and (a[1] == b[1] or (math.isnan(a[1]) and math.isnan(b[1])))
                                          for a, b in zip(have, want))


def compare(what, have, want):
    for tag in sorted(set(have) | set(want)):
        require(same(have.get(tag, []), want.get(tag, [])),
                f"{what}: {tag} is {have.get(tag, [])[:4]}..., in the run folder {want.get(tag, [])[:4]}...")


def accumulate(folder):
    """Scalars as TensorBoard itself reads them; None without it."""
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        return None
    reader = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    return {tag: [(entry.step, entry.value) for entry in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


def check(folder, run):
    series = read(folder)
    summary = {"files": [path.name for path in event_files(folder)], "records": series.records, "starts": series.starts,
               "tags": sorted(series.scalars), "texts": {tag: entry[-1][1] for tag, entry in series.texts.items() if entry},
               "scalars": sum(map(len, series.scalars.values())), "accumulator": False,
               "times": [min((e[2] for s in series.scalars.values() for e in s), default=0),
                         max((e[2] for s in series.scalars.values() for e in s), default=0)]}
    if run:
        want = wanted(pathlib.Path(run))
        have = {tag: [entry[:2] for entry in entries] for tag, entries in series.scalars.items() if entries}
        compare("own reader", have, want)
        shown = accumulate(folder)
        if shown is not None:
            compare("EventAccumulator", shown, want)
            summary["accumulator"] = True
    print(json.dumps(summary))


# --- self-test


def self_test():
    require(masked_crc(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF, "CRC-32C")

    def frame(body):
        head = struct.pack("<Q", len(body))
        return head + struct.pack("<I", masked_crc(head)) + body + struct.pack("<I", masked_crc(body))

    good = frame(b"\x1a\rbrain.Event:2") + frame(b"\x10\x03\x2a\x10\x0a\x0e\x0a\x05a/one\x15\x00\x00\x80\x3f\x4a\x00")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "events.out.tfevents.1.h.1"
        path.write_bytes(good)
        require(read(folder).scalars["a/one"][0][:2] == (3, 1.0), "the value")
        for at in range(len(good)):
            for bad in (good[:at] + bytes([good[at] ^ 1]) + good[at + 1:], good[:at]):
                path.write_bytes(bad)
                try:
                    read(folder)
                except Fault:
                    continue
                require(at == len(frame(b"\x1a\rbrain.Event:2")) and len(bad) == at, f"a fault at byte {at} was not found")
    print(f"{2 * len(good)} faulty files, all found")


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["--self-test"]:
            self_test()
        else:
            check(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
    except Fault as fault:
        sys.exit(f"read_events: {fault}")
