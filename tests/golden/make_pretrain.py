#!/usr/bin/env python3
"""Writes the reference training of text_pretrain: ten AdamW steps of BertForMaskedLM of transformers, whose decoder is tied
to the word embeddings, in double precision. The keys are those of tools/make_golden.py.

    python3 tests/golden/make_pretrain.py src/inspect/verify/checks/text_pretrain.safetensors      (of the self-check)
"""
import json
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import BertConfig, BertForMaskedLM

BATCH, LENGTH, VOCABULARY, WIDTH, HEADS, LAYERS, HIDDEN, POSITIONS = 2, 24, 48, 32, 1, 1, 32, 24
LENGTHS, FRACTION, MASK, FIRST_WORD, STEPS = [24, 17], 0.25, 4, 5, 10
PROFILE = f"""[model]
type = text_pretrain
network = bert
d_model = {WIDTH}
heads = {HEADS}
layers = {LAYERS}
d_ff = {HIDDEN}
dropout = 0
max_positions = {POSITIONS}
[data]
max_length = {LENGTH}
mask_fraction = {FRACTION}
[train]
learning_rate = 1e-3
weight_decay = 0.01
max_grad_norm = none
"""


def names():
    """Names of layers here and in transformers; three of theirs form one matrix here."""
    found = {"emb.word": ["bert.embeddings.word_embeddings"], "emb.position": ["bert.embeddings.position_embeddings"],
             "emb.type": ["bert.embeddings.token_type_embeddings"], "emb.norm": ["bert.embeddings.LayerNorm"],
             "mlm.dense": ["cls.predictions.transform.dense"], "mlm.norm": ["cls.predictions.transform.LayerNorm"]}
    for i in range(LAYERS):
        there = f"bert.encoder.layer.{i}."
        found[f"blocks.{i}.att.qkv"] = [f"{there}attention.self.{part}" for part in ("query", "key", "value")]
        found[f"blocks.{i}.att.out"] = [there + "attention.output.dense"]
        found[f"blocks.{i}.n1"] = [there + "attention.output.LayerNorm"]
        found[f"blocks.{i}.f1"] = [there + "intermediate.dense"]
        found[f"blocks.{i}.f2"] = [there + "output.dense"]
        found[f"blocks.{i}.n2"] = [there + "output.LayerNorm"]
    return found


def collect(model, prefix, value, arrays):
    parameters = dict(model.named_parameters())
    arrays[prefix + "mlm.bias"] = value(parameters["cls.predictions.bias"])
    for here, there in names().items():
        for suffix in ("weight", "bias"):
            parts = [parameters[f"{name}.{suffix}"] for name in there if f"{name}.{suffix}" in parameters]
            if parts:
                arrays[f"{prefix}{here}.{suffix}"] = np.concatenate([value(part) for part in parts])


def make_batch():
    """Tokens with the selected ones masked, and the selected tokens (-1 elsewhere)."""
    tokens = torch.randint(FIRST_WORD, VOCABULARY, (BATCH, LENGTH))
    labels = torch.full((BATCH, LENGTH), -1)
    for b, length in enumerate(LENGTHS):
        chosen = torch.randperm(length - 2)[:round(FRACTION * (length - 2))] + 1
        labels[b, chosen] = tokens[b, chosen]
        tokens[b, chosen] = MASK
        tokens[b, length:] = -1
    return tokens, labels


def chosen_rows(model, logits, labels):
    """[B, M, V]; a row without a selected token has the logits of a zero vector."""
    rows = round(FRACTION * LENGTH)
    empty = model.cls(torch.zeros(1, WIDTH))[0]
    output = empty.expand(BATCH, rows, VOCABULARY).clone()
    for b in range(BATCH):
        of = logits[b, labels[b] >= 0]
        output[b, :len(of)] = of
    return output


def main():
    torch.manual_seed(3)
    torch.set_default_dtype(torch.float64)
    config = BertConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                        intermediate_size=HIDDEN, max_position_embeddings=POSITIONS, hidden_dropout_prob=0,
                        attention_probs_dropout_prob=0, attn_implementation="eager")
    model = BertForMaskedLM(config).double().train()
    for parameter in model.parameters():
        parameter.data = (parameter.data + 0.1 * torch.randn_like(parameter)).float().double()
    tokens, labels = make_batch()
    mask, targets = (tokens >= 0).long(), torch.where(labels >= 0, labels, torch.tensor(-100))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    arrays, losses = {}, []
    collect(model, "param/", lambda p: p.detach().numpy().copy(), arrays)
    for step in range(STEPS + 1):
        logits = model(input_ids=tokens.clamp(min=0), attention_mask=mask).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1), ignore_index=-100)
        losses.append(loss.item())
        if step == 0:
            arrays["output"] = chosen_rows(model, logits, labels).detach().numpy()
        if step == STEPS:
            break
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            collect(model, "grad/", lambda p: p.grad.numpy().copy(), arrays)
        optimizer.step()
    collect(model, "after/", lambda p: p.detach().numpy().copy(), arrays)
    arrays["loss"] = np.array(losses)
    arrays["scale"] = np.full((BATCH, round(FRACTION * LENGTH)), 1 / int((labels >= 0).sum()))
    arrays = {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}
    arrays |= {"tokens": tokens.numpy().astype(np.int32), "lengths": np.array(LENGTHS, np.int32),
               "labels": labels.numpy().astype(np.int32)}
    save_file(arrays, sys.argv[1], metadata={"profile": PROFILE, "sizes": json.dumps({"vocabulary": VOCABULARY})})


main()
