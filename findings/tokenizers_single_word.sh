#!/usr/bin/env bash
# tokenizers 0.23.3: an added token with single_word=True hides shorter added tokens also where it does not match itself. The
# search takes the longest token at a place, then looks whether it stands alone, and where it does not, goes on behind that
# place without trying the shorter ones. Adding a token that does not occur in a text as a word thus changes the ids of that
# text: another added token in it falls apart into letters.
#
# cleat does the same, for equal ids.
#
# Output seen, 29 November 2026 (tokenizers 0.23.3), "abcd" and "abc":
#   with "ab":                                ab c d    ab c
#   and "abc", added with single_word=True:   a b c d   abc
#   and "abc", added without it:              abc d     abc
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check tokenizers==0.23.3
cat >"$work/split.py" <<'END'
import sys

from tokenizers import AddedToken, Tokenizer, models


def split(*added):
    made = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate("abcd")}, merges=[]))
    made.add_tokens([AddedToken("ab"), *added])
    found = [" ".join(made.encode(text).tokens) for text in ("abcd", "abc")]
    print(*found, sep="   ")
    return found


seen = [split(), split(AddedToken("abc", single_word=True)), split(AddedToken("abc"))]
expected = [["ab c d", "ab c"], ["a b c d", "abc"], ["abc d", "abc"]]
sys.exit(0 if seen == expected else "this has changed")
END
"$work/venv/bin/python" "$work/split.py"
