#!/usr/bin/env bash
# transformers 5.24.0, gguf 0.19.0: whatever from_pretrained(gguf_file=...) loads counts as quantized. A GGUF file whose tensors
# are all f32 comes back as plain torch.nn.Linear layers in f32, with the values of the file, yet save_pretrained and Trainer
# refuse it as "quantized". So does a quantized file that was unpacked at loading, which happens by itself without a kernel
# for its blocks. GgufConfig(dequantize=True) is the way out, also for the file that has nothing to unpack; neither message
# names it.
#
# cleat trains from GGUF files, quantized ones too, and writes any of its formats of them.
#
# Output seen, 29 November 2026 (transformers 5.24.0, gguf 0.19.0, torch 2.15.0):
#   as it is: torch.float32, Linear, values of the file: True
#     save_pretrained: ValueError: The model is quantized with gguf and is not serializable
#     Trainer: ValueError: You cannot perform fine-tuning on purely quantized models
#   dequantize=True: torch.float32, Linear, values of the file: True
#     save_pretrained: done
#     Trainer: done
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check transformers==5.24.0 gguf==0.19.0 torch==2.15.0 accelerate==1.15.0
cat >"$work/load.py" <<'END'
import contextlib
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import gguf
import torch
from transformers import AutoModelForCausalLM, GgufConfig, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

folder = sys.argv[1]
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=1,
                                     num_key_value_heads=1, intermediate_size=48, max_position_embeddings=64))
writer = gguf.GGUFWriter(f"{folder}/small.gguf", "llama")
writer.add_context_length(64)
writer.add_embedding_length(32)
writer.add_block_count(2)
writer.add_feed_forward_length(48)
writer.add_head_count(1)
writer.add_head_count_kv(1)
writer.add_layer_norm_rms_eps(1e-6)
writer.add_rope_freq_base(10000.0)
writer.add_vocab_size(64)
names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2)
for name, value in model.state_dict().items():
    base, kind = name.rsplit(".", 1)
    writer.add_tensor(f"{names.get_name(base)}.{kind}", value.numpy())
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()


def attempt(what, call):
    try:
        call()
    except ValueError as refused:
        print(f"  {what}: ValueError: {str(refused).split(' - ')[0].split('. ')[0]}")
        return False
    print(f"  {what}: done")
    return True


def train(loaded):
    sample = {"input_ids": torch.arange(8), "labels": torch.arange(8)}
    settings = TrainingArguments(f"{folder}/run", max_steps=1, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True)
    with contextlib.redirect_stdout(sys.stderr):  # its report
        Trainer(loaded, settings, train_dataset=[sample, sample]).train()


done = []
for title, more in ("as it is", {}), ("dequantize=True", {"quantization_config": GgufConfig(dequantize=True)}):
    loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file="small.gguf", dtype=torch.float32, **more)
    values = loaded.state_dict()
    # rows of q and k have another order in GGUF files
    same = all(torch.equal(value, values[name]) or "self_attn" in name and torch.equal(value.sort(0)[0], values[name].sort(0)[0])
               for name, value in model.state_dict().items())
    print(f"{title}: {loaded.dtype}, {type(loaded.model.layers[0].mlp.up_proj).__name__}, values of the file: {same}")
    done += [same, attempt("save_pretrained", lambda: loaded.save_pretrained(f"{folder}/saved")), attempt("Trainer", lambda: train(loaded))]
sys.exit(0 if done == [True, False, False, True, True, True] else "this has changed")
END
"$work/venv/bin/python" "$work/load.py" "$work" 2>"$work/log" || { tail -n 5 "$work/log"; exit 1; }
