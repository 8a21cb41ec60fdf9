#!/usr/bin/env python3
"""Turns passports of one device (cleat passport) into its card file and its file of tuned kernels.

    tools/passport_merge.py PASSPORT ... [--name NAME] [--cards DIR] [--out DIR] [--check] [--readme FILE] ...

Writes OUT/NAME.ini and, if kernels other than the default were faster, OUT/NAME.tuned, and prints the row of the
device for the table "trained on". A card file CARDS/NAME.ini that exists keeps its title, its peaks and their
sources; what the passports measured replaces the rest. A passport that is damaged is refused with its line.

--readme FILE puts the row into the table of FILE, between the lines `<!-- trained-on: begin -->` and
`<!-- trained-on: end -->`, in place of the row of the same device. The table's head chooses the columns.
Without passports the tables are only checked.
"""
import argparse
import re
import statistics
import sys
import zlib
from pathlib import Path

FORMATS = ("1", "2")  # 2: with a section of failures
SECTIONS = ["passport", "host", "device", "rates", "doctor", "check", "bench", "tune", "failures", "end"]
VENDORS = ("nvidia", "amd", "intel", "pocl")
UNITS = ("none", "nv70", "nv75", "nv80", "amd_dot", "amd_wmma", "amd_mfma", "intel8", "intel16")


class Refused(Exception):
    """A passport that cannot be used: where, and why."""


# --- reading -----------------------------------------------------------------------------------------------------


