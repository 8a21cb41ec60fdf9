#!/usr/bin/env python3
"""Writes the reference training of rna_transformer with the network rnafm: ten AdamW steps of RnaFmModel of multimolecule
0.2.2 and a linear layer, in double precision. The keys are those of tools/make_golden.py.

    python3 tests/golden/make_rnafm.py tests/golden/rnafm.safetensors
"""
import os
import sys

import numpy
import torch
from multimolecule import RnaFmConfig, RnaFmModel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import make_golden as golden

BATCH, LENGTH, LENGTHS, WIDTH, HEADS, LAYERS, HIDDEN, POSITIONS = 3, 23, [20, 7, 15], 16, 2, 2, 24, 28
CLS, EOS, FIRST_LETTER, LETTERS = 1, 2, 6, 5
LAYER = {"n1": ["attention.layer_norm"], "att.qkv": [f"attention.self.{part}" for part in ("query", "key", "value")],
         "att.out": ["attention.output.dense"], "n2": ["layer_norm"], "f1": ["intermediate.dense"], "f2": ["output.dense"]}
NAMES = {"emb.word": ["0.embeddings.word_embeddings"], "emb.position": ["0.embeddings.position_embeddings"],
         "emb.norm": ["0.embeddings.layer_norm"], "norm": ["0.encoder.layer_norm"], "head": ["1"]}
for layer in range(LAYERS):
    NAMES.update({f"blocks.{layer}.{here}": [f"0.encoder.layer.{layer}.{name}" for name in there]
                  for here, there in LAYER.items()})


def collect(modules, prefix, value):
    parameters = {name: value(p).detach().float().numpy().copy() for name, p in modules.named_parameters() if value(p) is not None}
    return {f"{prefix}{here}.{kind}": numpy.concatenate([parameters[f"{name}.{kind}"] for name in there])
            for here, there in NAMES.items() for kind in ("weight", "bias") if f"{there[0]}.{kind}" in parameters}


def states(model, tokens, lengths):
    """Of the residues, also behind the end, where the package has padding instead: <cls>, residues, <eos>."""
    ends = lambda token: torch.full((BATCH, 1), token)
    places = torch.arange(LENGTH)[None].expand(BATCH, -1)
    seen = torch.cat([ends(1), places < lengths[:, None], ends(1)], 1)
    positions = torch.cat([ends(2), places + 3, lengths[:, None] + 3], 1)
    x = model.embeddings.word_embeddings(torch.cat([ends(CLS), tokens, ends(EOS)], 1))
    x = model.embeddings.layer_norm(x + model.embeddings.position_embeddings(positions))
    hidden = torch.zeros(BATCH, 1, 1, LENGTH + 2).masked_fill(seen[:, None, None] == 0, -1e30)
    return model.encoder(x, hidden).last_hidden_state[:, 1:-1]


def check(model, tokens, lengths):
    for b, n in enumerate(lengths.tolist()):
        ids = torch.cat([torch.tensor([CLS]), tokens[b, :n], torch.tensor([EOS])])[None]
        own = model(input_ids=ids).last_hidden_state[0, 1:-1]
        assert (own - states(model, tokens, lengths)[b, :n]).abs().max() < 1e-12


def main():
    torch.manual_seed(11)
    torch.set_default_dtype(torch.float64)
    config = RnaFmConfig(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=HIDDEN,
                         max_position_embeddings=POSITIONS, hidden_dropout=0.0, attention_dropout=0.0)
    modules = torch.nn.Sequential(RnaFmModel(config, add_pooling_layer=False), torch.nn.Linear(WIDTH, 3)).double()
    for name, p in modules.named_parameters():
        # the first norm divides by the width of the embeddings: narrow ones have gradients that f16 cannot hold
        std = 1 if "_embeddings" in name else 0.05 if p.dim() < 2 else 0.15
        p.data = (p.data + std * torch.randn_like(p)).float().double()
    lengths, tokens = torch.tensor(LENGTHS), FIRST_LETTER + torch.randint(LETTERS, (BATCH, LENGTH))
    target = (torch.randn(BATCH, LENGTH, 3)).float().double()
    valid = torch.arange(LENGTH)[None] < lengths[:, None]
    check(modules[0], tokens, lengths)
    args = golden.read_arguments(["-", "--batch", str(BATCH), "--length", str(LENGTH), "--lengths", *map(str, LENGTHS)])[0]
    tensors = golden.fields_of(args, tokens.numpy(), target.float().numpy(), lengths.numpy())
    tensors.update({"marked_lengths": lengths.numpy() + 2, "end": lengths.numpy() + 3}, **collect(modules, "param/", lambda p: p))
    optimizer, curve = torch.optim.AdamW(modules.parameters(), **golden.ADAMW), []
    for step in range(golden.STEPS + 1):
        optimizer.zero_grad()
        output = modules[1](states(modules[0], tokens, lengths))
        loss = golden.loss_of(output, target, valid, "rna")
        curve.append(loss.item())
        if step == golden.STEPS:
            break
        loss.backward()
        if step == 0:
            tensors["output"] = output.detach().float().numpy()
            tensors.update(collect(modules, "grad/", lambda p: p.grad))
        optimizer.step()
    tensors.update(collect(modules, "after/", lambda p: p), loss=numpy.array(curve, numpy.float32))
    args.d_model, args.heads, args.layers, args.d_ff = WIDTH, HEADS, LAYERS, HIDDEN
    profile, _ = golden.profile_of(args)
    network = f"[model]\nnetwork = rnafm\nmax_positions = {POSITIONS}\n"
    profile = profile.replace("[model]\n", network, 1) + f"[data]\nmax_length = {LENGTH}\n"
    metadata = {"profile": profile, "sizes": f'{{"bond": {golden.BOND}}}', "torch": torch.__version__}
    golden.write_safetensors(sys.argv[1], tensors, metadata)


main()
