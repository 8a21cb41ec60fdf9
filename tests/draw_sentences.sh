#!/usr/bin/env bash
# Draws sentences for an editor from READMEs, comments, help and messages, each with its place.
#   tests/draw_sentences.sh SEED [COUNT]      the same seed draws the same sentences (50); of 50, an editor changes at most 3
set -euo pipefail

cd "$(dirname "$0")/.."
git ls-files '*.md' '*.c' '*.h' '*.cl' '*.clh' | python3 -c '
import random, re, sys

def prose(path, text):
    """Pairs of a line number and a text without markup."""
    if path.endswith(".md"):
        text = re.sub(r"^```.*?^```|^ {4}.*?$|^\|.*?$", lambda m: re.sub(r"[^\n]", "", m[0]), text, flags=re.S | re.M)
        blocks = re.finditer(r"(?:[^\n]+\n?)+", text)
    else:
        blocks = re.finditer(r"/\*.*?\*/|(?:\"(?:\\.|[^\"\\\n])*\"\s*)+", text, re.S)
    for block in blocks:
        start, flat = text.count("\n", 0, block.start()) + 1, block[0]
        if flat.startswith("\""):
            flat = re.sub(r"\"\s*\"|\\n", "", flat).strip("\" \n")
        yield start, re.sub(r"\s+", " ", re.sub(r"\n *\*|^/\*|\*/$", " ", flat)).strip()

found = []
for path in sys.stdin.read().split():
    for line, text in prose(path, open(path, encoding="utf-8", errors="replace").read()):
        for sentence in re.split(r"(?<=[.?!;:]) +(?=[A-Z`*])", text):
            if len(sentence.split()) >= 6:
                found.append(f"{path}:{line}: {sentence}")
print("\n".join(random.Random(sys.argv[1]).sample(found, int(sys.argv[2]))))
' "${1:?a seed is required}" "${2:-50}"
