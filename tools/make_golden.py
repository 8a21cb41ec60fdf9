#!/usr/bin/env python3
"""Writes a reference trajectory for `cleat verify`: ten AdamW steps of a model on one batch, computed by PyTorch in double
precision from starting values that single precision holds exactly.

    python3 tools/make_golden.py tests/golden/rna.safetensors      (the files of this repository)
    python3 tools/make_golden.py --family text tests/golden/text.safetensors
    python3 tools/make_golden.py --family tagging tests/golden/tagging.safetensors
    python3 tools/make_golden.py --family lstm tests/golden/lstm.safetensors --lengths
    python3 tools/make_golden.py --family dense tests/golden/dense.safetensors --lengths
    python3 tools/make_golden.py --family temporal tests/golden/temporal.safetensors --lengths
    python3 tools/make_golden.py --family resnet tests/golden/resnet.safetensors --batch 4 --lengths
    python3 tools/make_golden.py --family vit tests/golden/vit.safetensors --batch 2 --lengths
    python3 tools/make_golden.py --family convnext tests/golden/convnext.safetensors --batch 2 --lengths
    python3 tools/make_golden.py --family segformer tests/golden/segformer.safetensors --batch 2 --seed 10 --lengths
    python3 tools/make_golden.py --family emberformer tests/golden/emberformer.safetensors --length 5 --lengths 5 2 4
    python3 tools/make_golden.py --family tagging tests/golden/groups.safetensors --d-model 16 --heads 2 --d-ff 24 \
        --length 12 --lengths 12 5 9 --train freeze=embeddings layer_decay=0.6 backbone_learning_rate=5e-4 decay_norm_bias=false
    python3 tools/make_golden.py --family text tests/golden/lora.safetensors --d-model 16 --heads 2 --d-ff 24 \
        --length 12 --lengths 12 5 9 --train lora_rank=3 lora_alpha=6 "lora_layers=query value f1"
    python3 tools/make_golden.py --checks src/inspect/verify/checks      (those of the library's self-check, one a model type)
    python3 tools/make_golden.py FILE --d-model 64 --heads 8 --length 130 --batch 2 --lengths 130 71

Keys: output (before the first step), loss (before each step and after the last), param/NAME, grad/NAME (at the first step),
after/NAME; no grad/NAME where --train freezes a parameter; the fields of the model's data by name; metadata profile (INI) and sizes
(JSON), as src/inspect/verify/golden.h describes. Needs PyTorch and numpy.
"""
import argparse
import json
import math
import struct

import numpy
import torch
import torch.nn.functional as F

from golden_structure import STRUCTURE_TERMS, partners_of, rigid_chain, structure_loss

STEPS, BOND, BOND_EPS, NORM_EPS = 10, 5.9, 1e-6, 1e-5
DENSE_LOSS = "cross entropy"
CLASSES, INPUTS, HIDDEN, WIDTHS = 3, 5, 9, [13, 20, 11, 4]
RESNET = {"channels": 6, "px": 13, "inputs": 3, "classes": 7}
VIT = {"px": 15, "patch": 5, "inputs": 3, "classes": 7}
CONVNEXT = {"widths": [6, 10], "blocks": [1, 2], "px": 24, "inputs": 3, "classes": 7}
SEGFORMER = {"dims": [4, 6, 8, 10], "heads": [1, 3, 2, 2], "sr": [5, 2, 1, 1], "depth": 2, "decoder": 10, "px": 40,
             "inputs": 3, "classes": 2}
EMBERFORMER = {"dims": [4, 6, 8, 10], "spatial_heads": [1, 3, 2, 2], "sr": [3, 2, 1, 1], "depth": 1, "decoder": 10,
               "classes": 1, "stem_stride": 2, "px": 20, "patch": 4, "features": 3, "inputs": 2, "positive_weight": 2.5,
               "focal_gamma": 1.5, "dice": 0.7}
