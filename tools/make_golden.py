#!/usr/bin/env python3
"""Writes a reference trajectory of the RNA model for `cleat verify`: ten AdamW steps on one batch, computed by
PyTorch in double precision from starting values that single precision holds exactly.

    python3 tools/make_golden.py tests/golden/rna.safetensors      (the file of this repository)
    python3 tools/make_golden.py FILE --d-model 64 --heads 8 --length 130 --batch 2 --lengths 130 71

Keys: input, target, lengths, output (before the first step), loss (before each step and after the last),
param/NAME, grad/NAME (at the first step), after/NAME; metadata config and optimizer. Needs PyTorch and numpy.
"""
import argparse
import json
import math
import struct

import numpy
import torch
import torch.nn.functional as F

STEPS, BOND, BOND_EPS, NORM_EPS = 10, 5.9, 1e-6, 1e-5
LOSS = ("mean over valid coordinates of squared error + mean over valid neighbours of "
        "(sqrt(|c[i+1]-c[i]|^2 + 1e-6) - 5.9)^2")
ADAMW = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
ADAMW_TEXT = "AdamW lr=1e-3 betas=(0.9,0.999) eps=1e-8 weight_decay=0.01"


def single(values):
    """Rounded to single precision, kept in double."""
    return values.float().double()


def starting_parameters(args, draw):
    """Names and shapes as torch.nn modules have them; norms start away from one and zero so that a wrong use shows."""
    d, ff = args.d_model, args.d_ff
    parameters = {}

    def add(name, *shape, scale, centre=0.0):
        parameters[name] = single(centre + scale * torch.randn(*shape, generator=draw, dtype=torch.float64))

    def add_linear(name, fan_in, fan_out):
        add(name + ".weight", fan_out, fan_in, scale=fan_in ** -0.5)
        add(name + ".bias", fan_out, scale=0.1)

    def add_norm(name):
        add(name + ".weight", d, scale=0.2, centre=1.0)
        add(name + ".bias", d, scale=0.1)

    add("emb.weight", args.vocab, d, scale=1.0)
    for i in range(args.layers):
        block = f"blocks.{i}."
        add_norm(block + "n1")
        add_norm(block + "n2")
        add_linear(block + "att.qkv", d, 3 * d)
        add_linear(block + "att.out", d, d)
        add_linear(block + "f1", d, ff)
        add_linear(block + "f2", ff, d)
    add_norm("norm")
    add_linear("head", d, 3)
    return parameters


def sinusoids(length, d):
    """Sine in even and cosine in odd columns, wavelengths from 2 pi to 10000 * 2 pi (Vaswani et al. 2017)."""
    place = torch.arange(length, dtype=torch.float64)[:, None]
    rate = 1e4 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    return torch.stack([(place * rate).sin(), (place * rate).cos()], -1).reshape(length, d)


def forward(p, args, tokens, valid):
    """tokens, valid [B, L] -> coordinates [B, L, 3]"""
    B, L, D, H = *tokens.shape, args.d_model, args.heads
    linear = lambda name, x: F.linear(x, p[name + ".weight"], p[name + ".bias"])
    norm = lambda name, x: F.layer_norm(x, (D,), p[name + ".weight"], p[name + ".bias"], NORM_EPS)
    x = p["emb.weight"][tokens] + sinusoids(L, D)
    for i in range(args.layers):
        b = f"blocks.{i}."
        q, k, v = (z.reshape(B, L, H, D // H).transpose(1, 2)
                   for z in linear(b + "att.qkv", norm(b + "n1", x)).split(D, -1))
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(D // H)
        share = scores.masked_fill(~valid[:, None, None, :], -math.inf).softmax(-1)
        x = x + linear(b + "att.out", torch.einsum("bhqk,bhkd->bhqd", share, v).transpose(1, 2).reshape(B, L, D))
        x = x + linear(b + "f2", F.gelu(linear(b + "f1", norm(b + "n2", x))))
    return linear("head", norm("norm", x))


def loss_of(coords, target, valid):
    squared = (coords - target)[valid].square().mean()
    steps = (coords[:, 1:] - coords[:, :-1])[valid[:, 1:]]
    if not len(steps):
        return squared
    return squared + ((steps.square().sum(-1) + BOND_EPS).sqrt() - BOND).square().mean()


def write_safetensors(path, tensors, metadata):
    """u64 length of the header, the header as JSON (padded to 8 bytes), the arrays."""
    header, at = {"__metadata__": metadata}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": {"int64": "I64", "float32": "F32"}[str(values.dtype)], "shape": list(values.shape),
                        "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(numpy.ascontiguousarray(values).tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    for name, value in dict(vocab=5, d_model=24, heads=3, layers=2, d_ff=40, batch=3, length=29, seed=7).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    parser.add_argument("--lengths", type=int, nargs="*", default=[29, 11, 20], help="one a sequence; none: all full")
    args = parser.parse_args()
    lengths = torch.tensor(args.lengths or [args.length] * args.batch)
    if len(lengths) != args.batch or lengths.max() > args.length or lengths.min() < 1:
        parser.error("--lengths must be --batch numbers from 1 to --length")

    draw = torch.Generator().manual_seed(args.seed)
    parameters = starting_parameters(args, draw)
    valid = torch.arange(args.length)[None] < lengths[:, None]
    tokens = torch.randint(args.vocab, (args.batch, args.length), generator=draw)
    target = single(10 * torch.randn(args.batch, args.length, 3, generator=draw, dtype=torch.float64))
    start = {name: values.clone() for name, values in parameters.items()}
    for values in parameters.values():
        values.requires_grad_(True)

    optimizer = torch.optim.AdamW(parameters.values(), **ADAMW)
    curve, output, gradients = [], None, None
    for step in range(STEPS + 1):
        optimizer.zero_grad()
        coords = forward(parameters, args, tokens, valid)
        loss = loss_of(coords, target, valid)
        curve.append(loss.item())
        if step == STEPS:
            break
        loss.backward()
        if step == 0:
            output = coords.detach().clone()
            gradients = {name: values.grad.clone() for name, values in parameters.items()}
        optimizer.step()

    floats = lambda values: values.detach().float().numpy()
    tensors = {"input": tokens.numpy(), "target": floats(target), "lengths": lengths.numpy()}
    tensors.update({"param/" + name: floats(values) for name, values in start.items()})
    tensors["output"] = floats(output)
    tensors.update({"grad/" + name: floats(values) for name, values in gradients.items()})
    tensors["loss"] = numpy.array(curve, dtype=numpy.float32)
    tensors.update({"after/" + name: floats(values) for name, values in parameters.items()})
    config = {"vocab": args.vocab, "d_model": args.d_model, "heads": args.heads, "layers": args.layers,
              "d_ff": args.d_ff, "B": args.batch, "L": args.length, "loss": LOSS}
    write_safetensors(args.file, tensors,
                      {"config": json.dumps(config), "optimizer": ADAMW_TEXT, "torch": torch.__version__})


if __name__ == "__main__":
    main()
