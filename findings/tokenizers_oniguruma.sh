#!/usr/bin/env bash
# Expressions in tokenizer.json are read by Oniguruma in Ruby's syntax, so some that look like those of Python or PCRE mean
# something else: `^` and `$` match at every line, `\h` is a hexadecimal digit, and `{3}?` is an optional group of three instead
# of a lazy count. An expression that was tested with Python's `regex` may split a text at other places.
# Seen with tokenizers 0.23.3 and regex 2026.11.19 of PyPI, 28 November 2026:
#   ^\w+      on two lines   tokenizers: 2 matches    regex: 1
#   \h+       on "a b 1f"    tokenizers: a, b, 1f     regex: the blanks
#   x{3}?y    on "y"         tokenizers: y            regex: no match
#
# cleat reads ^ and $ as tokenizers does, and refuses \h and {3}? with their place.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q tokenizers==0.23.3 regex==2026.11.19
"$folder/venv/bin/python" - <<'PYTHON'
import importlib.metadata
import sys

import regex
from tokenizers import Regex, pre_tokenizers


def by_tokenizers(expression, text):
    """The matches: with "isolated" each is a piece of its own."""
    split = pre_tokenizers.Split(Regex(expression), behavior="removed", invert=True)
    return [piece for piece, _ in split.pre_tokenize_str(text)]


rows = [(r"^\w+", "one two\nthree four", ["one", "three"], ["one"]),
        (r"\h+", "a b 1f", ["a", "b", "1f"], [" ", " "]),
        (r"x{3}?y", "y", ["y"], [])]
print("tokenizers", importlib.metadata.version("tokenizers"), "regex", importlib.metadata.version("regex"))
changed = False
for expression, text, ruby, perl in rows:
    found, other = by_tokenizers(expression, text), regex.findall(expression, text)
    print(f"{expression:8} on {text!r}: tokenizers {found}, regex {other}")
    changed |= found != ruby or other != perl
sys.exit("the behaviour has changed" if changed else 0)
PYTHON