class Passport:
    """The sections of one passport: {section: {key: (value, line number)}}."""

    def __init__(self, path):
        self.path = str(path)
        self.sections = {}
        self.ends_at = 1
        self.read(Path(path))
        self.check_sections()

    def refuse(self, line, why):
        raise Refused(f"{self.path}:{line}: {why}")

    def read(self, path):
        """Blank lines, comments and the marks of a code block do not count, nor do blanks around a line."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Refused(f"{self.path}: cannot be read: {error}") from error
        section, summed, count = None, 0, 0
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.strip()
            self.ends_at = number
            if not line or line.startswith(";") or line.startswith("```"):
                continue
            if line.startswith("[") and line.endswith("]"):
                section = line[1:-1]
                if section in self.sections:
                    self.refuse(number, f"section [{section}] occurs twice: one passport a file is expected")
                self.sections[section] = {}
            elif section is None:
                self.refuse(number, "text before the first section; a passport begins with [passport]")
            else:
                key, equals, value = line.partition(" = ")
                if not equals:
                    self.refuse(number, f"'key = value' is expected, not '{line[:60]}'")
                if key in self.sections[section]:
                    self.refuse(number, f"'{key}' occurs twice in [{section}]")
                self.sections[section][key] = (value, number)
            if section != "end":
                summed = zlib.crc32((line + "\n").encode(), summed)
                count += 1
        self.check_sum(count, summed)

    def check_sum(self, count, summed):
        if "end" not in self.sections:
            self.refuse(self.ends_at, "section [end] is missing: the text is not complete; paste all of it")
        lines, at = self.find("end", "lines")
        if lines != str(count):
            self.refuse(at, f"the passport had {lines} lines, here are {count}: lines were lost or added")
        crc, at = self.find("end", "crc32")
        if crc != f"{summed:08x}":
            self.refuse(at, f"check sum {summed:08x}, the passport had {crc}: the text was changed")

    def check_sections(self):
        value, at = self.find("passport", "format")
        if value not in FORMATS:
            self.refuse(at, f"format {value}: this script reads the formats {' and '.join(FORMATS)}")
        expected = [name for name in SECTIONS if name != "failures" or value != "1"]
        if list(self.sections) != expected:
            self.refuse(1, f"the sections are {', '.join(self.sections)}; expected: {', '.join(expected)}")
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", self.get("passport", "date")):
            self.refuse(self.find("passport", "date")[1], "date: must be YYYY-MM-DD")
        if "failed" in self.sections["device"]:
            value, at = self.find("device", "failed")
            self.refuse(at, f"the device did not open, so there is nothing to merge: {value}")
        if "failed" in self.sections["rates"]:
            value, at = self.find("rates", "failed")
            self.refuse(at, f"the rates were not measured, so there is no card file to make: {value}")

    def find(self, section, key):
        """Value and line number."""
        if key not in self.sections.get(section, {}):
            self.refuse(self.ends_at, f"[{section}] {key} is missing")
        return self.sections[section][key]

    def get(self, section, key):
        return self.find(section, key)[0]

    def choice(self, section, key, choices):
        value, at = self.find(section, key)
        if value not in choices:
            self.refuse(at, f"{key} = {value}: must be {', '.join(choices)}")
        return value

    def number(self, section, key, positive=True):
        value, at = self.find(section, key)
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not number < float("inf") or number < 0 or (positive and number == 0):
            self.refuse(at, f"{key} = {value}: must be a number greater than 0")
        return number

    def whole(self, section, key):
        return int(self.number(section, key))

    def optional(self, section, key):
        """A number that may be unknown in a passport: then None."""
        if key not in self.sections[section] or self.get(section, key) == "unknown":
            return None
        return self.number(section, key, positive=False)


# --- the card file -----------------------------------------------------------------------------------------------


def median(passports, section, key):
    return statistics.median(p.number(section, key) for p in passports)


def source(passports):
    """The entry of [source] for every value from a passport."""
    dates = sorted({p.get("passport", "date") for p in passports})
    newest = max(passports, key=lambda p: p.get("passport", "date"))
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]} ({len(passports)} passports, medians)"
    return f"passport of {when}, driver {newest.get('device', 'driver')}, cleat {newest.get('passport', 'cleat')}"


def facts(passports):
    """{key of [card]: (value, key of [source], remark)} as the driver of the newest passport reports them."""
    p = max(passports, key=lambda one: one.get("passport", "date"))
    total, free = p.whole("device", "memory_total"), p.optional("device", "memory_free")
    unit = p.get("device", "matrix_unit")
    taken = "measured: total - free" if free else "assumption: the driver did not report the free memory"
    reserved = max(total - int(free), 0) if free else total // 20
    made = {
        "memory": (total, "memory", ""),
        "reserved": (reserved, "reserved", taken),
        "max_allocation": (min(p.whole("device", "max_allocation"), total), "max_allocation", ""),
    }
    for key in ("alignment", "local_memory", "max_work_group", "compute_units"):
        made[key] = (p.whole("device", key), key, "")
    for key in ("unified_memory", "half_extension", "double_extension"):
        made[key] = (p.choice("device", key, ("true", "false")), "extensions", "")
    made["matrix_unit"] = (unit if unit in UNITS else "none", "matrix_unit", "tried on the card")
    return made


def speeds(passports, old):
    """{key of [speed]: (value, remark)}. Peaks of an older file stay, unless the card was faster."""
    flops = median(passports, "rates", "flops") / 1e12
    gigabytes = median(passports, "rates", "bytes") / 1e9
    launch = median(passports, "rates", "launch_seconds") * 1e6
    matrix = [p.optional("rates", "matrix_flops") for p in passports]
    matrix = [m / 1e12 for m in matrix if m]
    made = {"launch_us": (f"{launch:.3g}", "measured")}
    sustained = "measured, sustained; the peak is not known"
    for peak, efficiency, measured in (
        ("f32_tflops", "gemm_efficiency", flops),
        ("bandwidth_gb", "bandwidth_efficiency", gigabytes),
    ):
        if old and float(old["speed"][peak]) >= measured:
            share = max(measured / float(old["speed"][peak]), 0.01)
            made[efficiency] = (f"{share:.3g}", f"measured: {measured:.4g} of the peak {old['speed'][peak]}")
        else:
            made[peak] = (f"{measured:.4g}", sustained)
            made[efficiency] = ("1", sustained)
    if not old:
        made["f16_tflops"] = (f"{flops:.4g}", "assumption: as f32")
        made["matrix_tflops"] = (f"{statistics.median(matrix):.4g}" if matrix else "0", "measured, sustained")
    return made


def read_card(path):
    """{section: {key: value}} of a card file; None if there is none."""
    if not path.exists():
        return None
    card, section = {}, None
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[] ")
            card[section] = {}
        elif section and " =" in line and not line.startswith((";", "#")):
            key, _, value = line.partition("=")
            card[section][key.strip()] = value.strip()
    return card


def new_card(passports):
    """Values that no passport contains."""
    p = passports[0]
    gib = p.number("device", "memory_total") / 2**30
    return {
        "card": {
            "title": f"{p.get('device', 'name')}, {gib:.3g} GiB",
            "vendor": p.choice("device", "vendor", VENDORS),
            "kind": p.choice("device", "kind", ("GPU", "CPU")).lower(),
            "match": p.get("device", "name").replace("|", " "),
        },
        "speed": {},
        "loader": {"workers": "2"},
        "source": {"workers": "assumption: not in passports; cleat find-workers measures it"},
    }


CARD_KEYS = """title vendor kind match memory reserved max_allocation alignment local_memory max_work_group
compute_units unified_memory half_extension double_extension matrix_unit""".split()
SPEED_KEYS = """f32_tflops f16_tflops matrix_tflops bandwidth_gb gemm_efficiency bandwidth_efficiency
launch_us""".split()
SOURCE_KEYS = """memory reserved max_allocation alignment local_memory max_work_group compute_units extensions
matrix_unit""".split()


def make_card(passports, old):
    """The text of the card file."""
    card = old or new_card(passports)
    where = source(passports)
    for key, (value, name, remark) in facts(passports).items():
        card["card"][key] = value
        card["source"][name] = where + (f": {remark}" if remark else "")
    for key, (value, remark) in speeds(passports, old).items():
        card["speed"][key] = value
        card["source"][key] = f"{where}: {remark}"
    power = [key for key in ("board_watts",) if key in card["speed"]]  # optional; not in passports
    lines = [f"# {card['card']['title']}. Written by tools/passport_merge.py."]
    for section, keys in (
        ("card", CARD_KEYS),
        ("speed", SPEED_KEYS + power),
        ("loader", ["workers"]),
        ("source", SOURCE_KEYS + SPEED_KEYS + power + ["workers"]),
    ):
        lines += ["", f"[{section}]"] + [f"{key} = {card[section][key]}".rstrip() for key in keys]
    return "\n".join(lines) + "\n"


# --- tuned kernels -----------------------------------------------------------------------------------------------


def answers(passports):
    """{node: variant} on which all passports with an answer agree; a default is no answer."""
    found = {}
    for p in passports:
        for key, (value, at) in p.sections["tune"].items():
            if " -> " not in key:
                continue
            if not re.fullmatch(r"\S+( [0-9.e+]+ \S+)?", value):
                p.refuse(at, f"'{value}': must be VARIANT SPEEDUP DEFAULT")
            found.setdefault(key, set()).add(value.split()[0])
    return {key: next(iter(variants)) for key, variants in sorted(found.items()) if len(variants) == 1}


def make_tuned(passports, match):
    """The text of the file of tuned kernels; None: the defaults are the fastest everywhere."""
    chosen = answers(passports)
    if not chosen:
        return None
    p = max(passports, key=lambda one: one.get("passport", "date"))
    device = f"{p.get('device', 'name')}, {p.get('device', 'platform')}, driver {p.get('device', 'driver')}"
    head = {
        "device": f"{device}, {p.get('device', 'compute_units')} units",
        "kernels": p.get("tune", "kernels"),
        "date": p.get("passport", "date"),
        "match": match or p.get("device", "name"),
        "shape": p.get("device", "shape"),
    }
    lines = [f"; Kernels faster than the default, from a {source(passports)}. tools/passport_merge.py", "[tuned]"]
    lines += [f"{key} = {value}" for key, value in head.items()] + ["", "[choices]"]
    return "\n".join(lines + [f"{key} = {value}" for key, value in chosen.items()]) + "\n"


# --- the table ---------------------------------------------------------------------------------------------------


def passed(passports, precision):
    """'9 of 9': families whose reference training passed."""
    results = [
        value
        for p in passports
        for key, (value, _) in p.sections["check"].items()
        if key.endswith(f" {precision}") and not value.startswith("skipped")
    ]
    return f"{sum(value.startswith('ok') for value in results)} of {len(results)}" if results else "not tried"


def is_busy(passport):
    """Whether the host had other work: rates measured beside it are too low."""
    load, cpus = passport.optional("host", "load"), passport.optional("host", "cpus")
    return bool(load and cpus and load > 0.5 * cpus)


def row(passports):
    """{column: cell}"""
    p = max(passports, key=lambda one: one.get("passport", "date"))
    busy = " (busy host)" if any(is_busy(one) for one in passports) else ""
    return {
        "device": p.get("device", "name").replace("|", "/"),
        "driver": f"{p.get('device', 'platform')}, {p.get('device', 'driver')}".replace("|", "/"),
        "f32": passed(passports, "f32"),
        "f16": passed(passports, "f16"),
        "bf16": passed(passports, "bf16"),
        "TFLOP/s": f"{median(passports, 'rates', 'flops') / 1e12:.3g}{busy}",
        "GB/s": f"{median(passports, 'rates', 'bytes') / 1e9:.3g}{busy}",
        "version": p.get("passport", "cleat"),
        "date": p.get("passport", "date"),
    }


# What a cell of a column may be; every other column takes any text.
PASSED = r"\d+ of \d+|not tried"
RATE = r"\d[\d.e+-]*( \(busy host\))?"
CELLS = {
    "device": r".+",
    "f32": PASSED,
    "f16": PASSED,
    "bf16": PASSED,
    "TFLOP/s": RATE,
    "GB/s": RATE,
    "date": r"\d{4}-\d\d-\d\d",
}
COLUMNS = "device driver f32 f16 bf16 TFLOP/s GB/s version date".split()
BEGIN, END = "<!-- trained-on: begin -->", "<!-- trained-on: end -->"


def markdown(cells):
    return "| " + " | ".join(cells) + " |"


def split_row(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def check_cells(place, cells):
    for column, cell in cells.items():
        if cell and not re.fullmatch(CELLS.get(column, ".*"), cell):
            raise Refused(f"{place}: '{cell}' in column '{column}'")
    if not cells["device"]:
        raise Refused(f"{place}: the row names no device")


def read_table(path, lines):
    """Line numbers of both markers, the columns, and the rows of the table."""
    at = [number for number, line in enumerate(lines) if line.strip() in (BEGIN, END)]
    if len(at) != 2 or [lines[number].strip() for number in at] != [BEGIN, END] or at[1] < at[0] + 3:
        raise Refused(f"{path}: a table between one line '{BEGIN}' and one line '{END}' is expected")
    columns, rows = split_row(lines[at[0] + 1]), []
    for column in columns:
        if column not in COLUMNS:
            raise Refused(f"{path}:{at[0] + 2}: column '{column}': must be one of {', '.join(COLUMNS)}")
    if "device" not in columns:
        raise Refused(f"{path}:{at[0] + 2}: the table needs a column 'device'")
    for number in range(at[0] + 3, at[1]):
        cells = split_row(lines[number])
        if len(cells) != len(columns):
            raise Refused(f"{path}:{number + 1}: {len(cells)} cells; the table has {len(columns)} columns")
        rows.append(dict(zip(columns, cells)))
        check_cells(f"{path}:{number + 1}", rows[-1])
    return at, columns, rows


def update_table(path, new):
    """The text of the file with the row `new` (None: none) in its table; rows are sorted by device."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: cannot be read: {error}") from error
    at, columns, rows = read_table(path, lines)
    if new:
        rows = [one for one in rows if one["device"] != new["device"]] + [new]
    rows.sort(key=lambda one: one["device"].lower())
    table = [markdown(columns), "|" + "---|" * len(columns)]
    table += [markdown(one[column] for column in columns) for one in rows]
    return "\n".join(lines[: at[0] + 1] + table + lines[at[1] :])


