#!/usr/bin/env python3
"""Causal language models of transformers in cleat: perplexities, training steps, adapters and exports against torch and PEFT.

    test_causal.py CLEAT SOURCE

Weights and tokenizers are random; CLEAT_SMOLLM2 names a GGUF file of SmolLM2, which is compared too, with the texts
of CLEAT_SHARED. Exits with 77 if torch, transformers, tokenizers or peft is not installed.
"""
# ctest: device cost=150
import csv
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from peft import PeftModel
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
except ImportError as missing:
    print(missing)
    sys.exit(77)

CLEAT, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
WORDS = "a day of rain, 12 boats & the naïve café — so we went home; then it's 3.5 °C again\nwhy?".split(" ")
TEXTS = [" ".join(WORDS[(i * k + k * k) % len(WORDS)] for k in range(1, 5 + 3 * i % 23)) for i in range(24)]
SIZES = {"vocab_size": 320, "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 2, "num_attention_heads": 6,
         "num_key_value_heads": 2, "max_position_embeddings": 256, "eos_token_id": 0, "bos_token_id": None, "pad_token_id": None}
MODELS = [("llama", "llama", {"tie_word_embeddings": True}),
          ("llama3", "llama", {"rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                                                   "high_freq_factor": 4.0, "original_max_position_embeddings": 64}}),
          ("linear", "llama", {"head_dim": 12, "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}}),
          ("mistral", "mistral", {"sliding_window": 9}),
          ("qwen2", "qwen2", {"tie_word_embeddings": True}),
          ("qwen3", "qwen3", {"head_dim": 16}),
          ("gemma3", "gemma3_text", {"head_dim": 16, "num_hidden_layers": 7, "query_pre_attn_scalar": 16, "sliding_window": 9, "rope_parameters": {
              "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 50000.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}),
          ("gemma3, odd", "gemma3_text", {"head_dim": 8, "num_hidden_layers": 3, "query_pre_attn_scalar": 20, "sliding_window": 7,
                                          "sliding_window_pattern": 2, "rope_theta": 50000.0, "rope_local_base_freq": 900.0}),
          ("gpt2", "gpt2", {"num_hidden_layers": 3, "n_inner": 100, "bos_token_id": 0})]
STILL = {"train.learning_rate": 1e-12, "train.weight_decay": 0, "train.epochs": 1}
STEPS = 10


def tokenizer():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(TEXTS, trainers.BpeTrainer(
        vocab_size=310, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|endoftext|>")


def publish(folder, kind, more):
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **(SIZES | more)))
    for parameter in model.parameters():
        parameter.data.normal_(1, 0.2) if parameter.dim() == 1 and parameter.data.sum() else parameter.data.normal_(0, 0.1)
    model.save_pretrained(folder, max_shard_size="60KB" if kind == "mistral" else "1GB")
    tokenizer().save_pretrained(folder)
    assert (folder / "model.safetensors.index.json").exists() == (kind == "mistral")


def cleat(*words):
    done = subprocess.run([CLEAT, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def settings_of(settings):
    return (word for key, value in settings.items() for word in ("--set", f"{key}={value}"))


def train(init, out, data, settings):
    """The losses of the steps; the texts are also the validation set."""
    cleat("train", SOURCE / "profiles/chat.ini", "--init", init, "--out", out, "--quiet", *settings_of({
        "data.path": data, "data.max_length": 128, "data.buckets": 128, "train.effective_batch_size": len(TEXTS), "train.epochs": STEPS, "train.lora_rank": "none",
        "train.schedule": "constant", "train.warmup_ratio": 0, "train.precision": "f32", "run.self_check": "never", "data.pack": "false"} | settings))
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [row["loss"] for row in rows if row["kind"] == "train"]


def perplexity(run, **settings):
    return json.loads(cleat("eval", "--checkpoint", run, "--json", "--quiet", *settings_of(
        {key.replace("__", "."): value for key, value in settings.items()})))["perplexity"]


def ids_of(folder):
    """AutoTokenizer would split texts by the rules of Qwen2 in a folder of it, whatever tokenizer.json says."""
    made = PreTrainedTokenizerFast.from_pretrained(folder)
    return [made(text, add_special_tokens=False)["input_ids"] + [made.eos_token_id] for text in TEXTS]


def loss_of(model, rows):
    """The mean over the learned tokens of all texts; what stands behind a text is not seen by it."""
    tokens = torch.nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in rows], batch_first=True, padding_value=-100)
    logits = model(tokens.clamp(min=0)).logits[:, :-1]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def reference(folder, **more):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, **more).eval()


def same(told, found, wanted, tolerance):
    print(f"{told}: {found:.8g}, torch {wanted:.8g}")
    assert math.isfinite(found) and abs(found - wanted) <= tolerance * abs(wanted), (told, found, wanted)


def steps(model, rows, optimizer, clip):
    losses = []
    parameters = [p for p in model.parameters() if p.requires_grad]
    for _ in range(optimizer.steps):
        loss = loss_of(model, rows)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
    return losses


def compare_evaluation(folder, name, data):
    run, rows = folder / "run", ids_of(folder / "base")
    train(folder / "base", run, data, STILL)
    wanted = math.exp(loss_of(reference(folder / "base"), rows).item())
    same(name, perplexity(run), wanted, 1e-6)
    same(f"{name}, packed", perplexity(run, data__pack="true"), wanted, 1e-6)
    for precision, tolerance in (("f16", 1e-3), ("bf16", 5e-3)) if name in ("llama", "qwen3", "gemma3") else ():
        same(f"{name}, {precision}", perplexity(run, train__precision=precision, data__pack="true"), wanted, tolerance)
    cleat("export", run, "--format", "hf", "--out", folder / "hf")
    exported, loading = AutoModelForCausalLM.from_pretrained(folder / "hf", dtype=torch.float64, output_loading_info=True)
    assert not any(loading.values()), loading
    assert ids_of(folder / "hf") == rows
    same(f"{name}, exported", math.exp(loss_of(exported.eval(), rows).item()), wanted, 1e-6)
    if name not in ("mistral", "llama3", "gemma3, odd"):  # GGUF files hold no window of Llama, and only scalings of published models
        cleat("export", run, "--format", "gguf-f32", "--out", folder / "gguf")
        train(next((folder / "gguf").glob("*.gguf")), folder / "again", data, STILL)
        same(f"{name}, GGUF", perplexity(folder / "again"), wanted, 1e-6)


def compare_training(folder, name, data):
    rows = ids_of(folder / "base")
    for optimizer, rate in (("adamw", 3e-3), ("sgd", 0.2)):
        settings = {"train.optimizer": optimizer, "train.learning_rate": rate, "train.weight_decay": 0, "train.momentum": 0}
        if optimizer == "adamw":
            settings.pop("train.momentum")
        found = train(folder / "base", folder / optimizer, data, settings)
        model = reference(folder / "base")
        made = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[optimizer](model.parameters(), lr=rate, weight_decay=0)
        made.steps = STEPS
        wanted = steps(model, rows, made, 1)
        worst = max(abs(a - b) for a, b in zip(found, wanted, strict=True))
        print(f"{name}, {optimizer}: {wanted[0]:.6f} to {wanted[-1]:.6f}, at most {worst:.2g} apart")
        assert worst < 1e-5 * wanted[0] and wanted[-1] < wanted[0] - 0.1, (found, wanted)


def compare_adapters(folder, name, data, layers):
    """50 steps from the same adapters; PEFT reads those before and after."""
    rows, lora = ids_of(folder / "base"), {"train.lora_rank": 4, "train.lora_alpha": 8, "train.lora_layers": layers, "train.weight_decay": 0}
    train(folder / "base", folder / "lora0", data, lora | STILL)
    found = train(folder / "base", folder / "lora", data, lora | {"train.epochs": 50, "train.learning_rate": 5e-3})
    for out in ("lora0", "lora"):
        cleat("export", folder / out, "--format", "peft", "--out", folder / f"{out}-peft")
    config = json.loads((folder / "lora-peft/adapter_config.json").read_text())
    module = "transformer.h.1.attn.c_attn" if name == "gpt2" else "model.layers.1.self_attn.k_proj"
    assert not config.get("modules_to_save") and module in config["target_modules"], config
    assert config["fan_in_fan_out"] == (name == "gpt2")
    model = PeftModel.from_pretrained(reference(folder / "base"), folder / "lora0-peft", is_trainable=True).double()
    trained = [p for p in model.parameters() if p.requires_grad]
    made = torch.optim.AdamW(trained, lr=5e-3, weight_decay=0)
    made.steps = 50
    wanted = steps(model, rows, made, 1)
    worst = max(abs(a - b) for a, b in zip(found, wanted, strict=True))
    print(f"{name}, adapters of {layers}: {wanted[0]:.6f} to {wanted[-1]:.6f}, at most {worst:.2g} apart")
    assert worst < 1e-3 and wanted[-1] < wanted[0] - 0.1, (found, wanted)
    adapted = PeftModel.from_pretrained(reference(folder / "base"), folder / "lora-peft").double().eval()
    same(f"{name}, adapters read by PEFT", perplexity(folder / "lora"), math.exp(loss_of(adapted, rows).item()), 1e-6)


def compare_predictions(folder):
    """The most probable next tokens of prompts."""
    prompts = [text.replace("\n", " ") for text in TEXTS[:5]]
    (folder / "prompts.txt").write_text("\n".join(prompts) + "\n")
    cleat("predict", "--checkpoint", folder / "run", "--data", folder / "prompts.txt", "--out", folder / "next", "--quiet")
    made, model = PreTrainedTokenizerFast.from_pretrained(folder / "base"), reference(folder / "base")
    rows = list(csv.DictReader(open(folder / "next/predictions.csv")))
    assert [row["prompt"] for row in rows] == prompts
    for row, prompt in zip(rows, prompts):
        wanted = torch.softmax(model(made(prompt, return_tensors="pt", add_special_tokens=False)["input_ids"]).logits[0, -1], -1).topk(5)
        for k in range(5):
            assert abs(float(row[f"probability_{k + 1}"]) - wanted.values[k].item()) < 2e-6, (row, wanted)
        best = made.decode(wanted.indices[0])
        assert "�" in best or row["token_1"] == best, (row, best)


def compare_real(folder, file):
    """SmolLM2 as gguf dequantises it, in f32, on tweets."""
    tweets = pathlib.Path(os.environ.get("CLEAT_SHARED", SOURCE.parent / "shared")) / "data/tweets_sentiment/train.csv"
    texts = [row["text"].strip() for row in csv.DictReader(open(tweets, newline="")) if row["text"].strip()][:50]
    for part, some in (("train", texts[:2]), ("val", texts)):
        (folder / f"{part}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in some))
    train(file, folder / "run", folder, STILL | {"train.lora_rank": 1, "data.max_length": 256, "data.buckets": 256, "data.pack": "true"})
    made = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    rows = [made(text, add_special_tokens=False)["input_ids"] + [made.eos_token_id] for text in texts]
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).eval()
    with torch.no_grad():
        same("SmolLM2", perplexity(folder / "run"), math.exp(loss_of(model, rows).item()), 1e-4)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        data = root / "data"
        data.mkdir()
        for part in ("train", "val"):
            (data / f"{part}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
        for name, kind, more in MODELS:
            if sys.argv[3:] and name not in sys.argv[3:]:
                continue
            folder = root / name
            publish(folder / "base", kind, more)
            compare_evaluation(folder, name, data)
            if name in ("mistral", "qwen2", "qwen3", "gemma3", "gpt2"):
                compare_training(folder, name, data)
            if name in ("llama", "qwen3", "gemma3", "gpt2"):
                compare_adapters(folder, name, data, "query key value" if name == "qwen3" else "all-linear")
            if name == "llama":
                compare_predictions(folder)
        if os.environ.get("CLEAT_SMOLLM2"):
            (root / "real").mkdir()
            compare_real(root / "real", pathlib.Path(os.environ["CLEAT_SMOLLM2"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
