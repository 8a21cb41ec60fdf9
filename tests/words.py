#!/usr/bin/env python3
"""Checks that the words of words.tsv are not used: old names in code, and phrases that are no technical English.
  tests/words.py [FOLDER]        FOLDER: another source tree than this one
  tests/words.py --shrink        takes the files that are clean off the list words_allowed.txt
  tests/words.py --self-test     finds planted words

Names have no exceptions. Phrases are still allowed in the files that words_allowed.txt lists; a file there that is
clean, or is gone, is a fault: the list only shrinks."""
import pathlib
import re
import sys
import tempfile

ROOMS = ("src", "include", "cl", "tools", "tests")
C = {".c", ".h", ".cl", ".clh"}
OTHER = {".sh", ".py"}
TABLE, ALLOWED = "tests/words.tsv", "tests/words_allowed.txt"
OWN = {"tests/words.py", TABLE, ALLOWED}
HERE = pathlib.Path(__file__).resolve().parent.parent
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def split_c(text):
    """(code, comments and literals), each with the other blanked out. Adjacent literals, and the lines of a comment,
    read as one text."""
    code = re.sub(r"#\s*include[^\n]*", lambda m: blank(m[0]), TOKEN.sub(lambda m: blank(m[0]), text))
    prose, end = [], 0
    for m in TOKEN.finditer(text):
        gap = text[end:m.start()]
        prose += ["\0" if gap.strip() else "", blank(gap), m[0]]
        end = m.end()
    return code, re.sub(r"\n[ \t]*\*(?!/)", lambda m: "\n" + " " * (len(m[0]) - 1), "".join(prose)).replace('"', " ")


def read_table(folder):
    """[(where, pattern, use)]. A blank of a phrase is any space, also the end of a line."""
    rows = []
    for line in (folder / TABLE).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            where, pattern, use = line.split("\t")
            flags = re.I if where == "text" else 0
            rows.append((where, re.compile(pattern.replace(" ", r"\s+") if where == "text" else pattern, flags), use))
    return rows


def source_files(folder):
    for room in ROOMS:
        for path in sorted((folder / room).rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.suffix in C | OTHER and path.is_file() and name not in OWN:
                yield name, path


def rows_of_names(rows, codes):
    """The rows of code that occur at all: few, or none, which spares most of the time."""
    chain = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?(?:(?:\.|->)[A-Za-z_]\w*)*\(?")
    names = "\n".join(sorted({name for code in codes for name in chain.findall(code)}))
    return [row for row in rows if row[0] != "code" or row[1].search(names)]


def search(name, place, text, rows):
    """Yields (what was found where, what to use)."""
    for where, pattern, use in rows:
        if where == place:
            for m in pattern.finditer(text):
                line = text.count("\n", 0, m.start()) + 1
                yield f"{name}:{line}: '{' '.join(m[0].split())}'; use: {use}"


def check(folder):
    """(number of files, faults, files that the list still needs, listed files that it does not)"""
    rows, faults, needed = read_table(folder), [], []
    allowed = (folder / ALLOWED).read_text(encoding="utf-8").split()
    files = []
    for name, path in source_files(folder):
        text = path.read_text(encoding="utf-8")
        files.append((name, *(split_c(text) if path.suffix in C else ("", text.replace("\n#", "\n ")))))
    rows = rows_of_names(rows, [code for _, code, _ in files])
    for name, code, prose in files:
        faults += [f"{name}: the name of a file; use: {use}" for where, p, use in rows if where == "file" and p.search(name)]
        faults += search(name, "code", code, rows)
        phrases = list(search(name, "text", prose, rows))
        if name in allowed:
            needed += [name] if phrases else []
        else:
            faults += phrases
    return len(files), faults, needed, [name for name in allowed if name not in needed]


def self_test():
    planted = [("src/a.c", "int cleat_window;", "src/a.c:1: 'cleat_window'"),
               ("cl/a.cl", "/* fine */\nfloat addend;", "cl/a.cl:2: 'addend'"),
               ("include/cleat/a.h", "int x = a->b(take_rows_of(y));", "include/cleat/a.h:1: 'take_rows_of('"),
               ("src/run/fit/ladder.c", "int x;", "src/run/fit/ladder.c: the name of a file"),
               ("src/a.c", "/* A file of its\n * own. */", "src/a.c:1: 'of its own'"),
               ("src/a.h", "int x; // What is to be\nint had; /* It wants two. */", "src/a.h:2: 'wants'"),
               ("src/a.c", "int x;\n/* few */\nint y;\n/* at hand */", "src/a.c:4: 'at hand'"),
               ("src/a.c", 'char *s = "there are so "\n    "many";', "src/a.c:1: 'so many'"),
               ("tests/a.sh", "# The one that is\n# there", "tests/a.sh:1: 'is there'"),
               ("tools/a.py", "text = 'At hand.'", "tools/a.py:1: 'At hand'")]
    harmless = [("src/a.c", "/* the addend */ int x; char *s = \"cleat_window\";"), ("src/a.c", "int so_many, wants;"),
                ("src/a.c", 'char *a = "of its", *b = "own";'), ("src/a.c", "/* unwanted: swants, is thereby, the other way round */"),
                ("src/a.c", '#include "fit/cleat_window.h"'), ("src/started.c", "int addendum;")]
    table, wrong = (HERE / TABLE).read_text(encoding="utf-8"), []

    def faults_of(files, allowed=""):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            for name, text in files + [(TABLE, table), (ALLOWED, allowed)]:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text + "\n", encoding="utf-8")
            return check(folder)[1:]

    for name, text, expected in planted:
        faults = faults_of([(name, text)])[0]
        if len(faults) != 1 or not faults[0].startswith(expected):
            wrong.append(f"{name}: {text!r}: {faults}")
    wrong += [f"{name}: {text!r}: {faults_of([(name, text)])[0]}" for name, text in harmless if faults_of([(name, text)])[0]]
    listed = faults_of([("src/a.c", "/* so many */"), ("src/b.c", "/* few */"), ("src/c.c", "int addend; /* so many */")],
                       "src/a.c\nsrc/b.c\nsrc/c.c\nsrc/gone.c")
    if len(listed[0]) != 1 or listed[1:] != (["src/a.c", "src/c.c"], ["src/b.c", "src/gone.c"]):
        wrong.append(f"the list: {listed}")
    print("\n".join(wrong + [f"{len(planted)} planted words, {len(harmless)} harmless lines, a list, {len(wrong)} faults"]))
    return not wrong


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    shrink = sys.argv[1:] == ["--shrink"]
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 and not shrink else HERE
    count, faults, needed, clean = check(folder)
    if shrink:
        (folder / ALLOWED).write_text("".join(name + "\n" for name in needed), encoding="utf-8")
        clean = []
    faults += [f"{name}: clean, or gone: take it off {ALLOWED} (tests/words.py --shrink)" for name in clean]
    print("\n".join(faults + [f"{count} files, {len(needed)} of them with phrases that are still allowed, {len(faults)} faults"]))
    return 0 if count > 0 and not faults else 1


if __name__ == "__main__":
    sys.exit(main())
