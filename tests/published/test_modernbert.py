#!/usr/bin/env python3
"""ModernBERT through cleat and out again: a small random network with a byte-level BPE tokenizer is fine-tuned whole and by
LoRA, and `cleat predict` gives the probabilities that transformers computes from the exported folder.

    test_modernbert.py CLEAT SOURCE"""
# ctest: device cost=60
import csv
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
except ImportError as missing:
    print(missing)
    sys.exit(77)

CLEAT, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
WORDS = "the a of flight was late again thanks so much for nothing @user #fail :) 😀 best day ever don't Zürich 2026".split()
SPECIAL = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
LABELS = ["LABEL_0", "LABEL_1", "LABEL_2"]


def run(*words):
    result = subprocess.run([CLEAT, *map(str, words)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]


def make_network(folder, texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=330, special_tokens=SPECIAL, show_progress=False,
                                                             initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    special = dict(zip(("unk_token", "cls_token", "sep_token", "pad_token", "mask_token"), SPECIAL))
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    config = transformers.ModernBertConfig(
        vocab_size=336, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=48, local_attention=8,
        pad_token_id=3, cls_token_id=1, bos_token_id=1, sep_token_id=2, eos_token_id=2, max_position_embeddings=64, num_labels=3)
    network = transformers.ModernBertForSequenceClassification(config)
    with torch.no_grad():
        for value in network.parameters():
            value.add_(torch.randn_like(value) * (0.05 if value.dim() < 2 else 0.2))
    network.save_pretrained(folder)


def compare(work, name, texts, settings):
    out = work / name
    run("train", SOURCE / "profiles/text_classify.ini", "--init", work / "folder", "--out", out, "--quiet",
        *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")))
    run("export", out, "--format", "hf", "--out", out / "exported")
    run("predict", "--checkpoint", out, "--data", work / "texts.csv", "--out", out / "told", "--quiet")
    told = torch.tensor([[float(row[label]) for label in LABELS]
                         for row in csv.DictReader(open(out / "told/predictions.csv"))])
    network, loading = transformers.AutoModelForSequenceClassification.from_pretrained(out / "exported",
                                                                                       output_loading_info=True)
    assert not any(loading.values()), loading
    encoded = transformers.AutoTokenizer.from_pretrained(out / "exported")(texts, padding=True, return_tensors="pt")
    encoded.pop("token_type_ids", None)
    with torch.no_grad():
        found = torch.softmax(network.eval()(**encoded).logits, -1)
    worst = (found - told).abs().max().item()
    print(f"{name}: probabilities differ by {worst:.2g}")
    assert worst < 1e-5
    return told


def main():
    random.seed(5)
    torch.manual_seed(5)
    texts = [" ".join(random.choices(WORDS, k=2 + i % 11)) for i in range(30)]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        with open(work / "texts.csv", "w", newline="") as file:
            csv.writer(file).writerows([["text", "label"], *([text, LABELS[i % 3]] for i, text in enumerate(texts))])
        make_network(work / "folder", texts)
        common = {"data.path": work / "texts.csv", "data.max_length": 48, "data.labels": " ".join(LABELS), "run.self_check": "never",
                  "train.precision": "f32", "train.epochs": 1}
        still = compare(work, "still", texts, common | {"train.learning_rate": 1e-12, "train.weight_decay": 0})
        lora = compare(work, "lora", texts, common | {"train.learning_rate": 1e-2, "train.epochs": 4, "train.lora_rank": 4})
        assert (lora - still).abs().max() > 0.01, "LoRA changed nothing"


main()
