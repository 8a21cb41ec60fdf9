#!/usr/bin/env python3
"""AutoTokenizer of an exported folder encodes texts as cleat does: `cleat predict` and transformers agree on raw texts.

    test_exported_tokenizer.py CLEAT SOURCE

The networks are trained from scratch: each family with a published tokenizer whose class in transformers builds another
pipeline than tokenizer.json has, on pairs of texts and on tagged words; and a BERT on pairs of cased texts with a learned
vocabulary, some longer than data.max_length.
Exits with 77 if torch or transformers is not installed.
"""
# ctest: device
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer
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


def compare_predictions(name, folder, predictions, rows, tokenizer):
    told = [[float(row["one"]), float(row["two"])] for row in csv.DictReader(open(predictions / "predictions.csv"))]
    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    encoded = tokenizer([row["text"] for row in rows], [row["second"] for row in rows], padding=True, truncation=True,
                        return_tensors="pt")
    with torch.no_grad():
        logits = network(**encoded).logits
    order = [network.config.label2id[name] for name in ("one", "two")]
    worst = (torch.softmax(logits, -1)[:, order] - torch.tensor(told)).abs().max().item()
    print(f"{name}: logits spread over {logits.std().item():.3g}, probabilities differ by {worst:.2g}")
    assert worst < 1e-5


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
    compare_predictions("pairs", folder / "pairs/hf", folder / "told", rows, AutoTokenizer.from_pretrained(folder / "pairs/hf"))


# Common characters that tokenizers treat differently: compatibility characters, accents, emoji, blanks.
TEXTS = ["wait\u2026 what", "50 \u00bd off\u2122", "\uff28\uff45\uff4c\uff4c\uff4f day", "caf\u00e9 \u00c9t\u00e9 cafe\u0301", "\U0001f600 ok",
         " two  blanks ", "\u4e2d\u6587 the fox", "Na\u00efve don't", "tab\there", "the quick brown fox", "x\u00b2 + \u00b5", "a\u200bb\u00adc"]
FIXTURE_TOKENS = {"<s>": "[CLS]", "</s>": "[SEP]", "<pad>": "[PAD]", "<unk>": "[UNK]", "<mask>": "[MASK]"}
# network, tokenizer in tests/tokenizer, its class, and the class's options that differ from tokenizer.json
FAMILIES = [("bert", "wordpiece", "BertTokenizer", {"do_lower_case": False, "tokenize_chinese_chars": False}),
            ("distilbert", "wordpiece", "DistilBertTokenizerFast", {"strip_accents": False}),
            ("electra", "wordpiece", "ElectraTokenizer", {}),
            ("roberta", "byte_bpe", "RobertaTokenizer", {"add_prefix_space": True}),
            ("xlm-roberta", "unigram", "XLMRobertaTokenizer", {}),
            ("deberta-v2", "unigram", "DebertaV2Tokenizer", {"split_by_punct": False, "truncation_side": "left"})]


def publish(folder, network, fixture, name, options):
    """A published tokenizer; DeBERTa's has its special tokens, and letters that NFKC maps to others."""
    text = (SOURCE / "tests/tokenizer/tokenizers" / f"{fixture}.json").read_text()
    if network == "deberta-v2":
        for old, new in FIXTURE_TOKENS.items():
            text = text.replace(json.dumps(old), json.dumps(new))
        parsed = json.loads(text)
        parsed["normalizer"] = {"type": "NFKC"}
        parsed["model"]["vocab"] += [[piece, -9.0] for piece in "./TMH12" if piece not in dict(parsed["model"]["vocab"])]
        parsed["added_tokens"][-1]["id"] = len(parsed["model"]["vocab"])
        text = json.dumps(parsed)
    folder.mkdir()
    (folder / "tokenizer.json").write_text(text)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name} | options))
    deberta = {"model.position_buckets": 16} if network == "deberta-v2" else {}
    return deberta | {"model.network": network, "data.vocabulary": folder, "data.max_length": 64, "model.max_positions": 80,
            "train.epochs": 3, "data.lowercase": "false"}


def compare_ids(told, folder, tokenizer):
    ours = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in TEXTS:
        assert ours.encode(text).ids == tokenizer(text)["input_ids"], (told, text)
        assert ours.encode(text, TEXTS[0]).ids == tokenizer(text, TEXTS[0])["input_ids"], (told, text)


def compare_texts(folder, network, settings):
    rows = [{"text": text, "second": TEXTS[5 * i % len(TEXTS)], "label": "one" if i % 3 else "two"} for i, text in enumerate(TEXTS)]
    with open(folder / "texts.csv", "w", newline="") as file:
        table = csv.DictWriter(file, ["text", "second", "label"])
        table.writeheader()
        table.writerows(rows)
    train("text_classify.ini", folder / "run", settings | {
        "data.path": folder / "texts.csv", "data.text_pair_column": "second", "data.val_fraction": 0, "data.test_fraction": 0})
    run("predict", "--checkpoint", folder / "run", "--data", folder / "texts.csv", "--out", folder / "told", "--quiet")
    tokenizer = AutoTokenizer.from_pretrained(folder / "run/hf")
    compare_ids(network, folder / "run/hf", tokenizer)
    compare_predictions(network, folder / "run/hf", folder / "told", rows, tokenizer)


def compare_tags(folder, network, settings):
    """A sentence's first word is encoded like the others; words without a token are O."""
    words = [word for text in TEXTS for word in text.split()]
    sentences = [[*words[i:i + 5], "\u200b", "\x01\u2060"][:4 + i // 4 % 4] for i in range(0, len(words), 4)]
    tags = [["B-place" if len(word) % 3 == 0 else "O" for word in sentence] for sentence in sentences]
    (folder / "words").mkdir()
    for name in ("train.conll", "dev.conll"):
        (folder / "words" / name).write_text("\n".join("".join(f"{word}\t{tag}\n" for word, tag in zip(*pair))
                                                       for pair in zip(sentences, tags)))
    train("text_tag.ini", folder / "tag", settings | {"data.path": folder / "words", "train.epochs": 8})
    run("predict", "--checkpoint", folder / "tag", "--data", folder / "words/dev.conll", "--out", folder / "tagged", "--quiet")
    tokenizer = AutoTokenizer.from_pretrained(folder / "tag/hf")
    model = AutoModelForTokenClassification.from_pretrained(folder / "tag/hf").eval()
    found = (folder / "tagged/predictions.conll").read_text().rstrip("\n").split("\n\n")
    assert len(found) == len(sentences)
    seen, none = set(), 0
    for sentence, lines in zip(sentences, found):
        encoded = tokenizer(sentence, is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            best = model(**encoded).logits[0].argmax(-1).tolist()
        first = {}
        for at, word in enumerate(encoded.word_ids()):
            if word is not None:
                first.setdefault(word, at)
        expected = [model.config.id2label[best[first[i]]] if i in first else "O" for i in range(len(sentence))]
        assert [line.split("\t") for line in lines.split("\n")] == [list(pair) for pair in zip(sentence, expected)], network
        seen |= set(expected)
        none += len(sentence) - len(first)
    print(f"{network}: tags {sorted(seen)}, {none} words without a token")
    assert len(seen) > 1 and tokenizer.model_max_length == 64


with tempfile.TemporaryDirectory() as scratch:
    root = pathlib.Path(scratch)
    compare_pairs(root)
    for family in FAMILIES:
        settings = publish(root / family[0], *family)
        compare_texts(root / family[0], family[0], settings)
        if family[0] in ("bert", "roberta", "deberta-v2"):  # the others split words like one of these
            compare_tags(root / family[0], family[0], settings)
