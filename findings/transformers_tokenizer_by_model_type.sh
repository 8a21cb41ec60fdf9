#!/usr/bin/env bash
# transformers 5.24.0: AutoTokenizer chooses the class of a folder's tokenizer by model_type in config.json, also where
# tokenizer_config.json names another one. Where that is qwen2, the splitting rule of tokenizer.json is replaced by that of
# Qwen2's own class: the same tokenizer.json and tokenizer_config.json give other ids beside another config.json, without a
# warning. A tokenizer that somebody trained for a network of the Qwen2 architecture, and saved with save_pretrained, comes
# back with another way of splitting, so that the network reads other tokens than it was trained on. Beside model_type llama
# the file is used as it is.
#
# cleat reads tokenizer.json as it is, whatever the network. PreTrainedTokenizerFast.from_pretrained does too.
#
# Output seen, 29 November 2026 (transformers 5.24.0, tokenizers 0.23.3):
#   tokenizer_class in tokenizer_config.json: TokenizersBackend
#   llama: TokenizersBackend, ids as saved: True
#   qwen2: Qwen2Tokenizer, ids as saved: False
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check transformers==5.24.0 tokenizers==0.23.3
cat >"$work/classes.py" <<'END'
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, LlamaConfig, PreTrainedTokenizerFast, Qwen2Config

texts = ["In 2024 it rained on 12 of 31 days.", "At 10:30, 2024 seats were free."] * 8
made = Tokenizer(models.BPE())
made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
made.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<|end|>"],
                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
made.train_from_iterator(texts, trainer)
saved, same, name = made.encode(texts[0]).ids, {}, None
for config in (LlamaConfig(), Qwen2Config()):
    folder = os.path.join(sys.argv[1], config.model_type)
    PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>").save_pretrained(folder)
    config.save_pretrained(folder)
    if name is None:
        name = json.load(open(os.path.join(folder, "tokenizer_config.json")))["tokenizer_class"]
        print("tokenizer_class in tokenizer_config.json:", name)
    loaded = AutoTokenizer.from_pretrained(folder)
    same[config.model_type] = loaded(texts[0], add_special_tokens=False)["input_ids"] == saved
    print(f"{config.model_type}: {type(loaded).__name__}, ids as saved: {same[config.model_type]}")
sys.exit(0 if same == {"llama": True, "qwen2": False} else "this has changed")
END
"$work/venv/bin/python" "$work/classes.py" "$work" 2>"$work/log" || { tail -n 5 "$work/log"; exit 1; }
