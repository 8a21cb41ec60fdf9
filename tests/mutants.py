#!/usr/bin/env python3
"""Breaks the library in one place at a time and checks that a test notices (mutation testing).

  tests/mutants.py BUILD [--only WORD]
  tests/mutants.py BUILD --sample N [--seed S] [--only WORD]

BUILD: a configured build folder of this source tree, in which targets are rebuilt. mutants.tsv has a line for each
mutant: file, text, replacement, test program. The text must occur in the file exactly once. A mutant is killed if the
test program fails or does not build. The source files are restored, also after Ctrl-C. Exit status 1: a mutant survived,
or its line no longer fits the source.

--sample: N mutants drawn at random instead (a comparison, an operator, a constant or a condition of a line is changed) in the
files that mutants_files.tsv lists with their test programs. Each is printed as a line for mutants.tsv, behind "killed" or
"survives"; those that do not compile are not counted.
"""
import argparse
import pathlib
import random
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent
SOURCE = TESTS.parent


def read_mutants(only):
    for number, line in enumerate((TESTS / "mutants.tsv").read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 4:
            sys.exit(f"mutants.tsv:{number}: {len(fields)} fields instead of 4")
        if only in line:
            yield number, *fields


def passes(build, program):
    """Whether the test program builds and passes; None if it does not build."""
    if subprocess.run(["ninja", "-C", str(build), program], stdout=subprocess.DEVNULL, check=False).returncode:
        return None
    try:
        run = subprocess.run([str(build / "tests" / program)], cwd=build, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, timeout=30, check=False)
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def judge(build, mutant):
    """What is wrong with the mutant, or an empty text if it is killed."""
    _, path, text, replacement, program = mutant
    file = SOURCE / path
    whole = file.read_text()
    if whole.count(text) != 1:
        return f"'{text}' occurs {whole.count(text)} times in {path}"
    try:
        file.write_text(whole.replace(text, replacement))
        alive = passes(build, program)
    finally:
        file.write_text(whole)
    if alive is None:
        return "does not build"
    return f"survives {program}" if alive else ""


CHANGES = [(r"(?<=\w) < (?=\w)", " <= "), (r" <= ", " < "), (r"(?<=\w) > (?=\w)", " >= "), (r" >= ", " > "), (r" == ", " != "),
           (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "), (r" \+ 1\b", " + 2"), (r" - 1\b", " - 0"),
           (r"return true;", "return false;"), (r"return false;", "return true;"), (r"(?<=[\w)]) \+ (?=\w)", " - "),
           (r"(?<=[\w)]) \* (?=\w)", " + "), (r"if \((?!status)", "if (!("), (r"\b0\b(?!x)", "1"), (r"\+\+", "--"), (r" \|= ", " &= ")]


def sample(only, count, seed):
    """Mutants at random places of the listed files: number, file, text, replacement, program."""
    places = []
    for line in (TESTS / "mutants_files.tsv").read_text().splitlines():
        if line.startswith("#") or only not in line:
            continue
        path, program = line.split("\t")
        whole = (SOURCE / path).read_text()
        for text in whole.splitlines():
            if not text.startswith("    ") or "cleat_fail" in text or "cleat_log" in text or whole.count(text) != 1:
                continue
            code = re.sub(r'"[^"]*"|/\*.*', lambda found: "\0" * len(found.group()), text)
            for pattern, new in CHANGES:
                for found in re.finditer(pattern, code):
                    changed = text[:found.start()] + new + text[found.end():]
                    if new == "if (!(":
                        end = changed.rfind(")")
                        changed = changed[:end] + ")" + changed[end:]
                    places.append((0, path, text, changed, program))
    random.Random(seed).shuffle(places)
    return places[:count]


def run_sample(build, mutants):
    killed = survivors = 0
    for mutant in mutants:
        wrong = judge(build, mutant)
        if wrong == "does not build":
            continue
        killed += not wrong
        survivors += bool(wrong)
        print("survives" if wrong else "killed", *mutant[1:], sep="\t", flush=True)
    for program in sorted({mutant[4] for mutant in mutants}):
        passes(build, program)
    print(f"{killed + survivors} mutants, {killed} killed")
    return survivors > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--only", default="", help="only lines that contain this")
    parser.add_argument("--sample", type=int, help="number of random mutants")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.sample:
        return run_sample(arguments.build.resolve(), sample(arguments.only, arguments.sample, arguments.seed))
    mutants, bad = list(read_mutants(arguments.only)), 0
    for program in sorted({mutant[4] for mutant in mutants}):
        if not passes(arguments.build.resolve(), program):
            sys.exit(f"{program} fails without a mutant")
    for mutant in mutants:
        wrong = judge(arguments.build.resolve(), mutant)
        bad += bool(wrong)
        print(f"{'FAILED' if wrong else 'killed'}: mutants.tsv:{mutant[0]}: {wrong or mutant[1]}", flush=True)
    for program in sorted({mutant[4] for mutant in mutants}):
        passes(arguments.build.resolve(), program)
    print(f"{len(mutants)} mutants, {len(mutants) - bad} killed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