# --- the command -------------------------------------------------------------------------------------------------


def same_device(passports):
    """Refuses passports of different devices."""
    first = passports[0]
    for p in passports[1:]:
        for key in ("name", "vendor", "memory_total"):
            value, at = p.find("device", key)
            if value != first.get("device", key):
                p.refuse(at, f"{key} = {value}, but {first.path} is of a device with {first.get('device', key)}")


def warn_of_load(passports):
    """Warns of passports whose rates were measured beside other work: they are too low."""
    for p in filter(is_busy, passports):
        load, at = p.find("host", "load")
        cpus = p.get("host", "cpus")
        print(f"{p.path}:{at}: warning: a load of {load} on {cpus} CPUs: the rates are low", file=sys.stderr)


def warn_of_changes(passports):
    """Warns of variables of cleat, which change the device that is described, and of failures."""
    for p in passports:
        value, at = p.sections["host"].get("environment", ("", 0))
        if "CLEAT_" in value:
            print(f"{p.path}:{at}: warning: not the device as it is: {value}", file=sys.stderr)
        count, at = p.sections.get("failures", {}).get("count", ("0", 0))
        if count != "0":
            print(f"{p.path}:{at}: warning: {count} failures; see [failures]", file=sys.stderr)


def find_name(passports, cards):
    """The card file whose `match` names the device, or a new name made of the device's."""
    device = passports[0].get("device", "name")
    for path in sorted(cards.glob("*.ini")):
        match = read_card(path).get("card", {}).get("match", "")
        if any(part.strip() and part.strip().lower() in device.lower() for part in match.split("|")):
            return path.stem
    return re.sub(r"[^a-z0-9]+", "_", device.lower()).strip("_")[:31].strip("_")


