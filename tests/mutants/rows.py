#!/usr/bin/env python3
"""The lists of mutants fit the sources: files exist, texts occur as often as the runners need, tests are known."""
import ast
import pathlib
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
SHELL, PTX = TESTS / "virtual_card/test_mutants.sh", TESTS / "virtual_card/test_ptx_mutants.py"
# What test_mutants.sh does with one card, its changes and the comments of its barriers printed instead of tested.
CALLS = """set -u; passes() { :; }; fresh() { :; }; mutant() { printf '%s\\0' "$3" "$4"; }; unit() { printf '%s\\0' "$2" "$3"; }
barriers() { local word; for word in 'barrier(CLK_LOCAL_MEM_FENCE);' "${@:4}"; do printf '%s\\0' "$3" "$word"; done; }
cleat=true died=1 survived=0 card=$1; eval "$(sed -n '/^linear=/,$p' "$2" | grep -v '^echo ')" """


def rows():  # place, file, text, names of tests
    for name in ("mutants.tsv", "survivors.tsv", "files.tsv"):
        for number, line in enumerate((TESTS / "mutants" / name).read_text().splitlines(), 1):
            if not line.startswith("#"):
                file, text, *more = line.split("\t")
                tests = {"mutants.tsv": more[1:2], "files.tsv": text.split()}.get(name, [])
                yield f"{name}:{number}", file, "" if name == "files.tsv" else text, tests
    cards = sorted(set(re.findall(r"\$card [!=]= (\w+)", SHELL.read_text())))
    for card in cards:
        words = subprocess.run(["bash", "-c", CALLS, "-", card, SHELL], capture_output=True, text=True, check=True).stdout.split("\0")
        if len(words) < 3:
            yield f"{SHELL.name} {card}", "none", "no change of this card is found", []
        yield from ((f"{SHELL.name} {card}", f"cl/{file}", text, []) for file, text in zip(words[::2], words[1::2]))
    stems = re.findall(r'^    "(\w+)": \[\n((?:        .*\n)*)', PTX.read_text(), re.M)
    if not cards or not stems or len(stems) != len(re.findall(r'": *\[', PTX.read_text())):
        yield SHELL.parent.name, "none", f"only {len(cards)} cards and {len(stems)} sources are found", []
    for stem, change in stems:
        yield from ((PTX.name, f"tests/virtual_card/{stem}.c", row[0], []) for row in ast.literal_eval(f"[{change}]"))


names = {f"{'.'.join(p.relative_to(TESTS).parts[:-1])}.{p.stem[5:]}" for p in TESTS.rglob("test_*.*")}
names |= set(re.findall(r"cleat_(?:test|script)\(([\w.]+)", (TESTS / "CMakeLists.txt").read_text()))
wrong = []
for place, path, text, tests in rows():
    sources = [p.read_text() for p in TESTS.parent.glob(path) if p.is_file()]
    count = sum((" ".join(s.split()) if place.startswith("survivors") else s).count(text) for s in sources)
    if not (sources and (count == 1 if place.startswith("mutants") else count)):
        wrong.append(f"{place}: {count} times in {path}: {text}")
    wrong += [f"{place}: no test {name}" for name in tests if name not in names | {known.replace(".", "_") for known in names}]
sys.exit("\n".join(wrong) or 0)
