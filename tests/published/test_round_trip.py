#!/usr/bin/env python3
"""Published checkpoints, through cleat and out again: import, a training that changes nothing (its learning rate is 1e-12),
export. Names and values of the tensors equal the file's, the library loads the folder without warnings, and its
probabilities equal those of `cleat predict`, for texts with the tokenizer.

    test_round_trip.py CLEAT SOURCE

Texts: the classifiers of $CLEAT_SHARED/hf (default: ../shared/hf), which have tokenizers, and masked language models of
the same sizes; images: each network that README names, as transformers, timm and torchvision save it. Exits with 77 if
one of them or the shared folder is missing."""
# ctest: device
import csv
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

try:
    import timm
    import torch
    import torchvision
    import transformers
    from PIL import Image
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print(missing)
    sys.exit(77)

CLEAT, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
SHARED = pathlib.Path(os.environ.get("CLEAT_SHARED", SOURCE / ".." / "shared")) / "hf"
STILL = {"train.learning_rate": 1e-12, "train.backbone_learning_rate": "none", "train.epochs": 1, "train.precision": "f32", "train.weight_decay": 0, "train.min_learning_rate": 0,
         "run.self_check": "never"}
WORDS = "the a of flight was late again thanks so much for nothing @user #fail :) 😀 best day ever don't Zürich 2026".split()


def run(*words):
    result = subprocess.run([CLEAT, *map(str, words)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]


def train(profile, folder, settings, out, form):
    run("train", SOURCE / "profiles" / profile, "--init", folder, "--out", out, "--quiet",
        *(word for key, value in (STILL | settings).items() for word in ("--set", f"{key}={value}")))
    run("export", out, "--format", form, "--out", out / "exported")


def compare_tensors(folder, out, changed):
    """Every tensor of the export is in the file and equal, unless training changes it (`changed`)."""
    before, after = load_file(folder / "model.safetensors"), load_file(out / "exported/model.safetensors")
    missing = {name for name in before if name not in after}
    assert not [name for name in after if name not in before], set(after) - set(before)
    assert not [name for name in missing if "position_ids" not in name], missing
    worst = 0.0
    for name, value in after.items():
        assert value.shape == before[name].shape, name
        if not changed(name):
            worst = max(worst, (value.double() - before[name].double()).abs().max().item() if value.numel() else 0)
    assert worst < 1e-9, worst
    return len(after)


def round_trip_text(name, work):
    folder, out = SHARED / name, work / name
    labels = ["LABEL_0", "LABEL_1", "LABEL_2"]
    rows = [{"text": " ".join(random.choices(WORDS, k=1 + i % 9)), "label": labels[i % 3]} for i in range(24)]
    with open(work / "texts.csv", "w", newline="") as file:
        table = csv.DictWriter(file, ["text", "label"])
        table.writeheader()
        table.writerows(rows)
    train("text_classify.ini", folder, {"data.path": work / "texts.csv", "data.max_length": 32, "data.labels": " ".join(labels)},
          out, "hf")
    count = compare_tensors(folder, out, lambda tensor: False)
    run("predict", "--checkpoint", out, "--data", work / "texts.csv", "--out", out / "told", "--quiet")
    told = torch.tensor([[float(row[label]) for label in labels]
                         for row in csv.DictReader(open(out / "told/predictions.csv"))])
    network, loading = transformers.AutoModelForSequenceClassification.from_pretrained(out / "exported",
                                                                                       output_loading_info=True)
    assert not any(loading.values()), loading
    tokenizer = transformers.AutoTokenizer.from_pretrained(out / "exported")
    encoded = tokenizer([row["text"] for row in rows], padding=True, return_tensors="pt")
    with torch.no_grad():
        found = torch.softmax(network.eval()(**encoded).logits, -1)
    worst = (found - told).abs().max().item()
    print(f"{name}: {count} tensors, probabilities differ by {worst:.2g}")
    assert worst < 1e-5


def make_masked(source, folder):
    """A masked language model of random weights, as save_pretrained writes it, with the tokenizer of `source`."""
    config = transformers.AutoConfig.from_pretrained(source)
    network = transformers.AutoModelForMaskedLM.from_config(config).eval()
    with torch.no_grad():
        for name, value in network.named_parameters():
            value.add_(torch.randn_like(value) * (0.05 if value.dim() < 2 else 0.2))
    network.save_pretrained(folder)
    for file in ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "unigram.json"):
        if (source / file).exists():
            shutil.copy(source / file, folder)


