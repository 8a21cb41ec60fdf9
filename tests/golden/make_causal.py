#!/usr/bin/env python3
"""Writes the reference training of causal_lm: ten AdamW steps of LlamaForCausalLM of transformers, with tied embeddings and
two heads of queries that share one of keys, in double precision. The keys are those of tools/make_golden.py.

    python3 tests/golden/make_causal.py src/inspect/verify/checks/causal_lm.safetensors      (of the self-check)
"""
import json
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import LlamaConfig, LlamaForCausalLM

BATCH, LENGTH, VOCABULARY, WIDTH, HEADS, HIDDEN, STEPS, PROMPT = 2, 24, 48, 32, 2, 32, 10, 5
PROFILE = f"""[model]
type = causal_lm
d_model = {WIDTH}
heads = {HEADS}
kv_heads = 1
layers = 1
d_ff = {HIDDEN}
max_positions = {LENGTH}
[data]
max_length = {LENGTH}
[train]
learning_rate = 1e-3
weight_decay = 0.01
max_grad_norm = none
"""
LAYER = "model.layers.0."
NAMES = {"emb": ["model.embed_tokens"], "norm": ["model.norm"], "blocks.0.n1": [LAYER + "input_layernorm"],
         "blocks.0.n2": [LAYER + "post_attention_layernorm"], "blocks.0.att.q": [LAYER + "self_attn.q_proj"],
         "blocks.0.att.kv": [LAYER + "self_attn.k_proj", LAYER + "self_attn.v_proj"],
         "blocks.0.att.out": [LAYER + "self_attn.o_proj"], "blocks.0.mlp.down": [LAYER + "mlp.down_proj"],
         "blocks.0.mlp.gate_up": [LAYER + "mlp.gate_proj", LAYER + "mlp.up_proj"]}


def collect(model, prefix, value, arrays):
    parameters = dict(model.named_parameters())
    for here, there in NAMES.items():
        arrays[f"{prefix}{here}.weight"] = np.concatenate([value(parameters[f"{name}.weight"]) for name in there])


def main():
    torch.manual_seed(3)
    torch.set_default_dtype(torch.float64)
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=HEADS,
                         num_key_value_heads=1, intermediate_size=HIDDEN, max_position_embeddings=LENGTH, rms_norm_eps=1e-5,
                         tie_word_embeddings=True, attn_implementation="eager")
    model = LlamaForCausalLM(config).double().train()
    for parameter in model.parameters():
        parameter.data = (parameter.data + 0.1 * torch.randn_like(parameter)).float().double()
    tokens = torch.randint(VOCABULARY, (BATCH, LENGTH))
    labels = torch.cat([tokens[:, 1:], torch.full((BATCH, 1), -1)], 1)
    labels[1, :PROMPT] = -1
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    arrays, losses = {}, []
    collect(model, "param/", lambda p: p.detach().numpy().copy(), arrays)
    for step in range(STEPS + 1):
        logits = model(input_ids=tokens).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), labels.reshape(-1), ignore_index=-1)
        losses.append(loss.item())
        if step == STEPS:
            break
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            collect(model, "grad/", lambda p: p.grad.numpy().copy(), arrays)
        optimizer.step()
    collect(model, "after/", lambda p: p.detach().numpy().copy(), arrays)
    arrays["loss"] = np.array(losses)
    arrays["scale"] = np.full((BATCH, LENGTH), 1 / int((labels >= 0).sum()))
    arrays = {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}
    arrays |= {name: values.numpy().astype(np.int32) for name, values in
               (("tokens", tokens), ("labels", labels), ("starts", torch.zeros_like(tokens)))}
    save_file(arrays, sys.argv[1], metadata={"profile": PROFILE, "sizes": json.dumps({"vocabulary": VOCABULARY})})


main()
