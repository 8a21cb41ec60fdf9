#!/usr/bin/env python3
"""A language model that cleat trained with adapters: its exports to Hugging Face, PEFT and GGUF are the same network.

    test_gguf.py CLEAT SOURCE

Training starts from a folder of transformers and from the GGUF file that cleat makes of it. Exits with 77 if gguf, torch,
transformers or peft is not installed.
"""
# ctest: device
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy as np
    import torch
    from peft import AutoPeftModelForCausalLM, PeftModel
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
except ImportError as missing:
    print(missing)
    sys.exit(77)

CLEAT, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
SIZES = {"vocab_size": 320, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 64, "max_position_embeddings": 64, "head_dim": 8, "bos_token_id": 0, "eos_token_id": 1}
TEMPLATE = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
            "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def run(*words, fails=False):
    done = subprocess.run([CLEAT, *map(str, words)], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stdout + done.stderr


def make_base(folder, arch, tied, template=TEMPLATE):
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(arch, tie_word_embeddings=tied, **SIZES))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(folder)
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(["what a day, what a night"], trainers.BpeTrainer(
        vocab_size=280, special_tokens=["<|im_start|>", "<|im_end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<|im_start|>", eos_token="<|im_end|>",
                            chat_template=template).save_pretrained(folder)


def make_chats(path):
    chats = [{"messages": [{"role": "user", "content": f"day {i}?"}, {"role": "assistant", "content": f"night {i % 3}"}]} for i in range(24)]
    path.write_text("".join(json.dumps(chat) + "\n" for chat in chats))


def train(init, chats, out, **more):
    settings = {"data.path": chats, "data.max_length": 32, "train.epochs": 2, "train.learning_rate": 1e-2, "train.lora_rank": 3,
                "train.lora_alpha": 6, "run.self_check": "never", "train.precision": "f32", "train.effective_batch_size": 4, **more}
    run("train", SOURCE / "profiles/chat.ini", "--init", init, "--out", out, "--quiet",
        *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")))


def logits(model):
    with torch.no_grad():
        return model.eval()(torch.tensor([[0, 17, 99, 3, 250, 4]])).logits


def tensors(path):
    return {tensor.name: np.array(tensor.data) for tensor in gguf.GGUFReader(path).tensors}


def compare(folder, arch, tied):
    base, trained = folder / "base", folder / "run"
    folder.mkdir()
    make_base(base, arch, tied)
    make_chats(folder / "chats.jsonl")
    train(base, folder / "chats.jsonl", trained)
    for kind in ("hf", "peft", "gguf-f32", "gguf-lora", "gguf-q8_0"):
        run("export", trained, "--format", kind, "--out", folder / kind)
    assert [path.name for path in (folder / "gguf-f32").iterdir()] == ["model.gguf"]
    assert [path.name for path in (folder / "gguf-lora").iterdir()] == ["adapter.gguf"]
    plain = AutoModelForCausalLM.from_pretrained(base)
    merged = AutoModelForCausalLM.from_pretrained(folder / "hf")
    assert (logits(plain) - logits(merged)).abs().max() > 1e-2
    adapted = PeftModel.from_pretrained(plain, folder / "peft")
    assert torch.allclose(logits(adapted), logits(merged), atol=1e-4), arch
    assert torch.equal(logits(AutoPeftModelForCausalLM.from_pretrained(folder / "peft")), logits(adapted)), arch  # finds the base
    if arch != "qwen3":  # whose width of heads transformers does not take from such files
        read = AutoModelForCausalLM.from_pretrained(folder / "gguf-f32", gguf_file="model.gguf")
        assert torch.equal(logits(read), logits(merged)), arch
    # The same in the order of the files: llama-cli adds alpha / rank times B A.
    whole, parts = tensors(folder / "gguf-f32/model.gguf"), tensors(folder / "gguf-lora/adapter.gguf")
    again = folder / "again"
    train(folder / "gguf-f32/model.gguf", folder / "chats.jsonl", again)  # starts where the first one ended
    run("export", again, "--format", "gguf-lora", "--out", folder / "lora-2")
    run("export", again, "--format", "gguf-f32", "--out", folder / "f32-2")
    second, more = tensors(folder / "f32-2/model.gguf"), tensors(folder / "lora-2/adapter.gguf")
    assert parts.keys() == more.keys() and len(parts) == 2 * 7 * SIZES["num_hidden_layers"], len(parts)
    for name, values in second.items():
        if f"{name}.lora_a" in more:
            values = values - 2 * more[f"{name}.lora_b"] @ more[f"{name}.lora_a"]
        assert np.allclose(values, whole[name], atol=1e-6), (arch, name)
    print(f"{arch}: {len(second)} tensors")


def compare_template(folder):
    """A template that the profile names, for a tokenizer without one: exports have its program, with data.system."""
    folder.mkdir()
    make_base(folder / "base", "qwen2", True, template=None)
    make_chats(folder / "chats.jsonl")
    train(folder / "base", folder / "chats.jsonl", folder / "run", **{"data.template": "chatml", "data.system": "It's 9.", "data.max_length": 64})
    messages = [{"role": "user", "content": "day?"}]
    expected = "<|im_start|>system\nIt's 9.<|im_end|>\n<|im_start|>user\nday?<|im_end|>\n<|im_start|>assistant\n"
    for kind in ("hf", "peft", "gguf-f32"):
        out = folder / kind
        run("export", folder / "run", "--format", kind, "--out", out)
        if kind == "gguf-f32":
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder / "hf")
            tokenizer.chat_template = gguf.GGUFReader(out / "model.gguf").fields["tokenizer.chat_template"].contents()
        else:
            tokenizer = AutoTokenizer.from_pretrained(out)
        assert tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) == expected, kind
    again = run("plan", SOURCE / "profiles/chat.ini", folder / "chats.jsonl", "--init", folder / "hf", "--set", "data.max_length=64")
    assert "chat template: chatml" in again, again


with tempfile.TemporaryDirectory() as place:
    compare_template(pathlib.Path(place) / "template")
    for number, case in enumerate([("llama", False), ("qwen2", True), ("qwen3", True)]):
        compare(pathlib.Path(place) / str(number), *case)
