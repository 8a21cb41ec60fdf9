#!/usr/bin/env python3
"""Writes a reference trajectory for `cleat verify`: ten AdamW steps of a model on one batch, computed by PyTorch in double
precision from starting values that single precision holds exactly.

    python3 tools/make_golden.py tests/golden/rna.safetensors      (the files of this repository)
    python3 tools/make_golden.py --family text tests/golden/text.safetensors
    python3 tools/make_golden.py --family tagging tests/golden/tagging.safetensors
    python3 tools/make_golden.py --family lstm tests/golden/lstm.safetensors --lengths
    python3 tools/make_golden.py --family dense tests/golden/dense.safetensors --lengths
    python3 tools/make_golden.py --family temporal tests/golden/temporal.safetensors --lengths
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
CLASSES, INPUTS, HIDDEN, WIDTHS = 3, 5, 9, [13, 20, 11, 4]
LOSSES = {
    "rna": "mean over valid coordinates of squared error + mean over valid neighbours of "
           "(sqrt(|c[i+1]-c[i]|^2 + 1e-6) - 5.9)^2",
    "text": f"cross entropy of {CLASSES} classes, mean pooling over valid positions",
    "tagging": f"cross entropy of {CLASSES} tags, mean over valid positions of the batch",
    "lstm": "mse of the last step's output",
    "temporal": "mse of the last step's output",
    "dense": "cross entropy",
}
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

    if args.family == "lstm":
        for i in range(args.layers):
            for part, fan_in in ("ih", INPUTS if i == 0 else HIDDEN), ("hh", HIDDEN):
                add(f"rnn.weight_{part}_l{i}", 4 * HIDDEN, fan_in, scale=HIDDEN ** -0.5)
                add(f"rnn.bias_{part}_l{i}", 4 * HIDDEN, scale=0.2)
        add_linear("head", HIDDEN, 1)
        return parameters
    if args.family == "dense":
        for i, (fan_in, fan_out) in enumerate(zip(WIDTHS, WIDTHS[1:])):
            add_linear(str(2 * i), fan_in, fan_out)
        return parameters
    if args.family == "temporal":
        add_linear("inp", INPUTS, d)
    else:
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
    add_linear("head", d, {"rna": 3, "temporal": 1}.get(args.family, CLASSES))
    return parameters


def sinusoids(length, d):
    """Sine in even and cosine in odd columns, wavelengths from 2 pi to 10000 * 2 pi (Vaswani et al. 2017)."""
    place = torch.arange(length, dtype=torch.float64)[:, None]
    rate = 1e4 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    return torch.stack([(place * rate).sin(), (place * rate).cos()], -1).reshape(length, d)


def encoder(p, args, x, valid):
    """x [B, L, D], valid [B, L] -> [B, L, D]"""
    B, L, D, H = *x.shape, args.heads
    linear = lambda name, x: F.linear(x, p[name + ".weight"], p[name + ".bias"])
    norm = lambda name, x: F.layer_norm(x, (D,), p[name + ".weight"], p[name + ".bias"], NORM_EPS)
    x = x + sinusoids(L, D)
    for i in range(args.layers):
        b = f"blocks.{i}."
        q, k, v = (z.reshape(B, L, H, D // H).transpose(1, 2)
                   for z in linear(b + "att.qkv", norm(b + "n1", x)).split(D, -1))
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(D // H)
        share = scores.masked_fill(~valid[:, None, None, :], -math.inf).softmax(-1)
        x = x + linear(b + "att.out", torch.einsum("bhqk,bhkd->bhqd", share, v).transpose(1, 2).reshape(B, L, D))
        x = x + linear(b + "f2", F.gelu(linear(b + "f1", norm(b + "n2", x))))
    return norm("norm", x)


def lstm(p, args, x):
    """The last step's output of the last layer. Gates in the order input, forget, cell, output. x [B, T, C] -> [B, H]"""
    for i in range(args.layers):
        h = c = x.new_zeros(len(x), HIDDEN)
        steps = []
        for t in range(x.shape[1]):
            gates = (F.linear(x[:, t], p[f"rnn.weight_ih_l{i}"], p[f"rnn.bias_ih_l{i}"]) +
                     F.linear(h, p[f"rnn.weight_hh_l{i}"], p[f"rnn.bias_hh_l{i}"]))
            enter, forget, cell, leave = gates.chunk(4, -1)
            c = forget.sigmoid() * c + enter.sigmoid() * cell.tanh()
            h = leave.sigmoid() * c.tanh()
            steps.append(h)
        x = torch.stack(steps, 1)
    return x[:, -1]


