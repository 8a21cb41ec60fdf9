#!/usr/bin/env python3
"""Adapters that cleat trained, read by Hugging Face PEFT: the base network with them gives the logits of the merged export.

    test_peft.py CLEAT SOURCE

Exits with 77 if torch, transformers or peft is not installed.
"""
# ctest: device
import csv
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer
except ImportError as missing:
    print(missing)
    sys.exit(77)

CLEAT, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
LAYERS = ["query value", "all-linear", "att.qkv f1"]


def make_base(folder, name="bert_classifier"):
    """A published network with a vocabulary."""
    shutil.copytree(SOURCE / "tests/published" / name, folder)
    words = json.loads((folder / "config.json").read_text())["vocab_size"]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(words - 5)]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")


def make_data(path):
    rows = [f"w{i % 7} w{3 * i % 11} w{i % 5},{'one' if i % 2 else 'two'}" for i in range(40)]
    path.write_text("text,label\n" + "\n".join(rows) + "\n")


def run(*words):
    subprocess.run([CLEAT, *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def logits(network, tokens):
    with torch.no_grad():
        return network.eval()(input_ids=tokens, attention_mask=torch.ones_like(tokens)).logits


def merge_masked(folder):
    """Adapters of a masked language model: PEFT cannot represent its head, so they are merged, with a message."""
    base, trained = folder / "masked", folder / "adapted"
    make_base(base, "bert_masked")
    (folder / "lines.txt").write_text("".join(f"w{i % 7} w{3 * i % 11} w{i % 5}\n" for i in range(40)))
    settings = {"data.path": folder / "lines.txt", "data.max_length": 12, "train.epochs": 2, "train.learning_rate": 1e-2,
                "train.lora_rank": 3, "run.self_check": "never", "train.precision": "f32"}
    run("train", SOURCE / "profiles/text_adapt.ini", "--init", base, "--out", trained, "--quiet",
        *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")))
    refused = subprocess.run([CLEAT, "export", trained, "--format", "peft", "--out", folder / "adapters"],
                             capture_output=True, text=True)
    assert refused.returncode != 0 and "--format hf" in refused.stderr and not (folder / "adapters").exists(), refused
    run("export", trained, "--format", "hf", "--out", folder / "merged")
    (folder / "masked.txt").write_text("w1 [MASK] w3\n")
    run("predict", "--checkpoint", trained, "--data", folder / "masked.txt", "--out", folder / "found", "--quiet")
    row = next(csv.DictReader(open(folder / "found/predictions.csv")))
    encoded = AutoTokenizer.from_pretrained(folder / "merged")("w1 [MASK] w3", return_tensors="pt")
    network, loading = AutoModelForMaskedLM.from_pretrained(folder / "merged", output_loading_info=True)
    assert not any(loading.values()), loading
    with torch.no_grad():
        best = torch.softmax(network.eval()(**encoded).logits[0, 2], -1).max().item()
    assert abs(float(row["probability_1"]) - best) < 1e-5, (row, best)
    print(f"masked language model: merged, {best:.6f}")


def compare(folder, layers):
    base, trained = folder / "base", folder / "run"
    settings = {"data.path": folder / "texts.csv", "data.max_length": 12, "train.epochs": 2, "train.learning_rate": 1e-2,
                "train.lora_rank": 3, "train.lora_alpha": 6, "train.lora_layers": layers, "run.self_check": "never",
                "train.precision": "f32"}
    run("train", SOURCE / "profiles/text_classify.ini", "--init", base, "--out", trained, "--quiet",
        *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")))
    for name in ("hf", "peft"):
        run("export", trained, "--format", name, "--out", folder / name)
    tokens = torch.randint(5, 20, (3, 9), generator=torch.Generator().manual_seed(1))
    merged = logits(AutoModelForSequenceClassification.from_pretrained(folder / "hf"), tokens)
    adapted = PeftModel.from_pretrained(
        AutoModelForSequenceClassification.from_pretrained(base, num_labels=2, ignore_mismatched_sizes=True), folder / "peft")
    found = logits(adapted, tokens)
    with adapted.disable_adapter():
        without = logits(adapted, tokens)
    worst, effect, size = ((a - b).abs().max().item() for a, b in ((found, merged), (found, without), (merged, 0 * merged)))
    print(f"{layers}: {worst:.2g} of {size:.2g}; without adapters {effect:.2g}")
    return worst < 1e-6 * size and effect > 1e-3 * size


def main():
    good = True
    for layers in LAYERS:
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made)
            make_base(folder / "base")
            make_data(folder / "texts.csv")
            good = compare(folder, layers) and good
    with tempfile.TemporaryDirectory() as made:
        merge_masked(pathlib.Path(made))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