# The self-check's: multiples of 8 and 16, which the fastest kernels require, and the large stem with its max pooling.
CHECK_SIZES = {
    "HIDDEN": 16, "INPUTS": 8, "WIDTHS": [16, 32, 32, 8], "DENSE_LOSS": "mse of the outputs",
    "RESNET": {"channels": 8, "px": 16, "inputs": 3, "classes": 8, "stem": 7},
    "VIT": {"px": 16, "patch": 4, "inputs": 3, "classes": 8},
    "CONVNEXT": {"widths": [8, 16], "blocks": [1, 1], "px": 16, "inputs": 3, "classes": 8},
    "SEGFORMER": {"dims": [8, 8, 8, 16], "heads": [1, 1, 1, 2], "sr": [2, 1, 1, 1], "depth": 1, "decoder": 8, "px": 32,
                  "inputs": 3, "classes": 1, "positive_weight": 2.5, "focal_gamma": 1.5, "dice": 0.7},
    "EMBERFORMER": {"dims": [8, 8, 8, 16], "spatial_heads": [1, 1, 1, 2], "sr": [2, 1, 1, 1], "depth": 1, "decoder": 8,
                    "classes": 1, "stem_stride": 2, "px": 16, "patch": 4, "features": 4, "inputs": 2,
                    "positive_weight": 2.5, "focal_gamma": 1.5, "dice": 0.7},
}
CHECK_COMMON = "--d-model 32 --heads 1 --layers 1 --d-ff 32 --batch 2 --length 24".split()
CHECKS = {  # model type: family and what differs from CHECK_COMMON
    "rna_transformer": "structure --length 40 --lengths 40 33",
    "text_classifier": "text --lengths 24 17",
    "text_tagger": "tagging --d-model 16 --lengths 24 17",
    "series_lstm": "lstm --length 12 --lengths",
    "series_transformer": "temporal --d-model 16 --batch 16 --lengths",
    "series_dense": "dense --batch 32 --lengths",
    "image_resnet": "resnet --batch 4 --lengths",
    "image_vit": "vit --lengths",
    "image_convnext": "convnext --lengths",
    "mask_segformer": "segformer --lengths",
    "emberformer": "emberformer --d-model 16 --length 4 --lengths 4 2",
}
IMAGES = ("resnet", "vit", "convnext")
ADAMW = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}


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

    def add_norm(name, width=d):
        add(name + ".weight", width, scale=0.2, centre=1.0)
        add(name + ".bias", width, scale=0.1)

    def add_conv(name, fan_in, fan_out, kernel, bias=False):
        add(name + ".weight", fan_out, fan_in, kernel, kernel, scale=(fan_in * kernel * kernel) ** -0.5)
        if bias:
            add(name + ".bias", fan_out, scale=0.1)

    if args.family == "resnet":
        width = RESNET["channels"]
        add_conv("stem", RESNET["inputs"], width, RESNET.get("stem", 3))
        add_norm("bn", width)
        for block, fan_in, fan_out in ("b1.", width, width), ("b2.", width, 2 * width):
            add_conv(block + "c1", fan_in, fan_out, 3)
            add_norm(block + "b1", fan_out)
            add_conv(block + "c2", fan_out, fan_out, 3)
            add_norm(block + "b2", fan_out)
            if fan_in != fan_out:
                add_conv(block + "sc.0", fan_in, fan_out, 1)
                add_norm(block + "sc.1", fan_out)
        add_linear("fc", 2 * width, RESNET["classes"])
        return parameters
    if args.family == "convnext":
        fan_in = CONVNEXT["inputs"]
        for stage, (width, blocks) in enumerate(zip(CONVNEXT["widths"], CONVNEXT["blocks"])):
            if stage:
                add_norm(f"dn.{stage}", fan_in)
            add_conv(f"dc.{stage}" if stage else "pe", fan_in, width, 2 if stage else 4, bias=True)
            if not stage:
                add_norm("pn", width)
            for j in range(blocks):
                block = f"st.{stage}.{j}."
                add_conv(block + "dw", 1, width, 7, bias=True)
                add_norm(block + "n", width)
                add_linear(block + "f1", width, 4 * width)
                add_linear(block + "f2", 4 * width, width)
                add(block + "gamma", width, scale=0.2, centre=0.5)
            fan_in = width
        add_norm("norm", fan_in)
        add_linear("head", fan_in, CONVNEXT["classes"])
        return parameters
    if args.family in ("segformer", "emberformer"):
        sizes, fan_in = SEGFORMER, SEGFORMER["inputs"]
        if args.family == "emberformer":
            sizes, fan_in = EMBERFORMER, EMBERFORMER["features"]
        dims, decoder = sizes["dims"], sizes["decoder"]
        for i, (fan_in, width, reduction) in enumerate(zip([fan_in] + dims, dims, sizes["sr"])):
            add_conv(f"pe.{i}", fan_in, width, 3 if i else 7, bias=True)
            for name in "pn", "on":
                add_norm(f"{name}.{i}", width)
            for j in range(sizes["depth"]):
                block = f"st.{i}.{j}."
                for name in "n1", "n2":
                    add_norm(block + name, width)
                add_linear(block + "att.q", width, width)
                add_linear(block + "att.kv", width, 2 * width)
                add_linear(block + "att.out", width, width)
                if reduction > 1:
                    add_conv(block + "att.red", width, width, reduction, bias=True)
                    add_norm(block + "att.n", width)
                add_linear(block + "f1", width, 4 * width)
                add_conv(block + "dw", 1, 4 * width, 3, bias=True)
                add_linear(block + "f2", 4 * width, width)
            add_linear(f"dec.{i}", width, decoder)
        add_conv("fuse", 4 * decoder, decoder, 1)
        add_norm("bn", decoder)
        add_conv("cls", decoder, sizes["classes"], 1, bias=True)
    if args.family == "segformer":
        return parameters
    if args.family == "emberformer":
        add_conv("skip", EMBERFORMER["features"], 1, 1, bias=True)

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
    elif args.family == "emberformer":
        add_linear("inp", EMBERFORMER["patch"] ** 2 * EMBERFORMER["inputs"], d)
    elif args.family == "vit":
        add_conv("pe", VIT["inputs"], d, VIT["patch"], bias=True)
        add("cls", d, scale=0.5)
        add("pos", 1 + (VIT["px"] // VIT["patch"]) ** 2, d, scale=0.5)
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
    outputs = {"rna": 3, "structure": 6, "temporal": 1, "vit": VIT["classes"], "emberformer": EMBERFORMER["patch"] ** 2 * EMBERFORMER["features"]}
    add_linear("head", d, outputs.get(args.family, CLASSES))
    if args.family == "structure":  # steps large enough for clashes and sharp turns
        parameters["head.weight"] = 4 * parameters["head.weight"]
    return parameters


def sinusoids(length, d):
    """Sine in even and cosine in odd columns, wavelengths from 2 pi to 10000 * 2 pi (Vaswani et al. 2017)."""
    place = torch.arange(length, dtype=torch.float64)[:, None]
    rate = 1e4 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    return torch.stack([(place * rate).sin(), (place * rate).cos()], -1).reshape(length, d)


def sinusoids_of_both_ends(length, own, d):
    """Half of the columns from the start, half from the sample's own end."""
    both = sinusoids(length, d // 2)
    ends = torch.zeros(length, d // 2, dtype=torch.float64)
    ends[:own] = both[:own].flip(0)
    return torch.cat([both, ends], 1)


def encoder(p, args, x, valid):
    """x [B, L, D], valid [B, L] -> [B, L, D]"""
    B, L, D, H = *x.shape, args.heads
    linear = lambda name, x: F.linear(x, p[name + ".weight"], p[name + ".bias"])
    norm = lambda name, x: F.layer_norm(x, (D,), p[name + ".weight"], p[name + ".bias"], NORM_EPS)
    if args.family == "structure":
        x = x + torch.stack([sinusoids_of_both_ends(L, int(own), D) for own in valid.sum(1)])
    elif args.family != "vit":
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


def conv(p, name, x, stride=1, padding=0, groups=1):
    return F.conv2d(x, p[name + ".weight"], p.get(name + ".bias"), stride, padding, groups=groups)


def batch_norm(p, name, x):
    """With the batch's own statistics."""
    return F.batch_norm(x, None, None, p[name + ".weight"], p[name + ".bias"], training=True, eps=NORM_EPS)


def resnet(p, x):
    """Two basic blocks (He et al. 2016), the second with stride 2. x [B, C, H, W] -> [B, classes]"""
    large = RESNET.get("stem", 3) == 7
    x = batch_norm(p, "bn", conv(p, "stem", x, 2, 3) if large else conv(p, "stem", x, 1, 1)).relu()
    if large:
        x = F.max_pool2d(x, 3, 2, 1)
    for block, stride in ("b1.", 1), ("b2.", 2):
        y = batch_norm(p, block + "b1", conv(p, block + "c1", x, stride, 1)).relu()
        y = batch_norm(p, block + "b2", conv(p, block + "c2", y, 1, 1))
        if stride > 1:
            x = batch_norm(p, block + "sc.1", conv(p, block + "sc.0", x, stride))
        x = (x + y).relu()
    return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"])


def flat(x):
    """[B, D, H, W] -> [B, H W, D]"""
    return x.flatten(2).transpose(1, 2)


def vit(p, args, x):
    """Patches behind a class token, which is classified (Dosovitskiy et al. 2021). x [B, C, H, W] -> [B, classes]"""
    x = flat(conv(p, "pe", x, VIT["patch"]))
    x = torch.cat([p["cls"].expand(len(x), 1, -1), x], 1) + p["pos"]
    x = encoder(p, args, x, torch.ones(x.shape[:2], dtype=torch.bool))[:, 0]
    return F.linear(x, p["head.weight"], p["head.bias"])


def convnext(p, x):
    """Depthwise convolutions and perceptrons with a layer scale (Liu et al. 2022). x [B, C, H, W] -> [B, classes]"""
    norm = lambda name, x: F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], NORM_EPS)
    last = lambda x: x.permute(0, 2, 3, 1)
    first = lambda x: x.permute(0, 3, 1, 2)
    linear = lambda name, x: F.linear(x, p[name + ".weight"], p[name + ".bias"])
    x = first(norm("pn", last(conv(p, "pe", x, 4))))
    for stage, blocks in enumerate(CONVNEXT["blocks"]):
        if stage:
            x = conv(p, f"dc.{stage}", first(norm(f"dn.{stage}", last(x))), 2)
        for j in range(blocks):
            b = f"st.{stage}.{j}."
            y = norm(b + "n", last(conv(p, b + "dw", x, 1, 3, x.shape[1])))
            x = x + first(p[b + "gamma"] * linear(b + "f2", F.gelu(linear(b + "f1", y))))
    return linear("head", norm("norm", x.mean((2, 3))))


def mix_block(p, b, x, heads, reduction):
    """Attention to a reduced map, and a perceptron with a depth-wise convolution (Xie et al. 2021). [B, D, H, W] -> same"""
    B, D, H, W = x.shape
    linear = lambda name, x: F.linear(x, p[b + name + ".weight"], p[b + name + ".bias"])
    norm = lambda name, x: F.layer_norm(x, (D,), p[b + name + ".weight"], p[b + name + ".bias"], NORM_EPS)
    picture = lambda x: x.transpose(1, 2).reshape(B, -1, H, W)
    split = lambda x: x.reshape(B, -1, heads, D // heads).transpose(1, 2)
    x = flat(x)
    y = seen = norm("n1", x)
    if reduction > 1:
        seen = norm("att.n", flat(conv(p, b + "att.red", picture(y), reduction)))
    k, v = linear("att.kv", seen).split(D, -1)
    share = torch.einsum("bhqd,bhkd->bhqk", split(linear("att.q", y)), split(k)) / math.sqrt(D // heads)
    y = torch.einsum("bhqk,bhkd->bhqd", share.softmax(-1), split(v))
    x = x + linear("att.out", y.transpose(1, 2).reshape(B, H * W, D))
    y = picture(linear("f1", norm("n2", x)))
    return picture(x + linear("f2", F.gelu(flat(conv(p, b + "dw", y, 1, 1, groups=4 * D)))))


def segformer(p, x, depth, heads, reductions, stem_stride=4):
    """x [B, C, H, W] -> [B, classes, H, W]"""
    resize = lambda x, size: F.interpolate(x, size=size, mode="bilinear", align_corners=False)
    norm = lambda name, x: F.layer_norm(x.permute(0, 2, 3, 1), x.shape[1:2], p[name + ".weight"], p[name + ".bias"],
                                        NORM_EPS).permute(0, 3, 1, 2)
    size, maps = x.shape[2:], []
    for i, (n, reduction) in enumerate(zip(heads, reductions)):
        x = norm(f"pn.{i}", conv(p, f"pe.{i}", x, 2 if i else stem_stride, 1 if i else 3))
        for j in range(depth):
            x = mix_block(p, f"st.{i}.{j}.", x, n, reduction)
        x = norm(f"on.{i}", x)
        y = F.linear(x.permute(0, 2, 3, 1), p[f"dec.{i}.weight"], p[f"dec.{i}.bias"]).permute(0, 3, 1, 2)
        maps.append(resize(y, maps[0].shape[2:]) if maps else y)
    return resize(conv(p, "cls", batch_norm(p, "bn", conv(p, "fuse", torch.cat(maps, 1))).relu()), size)


def emberformer(p, args, x, valid):
    """Each patch's frames through a transformer over time, its last frame back to pixels, a SegFormer over those.
    x [B, N, T, patch patch C], valid [B, T] -> [B, 1, H, W]"""
    e = EMBERFORMER
    (B, N, T, _), side, patch = x.shape, e["px"] // e["patch"], e["patch"]
    y = F.linear(x.reshape(B * N, T, -1), p["inp.weight"], p["inp.bias"])
    y = encoder(p, args, y, valid.repeat_interleave(N, 0))
    last = valid.sum(1).repeat_interleave(N) - 1
    y = F.linear(y[torch.arange(B * N), last], p["head.weight"], p["head.bias"])
    y = y.reshape(B, side, side, patch, patch, e["features"]).permute(0, 5, 1, 3, 2, 4).reshape(B, -1, e["px"], e["px"])
    return segformer(p, y, e["depth"], e["spatial_heads"], e["sr"], e["stem_stride"]) + conv(p, "skip", y)


def mask_loss(logits, target, e):
    """Focal loss with a weight for ones, a mean over each sample's pixels, and Dice loss. logits [B, 1, H, W]"""
    x, t = logits.flatten(1), target.flatten(1).double()
    p = x.sigmoid()
    entropy = -e["positive_weight"] * t * F.logsigmoid(x) - (1 - t) * F.logsigmoid(-x)
    focal = (entropy * (1 - (t * p + (1 - t) * (1 - p))) ** e["focal_gamma"]).mean(1)
    dice = 1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)
    return (focal + e["dice"] * dice).mean()


def forward(p, args, x, valid):
    """x: tokens [B, L], or values [B, L, C] or [B, C], or pictures [B, C, H, W], or patches over time [B, N, T, C]"""
    if args.family == "resnet":
        return resnet(p, x)
    if args.family == "vit":
        return vit(p, args, x)
    if args.family == "convnext":
        return convnext(p, x)
    if args.family == "segformer":
        return segformer(p, x, SEGFORMER["depth"], SEGFORMER["heads"], SEGFORMER["sr"])
    if args.family == "emberformer":
        return emberformer(p, args, x, valid)
    head = lambda x: F.linear(x, p["head.weight"], p["head.bias"])
    if args.family == "lstm":
        return head(lstm(p, args, x))
    if args.family == "dense":
        x = x.flatten(1)
        for i in range(len(WIDTHS) - 1):
            x = F.linear(x if i == 0 else x.relu(), p[f"{2 * i}.weight"], p[f"{2 * i}.bias"])
        return x
    if args.family == "temporal":
        return head(encoder(p, args, F.linear(x, p["inp.weight"], p["inp.bias"]), valid)[:, -1])
    x = encoder(p, args, p["emb.weight"][x], valid)
    if args.family == "structure":
        return rigid_chain(head(x), valid.sum(1))
    if args.family == "text":
        x = (x * valid[..., None]).sum(1) / valid.sum(1)[:, None]
    return head(x)


def loss_of(output, target, valid, family):
    if family == "emberformer" or (family == "segformer" and SEGFORMER["classes"] == 1):
        return mask_loss(output, target, EMBERFORMER if family == "emberformer" else SEGFORMER)
    if family in ("text", "resnet", "vit", "convnext", "segformer") or (family == "dense" and DENSE_LOSS == "cross entropy"):
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


def depth_of(args, name):
    """0 embeddings, 1 .. layers the blocks, layers + 1 the head; the norm after the blocks belongs to the last one."""
    part = name.split(".")
    if part[0] == "blocks":
        return int(part[1]) + 1
    return {"norm": args.layers, "head": args.layers + 1}.get(part[0], 0)


def is_frozen(args, name):
    depth, freeze = depth_of(args, name), args.train.get("freeze", "none")
    if depth > args.layers:
        return False
    if "lora_rank" in args.train:
        return ".lora_" not in name
    last = {"none": -1, "embeddings": 0, "backbone": args.layers}
    return depth <= (last[freeze] if freeze in last else int(freeze))


def groups_of(args, parameters):
    """The groups of torch.optim.AdamW that --train selects: one for each parameter that is trained."""
    train, groups = args.train, []
    for name, values in parameters.items():
        above = args.layers + 1 - depth_of(args, name)
        rate = float(train.get("backbone_learning_rate", ADAMW["lr"])) if above else ADAMW["lr"]
        is_spared = train.get("decay_norm_bias") == "false" and (values.ndim < 2 or name.endswith(".bias"))
        if not is_frozen(args, name):
            groups.append({"names": [name], "params": [values], "lr": rate * float(train.get("layer_decay", 1)) ** above,
                           "weight_decay": 0 if is_spared else ADAMW["weight_decay"]})
    return groups


def adapted_parts(args, name):
    """Parts of the weight `name` that have adapters, and the number of its parts: ([0, 2], 3) for query and value."""
    layer, words = name.split(".")[-2], args.train.get("lora_layers", "query value").split()
    stacked = {"qkv": ["query", "key", "value"]}.get(layer, [layer])
    return [i for i, part in enumerate(stacked) if part in words], len(stacked)


def adapters_of(args, parameters, draw):
    """A and B of the layers that lora_layers names. B starts with zeros in a training; here with numbers, for a gradient."""
    made, rank = {}, int(args.train.get("lora_rank", 0))
    for name, weight in parameters.items() if rank else ():
        if not name.endswith(".weight") or weight.ndim != 2 or depth_of(args, name) in (0, args.layers + 1):
            continue
        used, parts = adapted_parts(args, name)
        shapes = {"A": (len(used) * rank, weight.shape[1]), "B": (len(used) * weight.shape[0] // parts, rank)}
        for letter, shape in shapes.items() if used else ():
            values = torch.randn(shape, generator=draw, dtype=torch.float64) / weight.shape[1] ** 0.5
            made[name[:-len("weight")] + f"lora_{letter}.weight"] = single(values)
    return made


def with_adapters(args, p):
    """The parameters with W + (alpha / rank) B A in place of each adapted W."""
    merged, rank = dict(p), int(args.train.get("lora_rank", 0))
    for name in p:
        if not name.endswith(".lora_A.weight"):
            continue
        layer = name[:-len("lora_A.weight")]
        weight, (used, parts) = p[layer + "weight"], adapted_parts(args, layer + "weight")
        a, b = p[name].chunk(len(used)), p[layer + "lora_B.weight"].chunk(len(used))
        none = torch.zeros(weight.shape[0] // parts, weight.shape[1], dtype=weight.dtype)
        blocks = [b[used.index(i)] @ a[used.index(i)] if i in used else none for i in range(parts)]
        merged[layer + "weight"] = weight + float(args.train.get("lora_alpha", 16)) / rank * torch.cat(blocks)
    return merged


def batch_of(args, draw):
    """input and target"""
    normal = lambda *shape: single(torch.randn(*shape, generator=draw, dtype=torch.float64))
    whole = lambda below, *shape: torch.randint(below, shape, generator=draw)
    B, L = args.batch, args.length
    if args.family == "dense" and DENSE_LOSS != "cross entropy":
        return normal(B, 1, WIDTHS[0]), normal(B, WIDTHS[-1])
    if args.family == "dense":
        return normal(B, WIDTHS[0]), whole(WIDTHS[-1], B)
    if args.family in ("lstm", "temporal"):
        return normal(B, L, INPUTS), normal(B, 1)
    if args.family in IMAGES:
        sizes = globals()[args.family.upper()]
        return normal(B, sizes["inputs"], sizes["px"], sizes["px"]), whole(sizes["classes"], B)
    if args.family == "segformer":
        px = SEGFORMER["px"]
        return normal(B, SEGFORMER["inputs"], px, px), whole(max(2, SEGFORMER["classes"]), B, px, px)
    if args.family == "emberformer":
        px, patch = EMBERFORMER["px"], EMBERFORMER["patch"]
        return normal(B, (px // patch) ** 2, L, patch ** 2 * EMBERFORMER["inputs"]), whole(2, B, px, px)
    tokens = whole(args.vocab, B, L)
    if args.family == "rna":
        return tokens, 10 * normal(B, L, 3)
    if args.family == "structure":
        return tokens, single(rigid_chain(0.5 * normal(B, L, 6), [L] * B)[0])
    return tokens, whole(CLASSES, B) if args.family == "text" else whole(CLASSES, B, L)


STAGES = {"dims": "stage_widths", "heads": "stage_heads", "spatial_heads": "stage_heads", "sr": "stage_reductions",
          "depth": "stage_depths", "decoder": "decoder", "inputs": "inputs"}
MODEL_TYPES = {"rna": "rna_transformer", "structure": "rna_transformer", "text": "text_classifier", "tagging": "text_tagger",
               "lstm": "series_lstm", "temporal": "series_transformer", "dense": "series_dense", "resnet": "image_resnet",
               "vit": "image_vit", "convnext": "image_convnext",
               "segformer": "mask_segformer", "emberformer": "emberformer"}


def profile_of(args):
    """The profile's sections, and the sizes that data would give."""
    family, classifies = args.family, DENSE_LOSS == "cross entropy"
    transformer = {"d_model": args.d_model, "heads": args.heads, "layers": args.layers, "d_ff": args.d_ff}
    model, data, loss, sizes = {"type": MODEL_TYPES[family], "dropout": 0}, {}, {}, {}
    if family in ("rna", "structure"):
        whole = family == "structure"
        weights = args.weights if whole else {name: int(name in ("coordinate", "bond_length")) for name in STRUCTURE_TERMS}
        model.update(transformer, head="frames" if whole else "absolute", positions="both_ends" if whole else "start")
        loss = {name.replace("lddt_loss", "lddt"): weight for name, weight in weights.items()}
        sizes = {"vocabulary": args.vocab} if whole else {"vocabulary": args.vocab, "bond": BOND}
    elif family in ("text", "tagging"):
        model.update(transformer)
        sizes = {"vocabulary": args.vocab, "classes": CLASSES}
    elif family in ("lstm", "temporal"):
        model.update(transformer if family == "temporal" else {"hidden": HIDDEN, "layers": args.layers})
        data = {"lookback": args.length, "horizon": 1}
        sizes = {"inputs": INPUTS, "outputs": 1}
    elif family == "dense":
        data = {"lookback": 1, "horizon": 1}
        sizes = {"inputs": WIDTHS[0], "hidden": WIDTHS[1:-1], "classes" if classifies else "outputs": WIDTHS[-1]}
    elif family == "resnet":
        model.update(width=RESNET["channels"], stem="large" if RESNET.get("stem", 3) == 7 else "small")
        data = {"image_size": RESNET["px"]}
        sizes = {"inputs": RESNET["inputs"], "classes": RESNET["classes"], "blocks": [1, 1]}
    elif family == "vit":
        model.update(transformer, patch=VIT["patch"], norm_eps=NORM_EPS)
        data = {"image_size": VIT["px"]}
        sizes = {"inputs": VIT["inputs"], "classes": VIT["classes"]}
    elif family == "convnext":
        lists = {key: " ".join(map(str, CONVNEXT[key])) for key in ("blocks", "widths")}
        model.update(lists, norm_eps=NORM_EPS)
        data = {"image_size": CONVNEXT["px"]}
        sizes = {"inputs": CONVNEXT["inputs"], "classes": CONVNEXT["classes"]}
    else:
        e = SEGFORMER if family == "segformer" else EMBERFORMER
        data = {"image_size": e["px"]}
        sizes = {STAGES[key]: value for key, value in e.items() if key in STAGES}
        if family == "emberformer":
            model.update(transformer, features=e["features"], stem_stride=e["stem_stride"])
            data.update(history=args.length, patch=e["patch"])
        if "dice" in e:
            loss = {key: e[key] for key in ("positive_weight", "focal_gamma", "dice")}
        else:
            sizes["classes"] = e["classes"]
    train = {"learning_rate": ADAMW["lr"], "beta1": ADAMW["betas"][0], "beta2": ADAMW["betas"][1], "eps": ADAMW["eps"],
             "weight_decay": ADAMW["weight_decay"], "max_grad_norm": "none", **args.train}
    sections = {"model": model, "data": data, "loss": loss, "train": train}
    text = "".join(f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())
                   for name, keys in sections.items() if keys)
    return text, sizes


def fields_of(args, values, target, lengths):
    """The batch as the model's data have it: arrays by the names of their fields. values, target, lengths: numpy"""
    B, L, family = args.batch, args.length, args.family
    own = lengths[:, None]
    place = numpy.arange(L)[None]
    if family in ("rna", "structure"):
        valid = place < own
        fields = {"tokens": values, "lengths": lengths, "coords": target, "mask": valid.astype(numpy.float32),
                  "partner": numpy.full((B, L), -1)}
        if family == "rna":  # means over the batch: a chain weighs as many residues, or bonds, as it has
            scale = numpy.zeros((len(STRUCTURE_TERMS), B))
            scale[STRUCTURE_TERMS.index("coordinate")] = lengths / lengths.sum()
            scale[STRUCTURE_TERMS.index("bond_length")] = (lengths - 1) / max(1, (lengths - 1).sum())
            return {**fields, "scale": scale.astype(numpy.float32)}
        fields["mask"] = (valid & (place % 7 != 3)).astype(numpy.float32)
        for b, length in enumerate(lengths):
            fields["partner"][b, :length] = partners_of(int(length))
        return fields
    if family == "text":
        return {"tokens": values, "lengths": lengths, "label": target}
    if family == "tagging":
        return {"tokens": values, "lengths": lengths, "labels": numpy.where(place < own, target, -1)}
    if family in ("lstm", "temporal", "dense"):
        steps = lambda x: x if x.ndim != 2 else x[:, None]
        return {"x": steps(values), "target": steps(target)}
    if family == "emberformer":
        return {"frames": values, "lengths": numpy.repeat(own, values.shape[1], 1), "mask": target}
    image = numpy.ascontiguousarray(values.transpose(0, 2, 3, 1))
    return {"image": image, "label" if family in IMAGES else "mask": target}


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


def read_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="with --checks a folder")
    parser.add_argument("--checks", action="store_true")
    parser.add_argument("--family", choices=sorted(MODEL_TYPES), default="rna")
    for name, value in dict(vocab=5, d_model=24, heads=3, layers=2, d_ff=40, batch=3, length=29, seed=7).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    parser.add_argument("--train", nargs="*", default=[], metavar="KEY=VALUE",
                        help="fine-tuning of a transformer, as in [train]: freeze, layer_decay, backbone_learning_rate, "
                             "decay_norm_bias, lora_rank, lora_alpha, lora_layers")
    parser.add_argument("--lengths", type=int, nargs="*", default=[29, 11, 20], help="one a sequence; none: all full")
    args = parser.parse_args(words)
    args.train = dict(pair.split("=", 1) for pair in args.train)
    lengths = torch.tensor(args.lengths or [args.length] * args.batch)
    if not args.checks and (len(lengths) != args.batch or lengths.max() > args.length or lengths.min() < 1):
        parser.error("--lengths must be --batch numbers from 1 to --length")
    return args, lengths


def main():
    args, lengths = read_arguments()
    if not args.checks:
        return make(args, lengths)
    globals().update(CHECK_SIZES)
    for model, words in CHECKS.items():
        make(*read_arguments([f"{args.file}/{model}.safetensors", *CHECK_COMMON, "--family", *words.split()]))


def make(args, lengths):
    draw = torch.Generator().manual_seed(args.seed)
    parameters = starting_parameters(args, draw)
    parameters.update(adapters_of(args, parameters, draw))
    valid = torch.arange(args.length)[None] < lengths[:, None]
    values, target = batch_of(args, draw)
    start = {name: parameter.clone() for name, parameter in parameters.items()}
    groups = groups_of(args, parameters)
    trained = {name for group in groups for name in group.pop("names")}
    for name in trained:
        parameters[name].requires_grad_(True)

    optimizer = torch.optim.AdamW(groups, **ADAMW)
    curve, output, gradients = [], None, None
    for step in range(STEPS + 1):
        optimizer.zero_grad()
        result = forward(with_adapters(args, parameters), args, values, valid)
        if args.family == "structure":
            loss, result = structure_loss(result, target, valid, args), result[0]
        else:
            loss = loss_of(result, target, valid, args.family)
        curve.append(loss.item())
        if step == STEPS:
            break
        loss.backward()
        if step == 0:
            output = result.detach().clone()
            gradients = {name: values.grad.clone() for name, values in parameters.items() if name in trained}
        optimizer.step()

    floats = lambda values: values.detach().float().numpy()
    numbers = lambda values: floats(values) if values.is_floating_point() else values.numpy()
    tensors = fields_of(args, numbers(values), numbers(target), lengths.numpy())
    profile, sizes = profile_of(args)
    tensors.update({"param/" + name: floats(values) for name, values in start.items()})
    tensors["output"] = floats(output)
    tensors.update({"grad/" + name: floats(values) for name, values in gradients.items()})
    tensors["loss"] = numpy.array(curve, dtype=numpy.float32)
    tensors.update({"after/" + name: floats(values) for name, values in parameters.items()})
    write_safetensors(args.file, tensors, {"profile": profile, "sizes": json.dumps(sizes), "torch": torch.__version__})


if __name__ == "__main__":
    main()
