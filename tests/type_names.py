#!/usr/bin/env python3
"""Checks that a typedef, a struct, union or enum tag and an enum constant mean one thing in the whole library.
  tests/type_names.py [FOLDER]        FOLDER: another source tree than this one
  tests/type_names.py --self-test     finds planted duplicates

In src/ and include/, a name from a header may not have another definition in a second header or a source file. Names that
source files define locally may repeat in other files, because no translation unit includes two of them. Names inside
functions are ignored.

A type's name is a noun: a header type whose last word is a participle (`cleat_loaded`) is a fault. So is a string builder's
function named `cleat_text_...`, the prefix of text models."""
import pathlib
import re
import sys
import tempfile

NAME = r"[A-Za-z_]\w*"
# The last word of a type, if it is a participle instead of a noun.
PARTICIPLE = re.compile(r"^cleat_(\w+_)?([a-z]+[^e]ed|fed|found|given|made|kept|built|bound|left|taken|drawn|known)$")


def strip(text):
    """C without comments, preprocessor lines, and the contents of literals."""
    text = text.replace("\\\n", " ")
    text = re.sub(r'"(\\.|[^"\\\n])*"|\'(\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/',
                  lambda m: m[0][0] * 2 if m[0][0] in "\"'" else " ", text, flags=re.S)
    text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.M)
    return re.sub(r'extern\s*""\s*\{', " ", text)


def declarations(text):
    """Yields the declarations at file scope, without function bodies and initial values."""
    depth, head, kept = 0, "", True
    for c in text:
        if c == "}" and depth == 0:  # of extern "C"
            head = ""
            continue
        if c == "{":
            if depth == 0:
                kept = bool(re.search(r"\b(struct|union|enum)\b", head)) and "=" not in head and not head.rstrip().endswith(")")
            depth += 1
        if depth == 0 or kept:
            head += c
        if c == "}":
            depth -= 1
            if depth == 0 and not kept and not re.search(r"=\s*$", head):
                head = ""  # a function ends without a semicolon
        if c == ";" and depth == 0:
            yield " ".join(head[:-1].split())
            head = ""


def body_from(text, start):
    """Returns the text from the brace at `start` to its closing brace."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[start:i + 1]
    return text[start:]


def split_items(body):
    """Splits at the commas of an enum's own level."""
    items, depth = [""], 0
    for c in body:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            items.append("")
        else:
            items[-1] += c
    return items


def typedef_name(declaration):
    flat = declaration
    while "{" in flat:
        flat = flat.replace(body_from(flat, flat.index("{")), " ")
    pointer = re.search(r"\(\s*\*\s*(%s)\s*\)\s*\(" % NAME, flat)
    match = pointer or re.search(r"(%s)\s*(\[[^]]*\]\s*)*$" % NAME, flat)
    return (match[1], " ".join(flat.split())) if match else None


def definitions(declaration):
    """Yields (name space, name, definition): tags have a separate name space in C."""
    if declaration.startswith("typedef "):
        found = typedef_name(declaration)
        if found:
            yield "name", found[0], found[1]
    for match in re.finditer(r"\b(struct|union|enum)\s*(%s)?\s*\{" % NAME, declaration):
        body = body_from(declaration, match.end() - 1)
        whole = match[1] + " " + body
        if match[2]:
            yield "tag", match[2], whole
        if match[1] == "enum":
            for item in split_items(body[1:-1]):
                constant = re.match(r"\s*(%s)" % NAME, item)
                if constant:
                    yield "name", constant[1], whole


def check(folder):
    """Returns the number of names that headers define, and the faults."""
    places, faults = {}, []
    files = [p for room in ("include", "src") for p in sorted((folder / room).rglob("*.[ch]"))]
    for path in sorted(files, key=lambda p: (p.suffix != ".h", p)):
        for declaration in declarations(strip(path.read_text(encoding="utf-8"))):
            for space, name, definition in definitions(declaration):
                where, known = places.get((space, name), (None, None))
                if known is not None and known != definition:
                    faults.append(f"{path.relative_to(folder)}: '{name}' has another definition in "
                                  f"{where.relative_to(folder)}; rename one of them")
                elif known is None and path.suffix == ".h":
                    places[space, name] = (path, definition)
                    if PARTICIPLE.match(name):
                        faults.append(f"{path.relative_to(folder)}: '{name}' is a participle; name the type by a noun")
    for path in files:
        if path.parts[-2] == "core" and "cleat_text_" in path.read_text(encoding="utf-8"):
            faults.append(f"{path.relative_to(folder)}: 'cleat_text_' is the prefix of text models; strings are cleat_string_")
    return len(places), faults


def self_test():
    header = ('#define MAX(a, b) ((a) > (b))\ntypedef struct pair { int a; /* ; } */ enum { LEFT, RIGHT = 1 } side; } pair;\n'
              'typedef int (*visit)(int, struct other *);\nstruct other;\nextern "C" {\nenum color { RED, GREEN };\n}\n'
              "typedef float row[4];\nstatic inline int f(void) { enum { INNER = 1 }; return '}'; }\n")
    planted = [("struct pair { int b; };", "pair"), ("typedef int pair;", "pair"), ("enum { LEFT = 2 };", "LEFT"),
               ("enum { RED = 7 };", "RED"), ("typedef long visit;", "visit"), ("typedef double row[4];", "row"),
               ("enum color { BLUE };", "color"), ("typedef enum tone { GREEN } tone;", "GREEN"),
               ('static const char *t = "{"; static int g(int x) { if (x) { return 1; } return 0; } union other { int i; };\n'
                "struct color { int r; };", "color"), ("enum { A, visit };", "visit")]
    rules = [("src/core/b.h", "void cleat_text_add(void);", "cleat_text_"), ("src/b.h", "struct cleat_fed { int a; };", "cleat_fed"),
             ("include/b.h", "typedef int cleat_row_reduced;", "cleat_row_reduced"), ("src/b.h", "struct cleat_feed { int a; };", None),
             ("src/b.c", "struct cleat_fed { int a; };", None), ("src/run/b.h", "void cleat_text_add(void);", None)]
    harmless = ["struct other { int x; };", "struct pair;", "typedef struct pair pair;", "enum { INNER = 3 };",
                "void f(void) { enum { LEFT = 9 }; struct pair { int z; } p; (void)p; }", "struct pair table[] = {{1}};",
                "/* enum { LEFT = 5 }; */", 'char *s = "typedef int pair;";', "enum { UP = LEFT };",
                "typedef int (*visit)(int, struct other *);"]
    wrong = []
    cases = [(second, text, name) for text, name in planted + [(text, None) for text in harmless]
             for second in ("src/b.h", "src/room/b.c")] + rules
    for second, text, name in cases:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            for path, content in (("include/a.h", header), (second, text + "\n")):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(content, encoding="utf-8")
            faults = check(folder)[1]
            found = [f for f in faults if f.startswith(f"{second}: '{name}' ")]
            if len(faults) != (name is not None) or len(found) != len(faults):
                wrong.append(f"{second}: {text}: {faults}")
    print("\n".join(wrong + [f"{len(planted)} planted duplicates, {len(harmless)} harmless lines, {len(wrong)} faults"]))
    return not wrong


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    count, faults = check(folder)
    print("\n".join(faults + [f"{count} names of types and constants in headers, {len(faults)} faults"]))
    return 0 if count > 0 and not faults else 1


if __name__ == "__main__":
    sys.exit(main())
