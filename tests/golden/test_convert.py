#!/usr/bin/env python3
"""tests/golden/convert.py: reference trajectories of the old format, those of CLEAT_SHARED/golden (../shared/golden) among them.

    test_convert.py CLEAT SOURCE

Files of every family in the repository are rewritten in the old format; converting them reproduces the original files. The shared
files are converted without a message. The converter rejects files that it cannot convert with the reason; `cleat verify` rejects
files of the old format and names the converter.
"""
# ctest: device
import json
import os
import pathlib
import subprocess
import sys
import tempfile

CLEAT, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
SHARED = pathlib.Path(os.environ.get("CLEAT_SHARED", SOURCE.parent / "shared")) / "golden"
sys.path.insert(0, str(SOURCE / "tests/golden"))
import convert  # noqa: E402

ADAMW = "AdamW lr=1e-3 betas=(0.9,0.999) eps=1e-8 weight_decay=0.01"
SEGFORMER = {"dims": [4, 6, 8, 10], "heads": [1, 3, 2, 2], "sr": [5, 2, 1, 1], "depth": 2, "decoder": 10, "px": 40, "inputs": 3,
             "classes": 2, "layout": "NCHW", "B": 2, "loss": "per-pixel cross entropy"}
MASK_LOSS = {"positive_weight": 2.5, "focal_gamma": 1.5, "dice": 0.7}
TEXT = {"vocab": 11, "d_model": 16, "heads": 2, "layers": 1, "d_ff": 24, "B": 3, "L": 29}
# File of the repository: config of the old format (some omit keys that can be read from the parameters),
# names of input and target.
OLD = {
    "tests/golden/rna": ({"vocab": 5, "d_model": 24, "heads": 3, "layers": 2, "d_ff": 40, "B": 3, "L": 29, "loss":
                          "mean over valid coordinates of squared error + mean over valid neighbours of (sqrt(|c[i+1]-c[i]|^2 + 1e-6) "
                          "- 5.9)^2"}, "tokens", "coords"),
    "tests/golden/text": ({**TEXT, "loss": "cross entropy of 3 classes, mean pooling over valid positions"}, "tokens", "label"),
    "tests/golden/tagging": ({"heads": 2, "layers": 1, "loss": "cross entropy of 3 tags, mean over valid positions of the batch"},
                             "tokens", "labels"),
    "tests/golden/lstm": ({"hidden": 9, "layers": 2, "T": 7, "loss": "mse of the last step's output"}, "x", "target"),
    "tests/golden/temporal": ({"T": 5, "patches": 4, "heads": 2, "B": 4, "loss": "mse of the last step's output"}, "x", "target"),
    "tests/golden/dense": ({"widths": [13, 20, 11, 4], "B": 19, "loss": "cross entropy"}, "x", "target"),
    "tests/golden/resnet": ({"px": 13, "loss": "cross entropy; batch norm in training mode"}, "image", "label"),
    "tests/golden/segformer": (SEGFORMER, "image", "mask"),
    "tests/golden/emberformer": (
        {**SEGFORMER, **MASK_LOSS, "spatial_heads": [1, 3, 2, 2], "sr": [3, 2, 1, 1], "depth": 1, "classes": 1, "stem_stride": 2,
         "px": 20, "patch": 4, "features": 3, "inputs": 2, "d_model": 24, "heads": 3, "layers": 2, "d_ff": 40, "T": 5, "B": 3,
         "loss": "mask loss of the next frame"}, "frames", "mask"),
    "src/inspect/verify/checks/rna_transformer": (
        {"heads": 1, "layers": 1, "loss": "structure terms", "weights": {
            "pair_distance": 0.03125, "lddt_loss": 0.25, "frame": 0.125, "handedness": 0.0625, "bond_length": 0.00390625,
            "bond_angle": 0.25, "clash": 0.015625, "base_pair": 0.015625, "coordinate": 0.0009765625}}, "tokens", "coords"),
    "src/inspect/verify/checks/series_dense": ({"widths": [16, 32, 32, 8], "B": 32, "loss": "mse of the outputs"}, "x", "target"),
    "src/inspect/verify/checks/image_resnet": ({"channels": 8, "px": 16, "inputs": 3, "classes": 8, "stem": 7, "B": 4,
                                        "loss": "cross entropy; batch norm in training mode"}, "image", "label"),
    "src/inspect/verify/checks/mask_segformer": (
        {**SEGFORMER, **MASK_LOSS, "dims": [8, 8, 8, 16], "heads": [1, 1, 1, 2], "sr": [2, 1, 1, 1], "depth": 1, "decoder": 8,
         "px": 32, "classes": 1, "loss": "mask loss of the picture"}, "image", "mask"),
}


