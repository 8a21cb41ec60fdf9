#!/usr/bin/env python3
"""AutoTokenizer of an exported folder encodes texts as cleat does: `cleat predict` and transformers agree from the text on.

    test_exported_tokenizer.py CLEAT SOURCE

The networks are trained from scratch: a BERT on pairs of cased texts with a learned vocabulary, some longer than
data.max_length; and a RoBERTa tagger whose byte-level tokenizer begins words inside a sentence with a space.
Exits with 77 where torch or transformers is not installed.
"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
except ImportError as missing:
    print(missing)
    sys.exit(77)

CLEAT, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
NETWORK = {"model.d_model": 32, "model.heads": 4, "model.layers": 1, "model.d_ff": 32, "train.learning_rate": 1e-2,
           "train.precision": "f32", "run.self_check": "never"}


def run(*words):
    subprocess.run([CLEAT, *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def train(profile, out, settings):
    run("train", SOURCE / "profiles" / profile, "--out", out, "--quiet",
        *(word for key, value in (NETWORK | settings).items() for word in ("--set", f"{key}={value}")))
    run("export", out, "--format", "hf", "--out", out / "hf")


def compare_pairs(folder):
    words = ["Alpha", "alpha", "BETA", "beta", "Gamma", "delta"]
    rows = [{"text": " ".join(words[(i + k) % 6] for k in range(2 + 3 * i % 40)), "second": words[5 * i % 6] + " beta",
             "label": "one" if i % 2 else "two"} for i in range(60)]
    with open(folder / "pairs.csv", "w", newline="") as file:
        table = csv.DictWriter(file, ["text", "second", "label"])
        table.writeheader()
        table.writerows(rows)
    train("text_classify.ini", folder / "pairs",
          {"model.network": "bert", "data.path": folder / "pairs.csv", "data.text_pair_column": "second",
           "data.lowercase": "false", "data.vocabulary_size": 64, "data.max_length": 24, "model.max_positions": 32,
           "train.epochs": 4})
    run("predict", "--checkpoint", folder / "pairs", "--data", folder / "pairs.csv", "--out", folder / "told", "--quiet")
    told = [[float(row["one"]), float(row["two"])] for row in csv.DictReader(open(folder / "told/predictions.csv"))]
    tokenizer = AutoTokenizer.from_pretrained(folder / "pairs/hf")
    network = AutoModelForSequenceClassification.from_pretrained(folder / "pairs/hf").eval()
    encoded = tokenizer([row["text"] for row in rows], [row["second"] for row in rows], padding=True, truncation=True,
                        return_tensors="pt")
    with torch.no_grad():
        logits = network(**encoded).logits
    order = [network.config.label2id[name] for name in ("one", "two")]
    worst = (torch.softmax(logits, -1)[:, order] - torch.tensor(told)).abs().max().item()
    print(f"pairs: logits spread over {logits.std().item():.3g}, probabilities differ by {worst:.2g}")
    assert worst < 1e-5


def make_byte_level(path):
    """Pieces of one byte; Python's names of the 256 bytes, as GPT-2 has them, of those that occur."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "\u0120", *"abcdefghijklmnopqrstuvwxyz"]
    path.write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
        "added_tokens": [{"id": i, "content": pieces[i], "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for i in range(5)],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True,
                           "add_prefix_space": False},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                  "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False,
                  "vocab": {piece: i for i, piece in enumerate(pieces)}, "merges": []}}))


def compare_words(folder):
    make_byte_level(folder / "tokenizer.json")
    sentences = "\n\n".join("\n".join(f"{word}\t{tag}" for word, tag in (("paris", "B-place"), ("is", "O"), ("far", "O")))
                            for _ in range(20)) + "\n"
    (folder / "texts").mkdir()
    for name in ("train.conll", "dev.conll"):
        (folder / "texts" / name).write_text(sentences)
    train("text_tag.ini", folder / "words", {"model.network": "roberta", "data.path": folder / "texts", "train.epochs": 1,
                                             "data.vocabulary": folder / "tokenizer.json", "data.max_length": 32,
                                             "data.lowercase": "false", "model.max_positions": 64})
    tokenizer = AutoTokenizer.from_pretrained(folder / "words/hf")
    encoded = tokenizer(["paris", "is"], is_split_into_words=True)["input_ids"]
    pieces = tokenizer.convert_ids_to_tokens(encoded)
    print("words:", pieces)
    assert pieces == ["<s>", "\u0120", *"paris", "\u0120", *"is", "</s>"]
    assert tokenizer.model_max_length == 32


with tempfile.TemporaryDirectory() as scratch:
    compare_pairs(pathlib.Path(scratch))
    compare_words(pathlib.Path(scratch))
