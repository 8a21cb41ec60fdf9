#!/usr/bin/env python3
"""`cleat generate` against transformers' generate: random networks of each architecture, prompts shorter and longer than
a chunk, and a window; greedy tokens are equal. Drawn texts repeat with their seed."""
# ctest: device cost=40
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import (AutoModelForCausalLM, Gemma3TextConfig, GPT2Config, LlamaConfig, MistralConfig,
                              PreTrainedTokenizerFast, Qwen2Config, Qwen3Config)
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

CLEAT = sys.argv[1]
LONGEST, TOKENS = 200, 40
SIZES = dict(vocab_size=257, hidden_size=48, intermediate_size=104, num_hidden_layers=2, num_attention_heads=6,
             num_key_value_heads=2, max_position_embeddings=LONGEST + TOKENS, eos_token_id=256, bos_token_id=None)
LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
CONFIGS = {
    "llama": LlamaConfig(**SIZES, tie_word_embeddings=True),
    "llama3": LlamaConfig(**SIZES, rope_parameters=LLAMA3),
    "mistral": MistralConfig(**SIZES, sliding_window=20),
    "qwen2": Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen3": Qwen3Config(**SIZES, head_dim=16),
    "gemma3": Gemma3TextConfig(**SIZES | {"num_hidden_layers": 5}, head_dim=16, query_pre_attn_scalar=20,
                               sliding_window=20, sliding_window_pattern=3, pad_token_id=None),
    "gpt2": GPT2Config(**SIZES, n_inner=104),
}
PROMPTS = ["x", "hello there", "y" * 63, "the end of a chunk " * 3 + "1234567", "0123456789" * 6 + "01234",
           "a longer prompt, of several chunks. " * 5 + "abcdefg"]


def write_model(folder, config):
    """A network whose logits differ clearly, with a tokenizer of bytes."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config)
    for name, value in model.named_parameters():
        if value.dim() == 1:
            value.data.normal_(0 if name.endswith("bias") or not value.sum() else 1, 0.2)
        else:
            value.data.mul_(4)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return model.eval(), fast


def run(folder, out, *options, source="--init"):
    data = os.path.join(os.path.dirname(out), "prompts.jsonl")
    with open(data, "w") as file:
        for prompt in PROMPTS:
            file.write(json.dumps({"prompt": prompt}) + "\n")
    subprocess.run([CLEAT, "generate", source, folder, "--data", data, "--out", out, "--max-tokens", str(TOKENS),
                    "--quiet", *options], check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(out, "generated.jsonl")) as file:
        return [json.loads(line) for line in file]


def expect(model, tokenizer, prompt):
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    answer = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=TOKENS, do_sample=False,
                            pad_token_id=256)[0, ids.shape[1]:]
    return tokenizer.decode(answer, skip_special_tokens=True), len(answer)


def ends(folder, model, tokenizer):
    """eos_token_id of generation_config.json, a number or a list, ends an answer, beside that of the tokenizer."""
    answers = []
    for prompt in PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        answers.append(model.generate(ids, max_new_tokens=TOKENS, do_sample=False, pad_token_id=256)[0, ids.shape[1]:].tolist())
    at, which, token = max((answer.index(token), i, token) for i, answer in enumerate(answers) for token in answer)
    model.generation_config.save_pretrained(folder)
    for value in (token, [256, token]):
        path = os.path.join(folder, "generation_config.json")
        with open(path) as file:
            config = json.load(file)
        with open(path, "w") as file:
            json.dump({**config, "eos_token_id": value}, file)
        rows = run(folder, os.path.join(folder, "out"), "--set", "train.precision=f32")
        assert rows[which]["tokens"] == at + 1 < TOKENS, (rows[which], answers[which], token)
        assert rows[which]["completion"] == tokenizer.decode(answers[which][:at], skip_special_tokens=True), rows[which]


def merged(folder, tokenizer):
    """Answers of adapters, of the GGUF file and of the folder into which they are merged, and of transformers."""
    data, trained = os.path.join(folder, "train.jsonl"), os.path.join(folder, "run")
    with open(data, "w") as file:
        for i in range(40):
            file.write(json.dumps({"prompt": f"say {i}", "completion": f"{i}, {i}"}) + "\n")
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run([CLEAT, "train", "chat", data, "--init", folder, "--out", trained, "--quiet", "train.precision=f32", "train.epochs=2",
                    "data.max_length=64", "train.effective_batch_size=4", "train.learning_rate=1e-2"], **quiet)
    out = os.path.join(folder, "out")
    adapted = run(trained, out, source="--checkpoint")
    before = run(folder, out, "--set", "train.precision=f32")
    assert [row["completion"] for row in adapted] != [row["completion"] for row in before]
    for form, file in (("gguf-f32", "model.gguf"), ("hf", "")):
        exported = os.path.join(folder, form)
        subprocess.run([CLEAT, "export", trained, "--format", form, "--out", exported, "--quiet"], **quiet)
        rows = run(os.path.join(exported, file).rstrip("/"), out, "--set", "train.precision=f32")
        assert [row["completion"] for row in rows] == [row["completion"] for row in adapted], (form, rows, adapted)
    model = AutoModelForCausalLM.from_pretrained(exported).eval()
    for row in adapted:
        assert (row["completion"], row["tokens"]) == expect(model, tokenizer, row["prompt"]), row


def main():
    for name, config in CONFIGS.items():
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            model, tokenizer = write_model(folder, config)
            rows = run(folder, os.path.join(folder, "out"), "--set", "train.precision=f32")
            assert [row["prompt"] for row in rows] == PROMPTS, rows
            for row in rows:
                text, tokens = expect(model, tokenizer, row["prompt"])
                assert row["completion"] == text and row["tokens"] == tokens, (name, row, text, tokens)
            if name != "llama":
                continue
            ends(folder, model, tokenizer)
            os.remove(os.path.join(folder, "generation_config.json"))
            merged(folder, tokenizer)
            drawn = [[row["completion"] for row in run(folder, os.path.join(folder, "out"), "--temperature", "1.5",
                                                       "--top-k", "40", "--top-p", "0.9", "--seed", seed)]
                     for seed in ("3", "3", "4")]
            assert drawn[0] == drawn[1] != drawn[2], drawn
            assert [row["completion"] for row in run(folder, os.path.join(folder, "out"), "--temperature", "2",
                                                     "--top-k", "1")] == [row["completion"] for row in rows]
    print(f"{len(CONFIGS)} networks answer as in transformers")


main()