def forward(p, args, x, valid):
    """x: tokens [B, L], or values [B, L, C] or [B, C]"""
    head = lambda x: F.linear(x, p["head.weight"], p["head.bias"])
    if args.family == "lstm":
        return head(lstm(p, args, x))
    if args.family == "dense":
        for i in range(len(WIDTHS) - 1):
            x = F.linear(x if i == 0 else x.relu(), p[f"{2 * i}.weight"], p[f"{2 * i}.bias"])
        return x
    if args.family == "temporal":
        return head(encoder(p, args, F.linear(x, p["inp.weight"], p["inp.bias"]), valid)[:, -1])
    x = encoder(p, args, p["emb.weight"][x], valid)
    if args.family == "text":
        x = (x * valid[..., None]).sum(1) / valid.sum(1)[:, None]
    return head(x)


def loss_of(output, target, valid, family):
    if family in ("text", "dense"):
        return F.cross_entropy(output, target)
    if family == "tagging":
        return F.cross_entropy(output[valid], target[valid])
    if family != "rna":
        return F.mse_loss(output, target)
    squared = (output - target)[valid].square().mean()
    steps = (output[:, 1:] - output[:, :-1])[valid[:, 1:]]
    if not len(steps):
        return squared
    return squared + ((steps.square().sum(-1) + BOND_EPS).sqrt() - BOND).square().mean()


def batch_of(args, draw):
    """input and target"""
    normal = lambda *shape: single(torch.randn(*shape, generator=draw, dtype=torch.float64))
    whole = lambda below, *shape: torch.randint(below, shape, generator=draw)
    B, L = args.batch, args.length
    if args.family == "dense":
        return normal(B, WIDTHS[0]), whole(WIDTHS[-1], B)
    if args.family in ("lstm", "temporal"):
        return normal(B, L, INPUTS), normal(B, 1)
    tokens = whole(args.vocab, B, L)
    if args.family == "rna":
        return tokens, 10 * normal(B, L, 3)
    return tokens, whole(CLASSES, B) if args.family == "text" else whole(CLASSES, B, L)


def config_of(args):
    sizes = {
        "lstm": {"inputs": INPUTS, "hidden": HIDDEN, "layers": args.layers, "T": args.length},
        "dense": {"widths": WIDTHS},
        "temporal": {"T": args.length, "patches": args.batch, "heads": args.heads},
    }.get(args.family, {"vocab": args.vocab, "d_model": args.d_model, "heads": args.heads, "layers": args.layers,
                        "d_ff": args.d_ff, "B": args.batch, "L": args.length})
    return {**sizes, "B": args.batch, "loss": LOSSES[args.family]}


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
    parser.add_argument("--family", choices=sorted(LOSSES), default="rna")
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
    values, target = batch_of(args, draw)
    start = {name: parameter.clone() for name, parameter in parameters.items()}
    for parameter in parameters.values():
        parameter.requires_grad_(True)

    optimizer = torch.optim.AdamW(parameters.values(), **ADAMW)
    curve, output, gradients = [], None, None
    for step in range(STEPS + 1):
        optimizer.zero_grad()
        result = forward(parameters, args, values, valid)
        loss = loss_of(result, target, valid, args.family)
        curve.append(loss.item())
        if step == STEPS:
            break
        loss.backward()
        if step == 0:
            output = result.detach().clone()
            gradients = {name: values.grad.clone() for name, values in parameters.items()}
        optimizer.step()

    floats = lambda values: values.detach().float().numpy()
    numbers = lambda values: floats(values) if values.is_floating_point() else values.numpy()
    tensors = {"input": numbers(values), "target": numbers(target)}
    if args.lengths:
        tensors["lengths"] = lengths.numpy()
    tensors.update({"param/" + name: floats(values) for name, values in start.items()})
    tensors["output"] = floats(output)
    tensors.update({"grad/" + name: floats(values) for name, values in gradients.items()})
    tensors["loss"] = numpy.array(curve, dtype=numpy.float32)
    tensors.update({"after/" + name: floats(values) for name, values in parameters.items()})
    write_safetensors(args.file, tensors,
                      {"config": json.dumps(config_of(args)), "optimizer": ADAMW_TEXT, "torch": torch.__version__})


if __name__ == "__main__":
    main()
