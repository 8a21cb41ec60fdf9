#!/usr/bin/env bash
# transformers 5.24.0, gguf 0.19.0: from_pretrained(gguf_file=...) of a Gemma 3 file ignores gemma3.rope.scaling.type and
# .factor. The tensors and the order of the layers come out right, and nothing is logged, but the layers that see all tokens
# have unscaled rotary positions: another network, already in short texts. The Gemma 3 report gives a factor of 8 for the
# networks from 4 B on.
#
# cleat reads both keys; perplexities of its Gemma 3 from GGUF equal those of the folder that the file was made from.
#
# Output seen, 29 November 2026 (transformers 5.24.0, gguf 0.19.0, torch 2.15.0):
#   all tensors equal: True - layer types equal: True
#   full attention, as written: {'rope_type': 'linear', 'factor': 8.0, 'rope_theta': 1000000.0}
#   full attention, as loaded:  {'rope_type': 'default', 'rope_theta': 1000000.0}
#   logits apart by up to 4.63
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check transformers==5.24.0 gguf==0.19.0 torch==2.15.0 accelerate==1.15.0
cat >"$work/gemma.py" <<'END'
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import gguf
import torch
from transformers import AutoModelForCausalLM, Gemma3ForCausalLM, Gemma3TextConfig

torch.manual_seed(0)
config = Gemma3TextConfig(vocab_size=64, hidden_size=32, num_hidden_layers=6, num_attention_heads=2,
                          num_key_value_heads=1, head_dim=16, intermediate_size=48, max_position_embeddings=512, sliding_window=8,
                          query_pre_attn_scalar=16,
                          rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                                           "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}})
model = Gemma3ForCausalLM(config).eval()
for p in model.parameters():
    p.data = torch.randn_like(p) * 0.3
path = os.path.join(sys.argv[1], "gemma3.gguf")
writer = gguf.GGUFWriter(path, "gemma3")
writer.add_context_length(512)
writer.add_embedding_length(32)
writer.add_block_count(6)
writer.add_feed_forward_length(48)
writer.add_head_count(2)
writer.add_head_count_kv(1)
writer.add_key_length(16)
writer.add_value_length(16)
writer.add_layer_norm_rms_eps(config.rms_norm_eps)
writer.add_sliding_window(8)
writer.add_rope_freq_base(1e6)
writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
writer.add_rope_scaling_factor(8.0)
writer.add_vocab_size(64)
names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GEMMA3, 6)
for name, value in model.state_dict().items():
    if name == "lm_head.weight":
        continue
    base, kind = name.rsplit(".", 1)
    array = value.float().numpy() + (1 if "norm" in name else 0)
    writer.add_tensor(f"{names.get_name(base)}.{kind}", array)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
loaded = AutoModelForCausalLM.from_pretrained(sys.argv[1], gguf_file="gemma3.gguf", dtype=torch.float32).eval()
same = all(torch.allclose(value, loaded.state_dict()[name], atol=1e-6) for name, value in model.state_dict().items())
print("all tensors equal:", same, "- layer types equal:", loaded.config.layer_types == config.layer_types)
print("full attention, as written:", config.rope_parameters["full_attention"])
print("full attention, as loaded: ", loaded.config.rope_parameters["full_attention"])
tokens = torch.arange(40)[None] % 64
with torch.no_grad():
    apart = (model(tokens).logits - loaded(tokens).logits).abs().max().item()
print(f"logits apart by up to {apart:.2f}")
same = same and loaded.config.layer_types == config.layer_types
factor = loaded.config.rope_parameters["full_attention"].get("factor")
sys.exit(0 if same and factor is None and apart > 0.01 else "this has changed")
END
"$work/venv/bin/python" "$work/gemma.py" "$work" 2>"$work/log" || { tail -n 5 "$work/log"; exit 1; }