def merge_tables(args, new):
    """All tables are read before the first one is written."""
    texts = [update_table(path, new) for path in args.readme]
    for path, text in zip(args.readme, texts):
        if not args.check:
            path.write_text(text, encoding="utf-8")


def merge(args):
    if not args.passports and args.readme:
        merge_tables(args, None)
        return
    if not args.passports:
        raise Refused("no passport; --help")
    passports = [Passport(path) for path in args.passports]
    same_device(passports)
    warn_of_load(passports)
    warn_of_changes(passports)
    name = args.name or find_name(passports, args.cards)
    if not re.fullmatch(r"[a-z0-9_]{1,31}", name):
        raise Refused(f"--name {name}: must be 1 to 31 letters a to z, digits and _")
    old = read_card(args.cards / f"{name}.ini")
    card, match = make_card(passports, old), old["card"].get("match") if old else None
    tuned = make_tuned(passports, match)
    merge_tables(args, row(passports))
    if not args.check:
        out = args.out or args.cards
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{name}.ini").write_text(card, encoding="utf-8")
        if tuned:
            (out / f"{name}.tuned").write_text(tuned, encoding="utf-8")
        print(f"{out / name}.ini{' and .tuned' if tuned else ''}", file=sys.stderr)
    print(markdown(row(passports).values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("passports", nargs="*", metavar="PASSPORT")
    parser.add_argument("--name", help="name of the card file (that of the card file that matches, or a new one)")
    parser.add_argument("--cards", type=Path, default=Path(__file__).resolve().parent.parent / "profiles/devices")
    parser.add_argument("--out", type=Path, help="folder for the files (the folder of --cards)")
    parser.add_argument("--readme", type=Path, action="append", default=[], metavar="FILE",
                        help="put the row into the table of FILE")
    parser.add_argument("--check", action="store_true", help="write nothing; print the row of the table")
    try:
        merge(parser.parse_args())
    except Refused as refused:
        sys.exit(f"passport_merge: {refused}")


if __name__ == "__main__":
    main()