def compare_found(out, network, tokenizer, texts, work):
    """The tokens that `cleat predict` predicts at mask tokens, and their probabilities."""
    masked = [" ".join([*text.split()[:1], tokenizer.mask_token, *text.split()[1:], tokenizer.mask_token]) for text in texts]
    (work / "masked.txt").write_text("\n".join(masked) + "\n")
    run("predict", "--checkpoint", out, "--data", work / "masked.txt", "--out", out / "found", "--quiet")
    encoded = tokenizer(masked, padding=True, return_tensors="pt")
    with torch.no_grad():
        wanted = torch.softmax(network(**encoded).logits, -1)[encoded["input_ids"] == tokenizer.mask_token_id]
    rows = list(csv.DictReader(open(out / "found/predictions.csv")))
    assert len(rows) == len(wanted) == 2 * len(texts), (len(rows), len(wanted))
    for row, probabilities in zip(rows, wanted):
        best = probabilities[:len(tokenizer)].topk(5)
        for k in range(5):
            assert abs(float(row[f"probability_{k + 1}"]) - best.values[k].item()) < 1e-5, (row, best)
        if best.values[0] - best.values[1] > 1e-5:
            piece = tokenizer.convert_ids_to_tokens(best.indices[0].item())
            assert row["token_1"] in (piece, piece.replace("▁", " "), tokenizer.decode(best.indices[:1])), (row, piece)


def round_trip_masked(name, work):
    """Names and values; transformers logs nothing, and computes the same as with the original."""
    folder, out = work / f"masked-{name}", work / f"masked-out-{name}"
    make_masked(SHARED / name, folder)
    texts = [" ".join(random.choices(WORDS, k=2 + i % 9)) for i in range(24)]
    (work / "lines.txt").write_text("\n".join(texts) + "\n")
    train("text_adapt.ini", folder, {"data.path": work / "lines.txt", "data.max_length": 62}, out, "hf")
    count = compare_tensors(folder, out, lambda tensor: False)
    network, loading = transformers.AutoModelForMaskedLM.from_pretrained(out / "exported", output_loading_info=True)
    assert not any(loading.values()), loading
    tokenizer = transformers.AutoTokenizer.from_pretrained(out / "exported")
    assert tokenizer.mask_token and len(tokenizer(tokenizer.mask_token)["input_ids"]) == 3, tokenizer.mask_token
    compare_found(out, network.eval(), tokenizer, texts, work)
    encoded = tokenizer(texts, padding=True, return_tensors="pt")
    original = transformers.AutoModelForMaskedLM.from_pretrained(folder)
    with torch.no_grad():
        worst = (network.eval()(**encoded).logits - original.eval()(**encoded).logits).abs().max().item()
    print(f"{name}, masked: {count} tensors, logits differ by {worst:.2g}")
    assert worst < 1e-5


def make_images(folder, side, masks):
    for i in range(20):
        picture = Image.frombytes("RGB", (side, side), random.randbytes(3 * side * side))
        place = folder / ("images" if masks else f"class{i % 4}")
        place.mkdir(parents=True, exist_ok=True)
        picture.save(place / f"{i:02d}.png")
        if masks:
            (folder / "masks").mkdir(exist_ok=True)
            Image.frombytes("L", (side, side), bytes(random.choices(range(4), k=side * side))).save(
                folder / "masks" / f"{i:02d}.png")


def networks_of_images(side):
    """Tiny networks of random weights: name, network, file format, model.type."""
    labels = {"id2label": {i: f"class{i}" for i in range(4)}}
    resnet = lambda kind: transformers.ResNetForImageClassification(transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2], layer_type=kind, **labels))
    yield "resnet-basic", resnet("basic"), "hf", "image_resnet"
    yield "resnet-bottleneck", resnet("bottleneck"), "hf", "image_resnet"
    yield "vit", transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=side, patch_size=8,
        **labels)), "hf", "image_vit"
    yield "convnext", transformers.ConvNextForImageClassification(transformers.ConvNextConfig(
        hidden_sizes=[8, 12, 16, 16], depths=[1, 1, 2, 1], **labels)), "hf", "image_convnext"
    yield "segformer", transformers.SegformerForSemanticSegmentation(transformers.SegformerConfig(
        hidden_sizes=[8, 8, 12, 16], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=12,
        **labels)), "hf", "mask_segformer"
    for name, options in (("resnet18", dict(layers=[1, 1, 2, 1], channels=[8, 8, 16, 16])),
                          ("resnet50", dict(layers=[1, 1, 1, 1], channels=[4, 4, 8, 8])),
                          ("vit_tiny_patch16_224", dict(embed_dim=32, depth=2, num_heads=4, patch_size=8, img_size=side)),
                          ("convnext_atto", dict(dims=(8, 8, 16, 16), depths=(1, 1, 2, 1), conv_mlp=False))):
        network = timm.create_model(name, num_classes=4, **options)
        network.arguments = options
        yield f"timm-{name}", network, "timm", f"image_{name.partition('_')[0].rstrip('0158')}"
    vision = torchvision.models
    yield "torchvision-resnet", vision.ResNet(vision.resnet.BasicBlock, [1, 1, 2, 1], num_classes=4), "", "image_resnet"
    yield "torchvision-vit", vision.VisionTransformer(side, 8, 2, 1, 64, 48, num_classes=4), "", "image_vit"
    block = vision.convnext.CNBlockConfig
    yield "torchvision-convnext", vision.ConvNeXt([block(8, 12, 1), block(12, 16, 2), block(16, 16, 1), block(16, None, 1)],
                                                  num_classes=4), "", "image_convnext"