def bare(path):
    """Arrays and metadata of a file of the repository."""
    with open(path, "rb") as file:
        content = file.read()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    metadata, arrays = header.pop("__metadata__"), {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        arrays[name] = convert.Array(entry["dtype"], entry["shape"], [])
        arrays[name].values.frombytes(content[8 + size + begin:8 + size + end])
    return arrays, metadata


def older(path):
    """A file of the repository in the old format."""
    arrays, metadata = bare(SOURCE / f"{path}.safetensors")
    config, values, target = OLD[path]
    made = {"input": arrays[values], "target": arrays[target]}
    if values == "image":  # [B, H, W, C] -> [B, C, H, W]
        batch, height, width, channels = arrays[values].shape
        size = height * width * channels
        planes = [arrays[values].values[b * size + c:(b + 1) * size:channels] for b in range(batch) for c in range(channels)]
        made["input"] = convert.Array("F32", [batch, channels, height, width], [value for plane in planes for value in plane])
    if "widths" in config and "cross" in config["loss"]:
        made["input"] = convert.Array("F32", [arrays[values].shape[0], arrays[values].shape[2]], arrays[values].values)
    if values == "x" and len(arrays[target].shape) == 3:
        made["target"] = convert.Array("F32", arrays[target].shape[::2], arrays[target].values)
    if "lengths" in arrays:
        own = arrays["lengths"]
        each = own.shape[1] if len(own.shape) == 2 else 1
        made["lengths"] = convert.Array("I64", [own.shape[0]], own.values[::each])
    made.update({name: one for name, one in arrays.items() if "/" in name or name in ("output", "loss")})
    rest = {key: value for key, value in metadata.items() if key not in ("profile", "sizes")}
    return made, {"config": json.dumps(config), "optimizer": ADAMW, **rest}


def run(path, out):
    return subprocess.run([sys.executable, SOURCE / "tests/golden/convert.py", path, out], capture_output=True, text=True)


def check(good, what):
    if not good:
        raise SystemExit(f"FAILED: {what}")


def check_families(folder):
    old, new = folder / "old.safetensors", folder / "new.safetensors"
    for path in OLD:
        convert.write(old, *older(path))
        done = run(old, new)
        check(done.returncode == 0 and not done.stderr, f"{path}: {done.stderr}")
        check(new.read_bytes() == (SOURCE / f"{path}.safetensors").read_bytes(), f"{path} differs after conversion")


def check_refusals(folder):
    old, new = folder / "old.safetensors", folder / "refused.safetensors"

    def refused(change, word):
        arrays, metadata = older("tests/golden/rna")
        change(arrays, metadata)
        convert.write(old, arrays, metadata)
        done = run(old, new)
        check(done.returncode == 1 and word in done.stderr and str(old) in done.stderr, f"'{word}': {done.stderr}")
        check(not new.exists(), f"'{word}': refused, but written")

    def with_config(text):
        return lambda arrays, metadata: metadata.update(config=text)

    refused(with_config("not json"), "JSON")
    refused(with_config("[]"), "loss")
    refused(with_config('{"vocab": 5, "loss": "cross entropy"}'), "cross entropy")
    refused(with_config('{"widths": 5, "loss": "cross entropy"}'), "no family")
    refused(with_config('{"layout": "NHWC", "loss": "cross entropy"}'), "NHWC")
    refused(lambda arrays, metadata: metadata.pop("config"), "config")
    refused(lambda arrays, metadata: metadata.update(optimizer="SGD lr=1"), "SGD")
    refused(lambda arrays, metadata: metadata.update(optimizer=ADAMW + " amsgrad=1"), "amsgrad")
    refused(lambda arrays, metadata: metadata.update(profile=""), "profile")
    for length in -1, 0, 30, 2 ** 63 - 1:
        refused(lambda arrays, metadata: arrays["lengths"].values.__setitem__(2, length), str(length))
    for name in "input", "target", "output", "loss":
        refused(lambda arrays, metadata: arrays.pop(name), f"'{name}'")
    convert.write(old, *older("tests/golden/rna"))
    old.write_bytes(old.read_bytes()[:2000])
    check("cut short" in run(old, new).stderr, "half a file")
    check(run(folder / "nowhere", new).returncode == 1, "no file")


def check_shared(folder):
    """Converts the shared files; verify.golden reproduces them."""
    for path in sorted(SHARED.glob("*.safetensors")):
        done = run(path, folder / path.name)
        check(done.returncode == 0 and not done.stderr, f"{path}: {done.stderr}")
        done = subprocess.run([CLEAT, "verify", path], capture_output=True, text=True)
        check(done.returncode and "tests/golden/convert.py" in done.stderr, f"cleat verify {path}: {done.stdout}{done.stderr}")


with tempfile.TemporaryDirectory() as name:
    check_families(pathlib.Path(name))
    check_refusals(pathlib.Path(name))
    check_shared(pathlib.Path(name))
