#!/usr/bin/env bash
# transformers 5.24.0: AutoTokenizer of a folder with tokenizer_class DebertaV2Tokenizer encodes texts otherwise than the
# tokenizer.json beside it. The class takes the vocabulary of that file and builds the rest anew: its normaliser is NFC,
# whatever the file has, so that an ellipsis or full-width letters, which NFKC writes in plain letters, are unknown. With
# PreTrainedTokenizerFast the same folder gives the file's own ids.
#
# cleat follows tokenizer.json, which is what the networks were trained with; its exports name PreTrainedTokenizerFast.
#
# Output seen, 27 November 2026 (transformers 5.24.0, tokenizers 0.23.3):
#   DebertaV2Tokenizer: plain [1, 5, 2] as the file, ellipsis [1, 5, 3, 2] for [1, 5, 6, 6, 6, 2], wide letters [1, 4, 3, 2] for [1, 4, 7, 2]
#   PreTrainedTokenizerFast: all three as the file
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check transformers==5.24.0 tokenizers==0.23.3
cat >"$work/compare.py" <<'END'
import json, pathlib, sys
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer

folder = pathlib.Path(sys.argv[1])
special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
pieces = [(name, 0.0) for name in special] + [("\u2581", -4.0), ("\u2581wait", -2.0), (".", -2.0), ("hello", -2.0), ("[MASK]", 0.0)]
file = Tokenizer(models.Unigram(pieces, unk_id=3))
file.normalizer = normalizers.NFKC()
file.pre_tokenizer = pre_tokenizers.Metaspace()
file.add_special_tokens(special + ["[MASK]"])
file.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
file.save(str(folder / "tokenizer.json"))
names = {f"{name[1:-1].lower()}_token": name for name in special + ["[MASK]"]}
texts = {"plain": "wait", "ellipsis": "wait\u2026", "wide letters": "\uff48\uff45\uff4c\uff4c\uff4f"}
differ = {}
for name in ("DebertaV2Tokenizer", "PreTrainedTokenizerFast"):
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name, **names}))
    auto = AutoTokenizer.from_pretrained(folder)
    for what, text in texts.items():
        own, its = file.encode(text).ids, auto(text)["input_ids"]
        print(f"{name}: {what} {its}, the file {own}")
        if own != its: differ.setdefault(name, []).append(what)
expected = {"DebertaV2Tokenizer": ["ellipsis", "wide letters"]}
sys.exit(0 if differ == expected else f"this has changed: {differ}")
END
"$work/venv/bin/python" "$work/compare.py" "$work"