def save(network, form, folder, side):
    """Saved by the network's library; torchvision: a state dict. Returns the argument of --init."""
    if form == "hf":
        network.save_pretrained(folder)
        segformer = network.config.model_type == "segformer"
        processor = transformers.SegformerImageProcessor if segformer else transformers.ConvNextImageProcessor
        processor(size={"height": side, "width": side} if segformer else {"shortest_edge": side}).save_pretrained(folder)
    elif form == "timm":
        timm.models.save_for_hf(network, folder, model_args=network.arguments, safe_serialization=True)
    else:
        folder.mkdir()
        save_file(network.state_dict(), folder / "model.safetensors")
        return folder / "model.safetensors"
    return folder


def load(folder, form):
    """The library's model of an export, and the mean and standard deviation that it specifies."""
    if form != "hf":
        network = timm.create_model(f"local-dir:{folder}", pretrained=True)
        return network, network.pretrained_cfg["mean"], network.pretrained_cfg["std"]
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    segformer = json.load(open(folder / "config.json"))["model_type"] == "segformer"
    loader = transformers.AutoModelForSemanticSegmentation if segformer else transformers.AutoModelForImageClassification
    network, loading = loader.from_pretrained(folder, output_loading_info=True)
    assert not any(loading.values()), loading
    return network, processor.image_mean, processor.image_std


def probabilities(network, pixels):
    with torch.no_grad():
        found = network.eval()(pixels)
    return torch.softmax(found if torch.is_tensor(found) else found.logits, 1)


def round_trip_image(name, network, form, family, side, work):
    """Names and values; the library loads the export and computes what `cleat predict` computes and, with the same running
    statistics, what the original computes."""
    out, data, masks = work / name, work / f"data-{name}", family == "mask_segformer"
    with torch.no_grad():
        for value in network.parameters():
            value.add_(torch.randn_like(value) * min(0.1, value[0].numel() ** -0.5))
    source = save(network, form, work / f"from-{name}", side)
    make_images(data, side, masks)
    train("masks_finetune.ini" if masks else "image_finetune.ini", source,
          {"data.path": data, "data.val_fraction": 0, **({"data.image_size": side} if masks or form != "hf" else {}),
           **({"data.classes": 4} if masks else {"model.type": family})}, out, form or "timm")
    if form or family == "image_resnet":
        # Batches change running statistics, and PyTorch counts batches.
        compare_tensors(work / f"from-{name}", out, lambda tensor: "running_" in tensor or "num_batches" in tensor)
    loaded, mean, std = load(out / "exported", form)
    files = sorted(data.glob("*/*.png"))[:20]
    pixels = torch.stack([torch.frombuffer(bytearray(Image.open(file).tobytes()), dtype=torch.uint8) for file in files])
    pixels = (pixels.reshape(-1, side, side, 3) / 255 - torch.tensor(mean)) / torch.tensor(std)
    wanted = probabilities(loaded, pixels.permute(0, 3, 1, 2))
    network.load_state_dict({key: value for key, value in loaded.state_dict().items() if "running_" in key}, strict=False)
    worst = (wanted - probabilities(network, pixels.permute(0, 3, 1, 2))).abs().max().item()
    if not masks:
        run("predict", "--checkpoint", out, "--data", data, "--out", out / "told", "--quiet")
        rows = {pathlib.Path(row["id"]).stem: row for row in csv.DictReader(open(out / "told/predictions.csv"))}
        told = torch.tensor([[float(rows[file.stem][f"class{i}"]) for i in range(4)] for file in files])
        worst = max(worst, (wanted - told).abs().max().item())
    print(f"{name}: probabilities spread over {wanted.std(0).max().item():.2g}, differ by {worst:.2g}")
    assert worst < 1e-5


def main():
    random.seed(5)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for network in networks_of_images(64):
            round_trip_image(*network, 64, work)
        names = sorted(path.name for path in SHARED.glob("*_classifier")) if SHARED.is_dir() else []
        for name in names:
            round_trip_text(name, work)
            round_trip_masked(name, work)
    if not names:
        print(f"{SHARED} is missing: no texts")
        sys.exit(77)


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    main()
