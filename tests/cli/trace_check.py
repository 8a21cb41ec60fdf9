#!/usr/bin/env python3
"""Checks a trace in Chrome's trace event format by the rules that viewers apply, and against the summary of the profile.

    tests/cli/trace_check.py FOLDER/profile-S000008     checks .trace.json.gz beside .json, .csv and .txt

Rules: strict JSON in UTF-8, known kinds of events, integers as ids, every slice on a named track, slices of a track
disjoint or nested (also after times are truncated to nanoseconds), every arrow with one begin and one end within slices and in
time order. Prints the faults; exit status 1 if there are any."""
import collections
import csv
import gzip
import json
import math
import sys

MAX_EVENTS = 200000
MAX_BYTES = 2 << 20
faults = []


def fault(text):
    faults.append(text)


def refuse(constant):
    fault(f"{constant} is not JSON")


def unique(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        fault(f"a member occurs twice: {names}")
    return dict(pairs)


def parse(data):
    return json.loads(data.decode("utf-8", errors="strict"), parse_constant=refuse, object_pairs_hook=unique)


def nanoseconds(microseconds):
    return int(microseconds * 1000)  # as viewers do: floating point, cut


def check_fields(event):
    kind = event.get("ph")
    if kind not in ("X", "M", "C", "s", "t", "f"):
        fault(f"unknown kind of event: {event}")
    for name in ("pid", "tid"):
        if not isinstance(event.get(name), int):
            fault(f"no {name}: {event}")
    if not isinstance(event.get("name"), str) or not event["name"]:
        fault(f"no name: {event}")
    if kind != "M" and not (isinstance(event.get("ts"), (int, float)) and event["ts"] >= 0):
        fault(f"no time: {event}")
    if kind == "X" and not (isinstance(event.get("dur"), (int, float)) and event["dur"] >= 0):
        fault(f"no duration: {event}")
    if kind in "stf" and not isinstance(event.get("id"), int):
        fault(f"no id: {event}")
    if kind == "C" and not all(isinstance(v, (int, float)) for v in event["args"].values()):
        fault(f"a counter without a number: {event}")


def check_nesting(track, slices):
    stack = []
    for start, end, name in sorted(slices, key=lambda s: (s[0], -s[1])):
        while stack and stack[-1][1] <= start:
            stack.pop()
        if stack and end > stack[-1][1]:
            fault(f"track {track}: '{name}' [{start}, {end}] overlaps '{stack[-1][2]}' [{stack[-1][0]}, {stack[-1][1]}]")
        stack.append((start, end, name))


def check_arrows(events, slices):
    arrows = collections.defaultdict(list)
    for event in events:
        if event["ph"] in "stf":
            arrows[event["id"]].append(event)
    for number, ends in arrows.items():
        kinds = "".join(e["ph"] for e in sorted(ends, key=lambda e: e["ts"]))
        if kinds not in ("sf", "stf"):
            fault(f"arrow {number} is '{kinds}' in time order")
        for event in ends:
            at = nanoseconds(event["ts"])
            if not any(start <= at <= end for start, end, _ in slices[event["pid"], event["tid"]]):
                fault(f"arrow {number} does not touch a slice: {event}")
    return len(arrows)


def check_summary(stem, summary, events, names):
    kernels = [e for e in events if e["ph"] == "X" and "op" in e.get("args", {})]
    calls = sum(row["calls"] for row in summary["kernels"]) * summary["steps"]
    if round(calls) != len(kernels) or not kernels:
        fault(f"{len(kernels)} slices of kernels, but {calls} calls in the summary")
    step = summary["profiled_step_seconds"]
    total = sum(row["seconds"] for row in summary["kernels"])
    rest = summary["phases"]["idle"] + summary["phases"]["copies"]
    if not abs(total + rest - step) <= 0.01 * step:
        fault(f"kernels {total} s and the rest {rest} s are not the step of {step} s")
    in_trace = sum(e["dur"] for e in kernels) * 1e-6 / summary["steps"]
    if not abs(in_trace - total) <= 0.01 * step:
        fault(f"kernels take {in_trace} s in the trace, {total} s in the summary")
    steps = [e for e in events if e["ph"] == "X" and e["name"] == "step"]
    if [e["args"]["step"] for e in steps] != list(range(summary["step"], summary["step"] + summary["steps"])):
        fault(f"the trainer's steps are {[e['args'] for e in steps]}")
    for wanted in ("trainer", "compute", "copy in"):
        if wanted not in names.values():
            fault(f"no track '{wanted}'")
    saved = [row["saves"] for row in summary["kernels"]]
    if summary["rates"] and saved != sorted(saved, reverse=True):
        fault("the kernels are not sorted by their possible savings")
    with open(stem + ".csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == "kernel"]
    if [row["name"] for row in rows] != [row["kernel"] for row in summary["kernels"]]:
        fault("CSV and JSON list different kernels")
    for row, other in zip(rows, summary["kernels"]):
        if not math.isclose(float(row["seconds"]), other["seconds"], rel_tol=1e-6):
            fault(f"CSV and JSON differ: {row}")
    return len(kernels)


def main():
    stem = sys.argv[1]
    with open(stem + ".trace.json.gz", "rb") as file:
        packed = file.read()
    trace = parse(gzip.decompress(packed))
    with open(stem + ".json", "rb") as file:
        summary = parse(file.read())
    events = trace["traceEvents"]
    for event in events:
        check_fields(event)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    threads = collections.defaultdict(set)
    for event in events:
        threads[event["tid"]].add(event["pid"])
    for thread, processes in threads.items():
        if thread == 0 or len(processes) > 1:
            fault(f"thread {thread} of the processes {processes}: viewers require unique thread numbers, and 0 means idle")
    slices = collections.defaultdict(list)
    for event in events:
        if event["ph"] != "X":
            continue
        track = event["pid"], event["tid"]
        start, length = nanoseconds(event["ts"]), nanoseconds(event["dur"])
        slices[track].append((start, start + length, event["name"]))
        if track not in names:
            fault(f"track {track} has no name")
    for track, own in slices.items():
        check_nesting(names.get(track, track), own)
        check_nesting(f"{track}, floating point", [(e["ts"], e["ts"] + e["dur"], e["name"]) for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == track])
    arrows = check_arrows(events, slices)
    if arrows == 0:
        fault("no arrow leads from a batch to its kernels")
    kernels = check_summary(stem, summary, events, names)
    if len(events) > MAX_EVENTS:
        fault(f"{len(events)} events")
    if len(packed) > MAX_BYTES:
        fault(f"{len(packed)} bytes")
    for text in faults[:20]:
        print(text)
    print(f"{len(events)} events, {kernels} kernels, {arrows} arrows, {len(names)} tracks, {len(packed)} bytes, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
