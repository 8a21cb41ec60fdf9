"""No message that reaches Python names an option of the program where Python has an argument: test_words.py SOURCE_DIR.

Takes every string of src, with values for its conversions, as cleat.Error and the logger would show it. What remains of
options must be listed here with a reason, and each reason must still be necessary."""
# ctest: quick
import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "tools/python/cleat"))
from _words import OPTIONS, in_python  # noqa: E402 (without the library)

NO_FUNCTION = "of a command of the program for which Python has no function"
ALLOWED = {
    **dict.fromkeys(["--format", "--ship", "--list", "--precision", "--seconds", "--steps"], NO_FUNCTION),
    **dict.fromkeys(["--devices", "--random", "--write", "--folds", "--help-profile"], NO_FUNCTION),
    "--all": "appears only without it: cleat.predict forecasts from every row",
    "--figures": "cleat.predict draws nothing",
    "--flips": "cleat.predict has no mirror images",
    "--until-epoch": "appears only if it was given, and cleat.train has no such argument",
    **dict.fromkeys(["--host", "--bind-to", "--local-dir", "--sort", "--reinstall"], "of another program"),
    **dict.fromkeys(["--cpus", "--memory", "--memory-swap", "--gpus", "--shm-size"], "of docker"),
    "--device /dev/": "of docker",
    "--share": "a variable of a style sheet",
}

def strings():
    """Each string of the C files, adjacent literals joined, with values for its conversions."""
    literal = r'"((?:[^"\\\n]|\\.)*)"'
    for path in sorted(SOURCE.glob("src/**/*.[ch]")):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        for found in re.finditer(rf"{literal}(?:\s*{literal})*", text):
            said = "".join(re.findall(literal, found[0])).replace('\\"', '"').replace("\\n", "\n")
            said = re.sub(r"%[-+ #0]*[\d.*]*(?:ll|z)?[dufg]", "3", re.sub(r"--set (%.500s|%s\.%s=%s)", "--set a.b=1", said))
            said = re.sub(r"(?<=\w)%s$", " and more", said)
            yield path.relative_to(SOURCE), re.sub(r"%[\d.*]*s", "runs/x", said)


left, needed, changed = [], set(), 0
for place, text in strings():
    shown = in_python(text)
    changed += shown != text
    assert in_python(shown) == shown, f"{place}: {shown!r} changes again"
    if re.fullmatch(r"--[a-z-]+ ?", text):
        continue  # a name that is compared, not a message
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+(?: /dev/)?", shown):
        needed.add(option)
        left += [f"{place}: {option} in {shown!r}"] if option not in ALLOWED else []
assert not left, "\n".join(["options that Python does not have, in messages:", *left])
assert not set(ALLOWED) - needed, f"no message has {set(ALLOWED) - needed}: remove them from the list"
assert changed > 30, f"{changed} messages are translated: are these the sources of cleat?"
for option in OPTIONS:
    assert option not in in_python(f"x: use {option}, or {option} FOLDER"), option

EXPECTED = {
    "--set train.epoch=3: no key 'epoch'": """settings={"train.epoch": 3}: no key 'epoch'""",
    "--set data.path=/a b: is not there": 'settings={"data.path": "/a b"}: is not there',
    "--set data.path=/a b\n  contradicts": 'settings={"data.path": "/a b"}\n  contradicts',
    "continue it with --resume, or start with another --out": "continue it with resume=True, or start with another out",
    "as a separate run: --resume-from run --out FOLDER. Only": 'as a separate run: resume_from="run", out=FOLDER. Only',
    "Try: cleat train a.ini --resume --set run.x=0.7": 'Try: cleat.train("a.ini", resume=True, settings={"run.x": 0.7})',
    "--set data.a=none --set data.b=true": 'settings={"data.a": None, "data.b": True}',
    'set data.label_column="stars price".': 'set settings={"data.label_column": "stars price"}.',
    "`--device cpu` selects the CPU, --split all all": '`device="cpu"` selects the CPU, split="all" all',
    "`cleat export RUN --out x`, or --out": "`cleat export RUN --out x`, or out",
    "rna.ini:3: heads = 8, data.path is a/b": "rna.ini:3: heads = 8, data.path is a/b",
}
for text, expected in EXPECTED.items():
    assert in_python(text) == expected, (text, in_python(text))
print(f"{changed} messages are translated")
