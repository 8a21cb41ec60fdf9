#!/usr/bin/env bash
# transformers 5.24.0: do_lower_case of tokenizer_config.json overrules the normaliser of the tokenizer.json beside it, also
# where no file names a tokenizer class: model_type of config.json ("bert") chooses BertTokenizer, which builds the
# normaliser anew. Without config.json the same two files are read by tokenizer.json alone.
#
# cleat does as transformers in both cases, and warns that the files contradict each other.
#
# Output seen, 27 November 2026 (transformers 5.24.0, tokenizers 0.23.3), for "Zürich" with a tokenizer.json that lowers case:
#   model_type bert, do_lower_case false: [1, 5, 2]   (the cased piece; the file alone has 4)
#   no config.json, do_lower_case false: [1, 4, 2]
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
file = Tokenizer(models.WordPiece({"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "zurich": 4, "Z\u00fcrich": 5}, unk_token="[UNK]"))
file.normalizer = normalizers.BertNormalizer(lowercase=True)
file.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
file.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
file.save(str(folder / "tokenizer.json"))
(folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False, "unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}))
found = {}
for what, config in (("model_type bert", {"model_type": "bert"}), ("no config.json", None)):
    path = folder / "config.json"
    path.unlink(missing_ok=True)
    if config: path.write_text(json.dumps(config))
    found[what] = AutoTokenizer.from_pretrained(folder)("Z\u00fcrich")["input_ids"]
    print(f"{what}, do_lower_case false: {found[what]}")
sys.exit(0 if found == {"model_type bert": [1, 5, 2], "no config.json": [1, 4, 2]} else "this has changed")
END
"$work/venv/bin/python" "$work/compare.py" "$work"
