#!/usr/bin/env python3
"""Numbers and several labels with image classifiers: cleat trains on photographs of blood cells, and transformers loads the
export and predicts what `cleat predict` predicts, in the unit of the data. The metrics and the loss of `cleat eval` are those
of SciPy and scikit-learn on the written predictions; the exported folder, trained again by cleat without a change, predicts
the same.

    test_image_targets.py CLEAT SOURCE

Exits with 77 if a library or the shared folder is missing."""
# ctest: device slow cost=90
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import transformers
    from PIL import Image
    from scipy import stats
    from sklearn import metrics
except ImportError as missing:
    print(missing)
    sys.exit(77)

CLEAT, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
BATCH = pathlib.Path(os.environ.get("CLEAT_SHARED", SOURCE / ".." / "shared")) / "data/blood_cells/data_batch_1.bin"
COUNT, SIDE = 240, 32
KINDS = ["platelets", "rbc", "wbc"]
NETWORKS = {
    "image_vit": {"model.d_model": 32, "model.heads": 2, "model.layers": 2, "model.d_ff": 64, "model.patch": 8,
                  "model.norm_eps": 1e-12},
    "image_convnext": {"model.blocks": "1,1,1,1", "model.widths": "8,8,16,16", "model.last_norm_eps": 1e-12},
    "image_resnet": {"model.blocks": "1,1", "model.widths": "16,24", "model.stem_width": 16, "model.expansion": 1},
}
STILL = {"train.learning_rate": 1e-12, "train.backbone_learning_rate": "none", "train.epochs": 1, "train.weight_decay": 0,
         "train.min_learning_rate": 0}


def run(*words):
    result = subprocess.run([CLEAT, *map(str, words)], capture_output=True, text=True)
    assert result.returncode == 0, (words, result.stderr[-2000:])
    return result.stdout


def train(profile, out, settings, *words):
    settings = {"data.image_size": SIDE, "train.effective_batch_size": 8, "train.precision": "f32", "run.self_check": "never",
                "loss.label_smoothing": 0, "data.val_fraction": 0.25} | settings
    run("train", profile, *words, "--out", out, "--quiet",
        *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")))


def table(path, rows):
    with open(path, "w", newline="") as file:
        out = csv.DictWriter(file, rows[0])
        out.writeheader()
        out.writerows(rows)


def predicted(out, data, folder):
    run("predict", "--checkpoint", out, "--data", data, "--out", folder, "--quiet")
    return list(csv.DictReader(open(folder / "predictions.csv")))


def evaluated(out, split="all"):
    return json.loads(run("eval", "--checkpoint", out, "--split", split, "--json", "--quiet"))


def targets_of(out):
    return json.load(open(out / (out / "best").read_text().strip() / "targets.json"))["targets"]


def of_transformers(folder, pictures):
    network, loading = transformers.AutoModelForImageClassification.from_pretrained(folder, output_loading_info=True)
    assert not any(loading.values()), loading
    prepared = json.load(open(folder / "preprocessor_config.json"))
    mean, std = (np.array(prepared[key]) for key in ("image_mean", "image_std"))
    pixels = torch.tensor(((pictures / 255 - mean) / std).transpose(0, 3, 1, 2), dtype=torch.float32)
    with torch.no_grad():
        return network.eval()(pixel_values=pixels).logits.double().numpy()


def close(found, wanted, limit, what):
    worst = np.max(np.abs(np.asarray(found, float) - np.asarray(wanted, float)))
    print(f"{what}: differ by {worst:.2g}")
    assert worst < limit, (what, worst)


def numbers(kind, profile, pictures, names, work):
    """The brightness, and the share of red, which is far from 0 and missing in every fifth row."""
    light, red = pictures.mean((1, 2, 3)), 1000 + pictures[..., 0].mean((1, 2)) - pictures[..., 2].mean((1, 2))
    rows = [{"file": name, "light": round(light[i], 4), "red share": "" if i % 5 == 0 else round(red[i], 4)}
            for i, name in enumerate(names)]
    data, out = work / "numbers.csv", work / f"{kind}_numbers"
    table(data, rows)
    settings = {"data.path": data, "data.label_column": 'light "red share"', "run.metric": "r2", "model.problem_type": "regression"}
    train(profile, out, settings | NETWORKS[kind] | {"train.epochs": 12, "train.learning_rate": 4e-3})
    told, found, state = predicted(out, data, work / f"{kind}_told"), evaluated(out), targets_of(out)
    means, errors = {}, []
    for target in state:
        name = target["name"]
        at = [i for i, row in enumerate(rows) if row[name] != ""]
        truth, said = np.array([float(rows[i][name]) for i in at]), np.array([float(told[i][name]) for i in at])
        errors.extend(((truth - said) / target["std"]) ** 2)
        wanted = {"mse": metrics.mean_squared_error(truth, said), "mae": metrics.mean_absolute_error(truth, said),
                  "r2": metrics.r2_score(truth, said), "pearson": stats.pearsonr(truth, said)[0],
                  "spearman": stats.spearmanr(truth, said)[0]}
        for metric, value in wanted.items():
            assert abs(found[f"{name}_{metric}"] - value) < 2e-5 * max(1, abs(value)), (name, metric, found, value)
            means[metric] = means.get(metric, 0) + value / 2
    for metric, value in (means | {"loss": np.mean(errors)}).items():
        assert abs(found[metric] - value) < 2e-5 * max(1, abs(value)), (metric, found[metric], value)
    print(f"{kind}: r2 {found['r2']:.3f} of all pictures, {evaluated(out, 'val')['r2']:.3f} of those held out")
    assert found["r2"] > 0.6, found
    run("export", out, "--format", "hf", "--out", work / f"{kind}_hf")
    config = json.load(open(work / f"{kind}_hf/config.json"))
    assert config["problem_type"] == "regression" and config["id2label"] == {"0": "light", "1": "red share"}, config
    wanted = [[float(row["light"]), float(row["red share"])] for row in told]
    close(of_transformers(work / f"{kind}_hf", pictures), wanted, 2e-3, f"{kind}, numbers, transformers")
    if kind == "image_resnet":  # whose running means change in training
        return
    # The exported head is one in the unit of the data: config.json says so, and the profile need not.
    del settings["model.problem_type"]
    train(SOURCE / "profiles/image_finetune.ini", work / f"{kind}_again", settings | STILL | {"model.type": kind}, "--init",
          work / f"{kind}_hf")
    again = predicted(work / f"{kind}_again", data, work / f"{kind}_told_again")
    close([[float(row["light"]), float(row["red share"])] for row in again], wanted, 2e-3, f"{kind}, numbers, again")


def labels(kind, profile, pictures, kinds, names, work):
    light, red = pictures.mean((1, 2, 3)), pictures[..., 0].mean((1, 2)) - pictures[..., 2].mean((1, 2))
    told_names = ["bright", "platelets", "rbc", "red", "wbc"]
    has = lambda i: {"bright": light[i] > np.median(light), "red": red[i] > np.median(red), KINDS[kinds[i]]: True}
    rows = [{"file": name, "label": "|".join(n for n, there in has(i).items() if there)} for i, name in enumerate(names)]
    data, out = work / "labels.csv", work / f"{kind}_labels"
    table(data, rows)
    settings = {"data.path": data, "run.metric": "macro_f1", "model.problem_type": "multi_label"}
    train(profile, out, settings | NETWORKS[kind] | {"train.epochs": 6, "train.learning_rate": 4e-3})
    told, found, state = predicted(out, data, work / f"{kind}_told_labels"), evaluated(out), targets_of(out)
    assert [t["name"] for t in state] == told_names, state
    truth = np.array([[name in row["label"].split("|") for name in told_names] for row in rows])
    said = np.array([[float(row[name]) for name in told_names] for row in told])
    decided = np.array([[name in row["labels"].split("|") for name in told_names] for row in told])
    assert (decided == (said >= [t["threshold"] for t in state])).mean() > 0.999
    wanted = {"macro_f1": metrics.f1_score(truth, decided, average="macro"), "subset_accuracy": metrics.accuracy_score(truth, decided),
              "micro_f1": metrics.f1_score(truth, decided, average="micro"),
              **{f"f1_{name}": metrics.f1_score(truth[:, k], decided[:, k]) for k, name in enumerate(told_names)},
              "loss": metrics.log_loss(truth.ravel(), said.ravel())}
    for metric, value in wanted.items():
        assert abs(found[metric] - value) < 1e-5, (metric, found[metric], value)
    print(f"{kind}: macro_f1 {found['macro_f1']:.3f} of all pictures, {evaluated(out, 'val')['macro_f1']:.3f} of those held out")
    run("export", out, "--format", "hf", "--out", work / f"{kind}_hf_labels")
    config = json.load(open(work / f"{kind}_hf_labels/config.json"))
    assert config["problem_type"] == "multi_label_classification", config
    logits = of_transformers(work / f"{kind}_hf_labels", pictures)
    close(1 / (1 + np.exp(-logits)), said, 1e-5, f"{kind}, labels, transformers")
    if kind == "image_resnet":
        return
    del settings["model.problem_type"]
    train(SOURCE / "profiles/image_finetune.ini", work / f"{kind}_labels_again", settings | STILL | {"model.type": kind}, "--init",
          work / f"{kind}_hf_labels")
    again = predicted(work / f"{kind}_labels_again", data, work / f"{kind}_told_labels_again")
    close([[float(row[name]) for name in told_names] for row in again], said, 1e-5, f"{kind}, labels, again")


def main():
    if not BATCH.is_file():
        print(f"{BATCH} is missing")
        sys.exit(77)
    records = np.frombuffer(BATCH.read_bytes(), np.uint8).reshape(-1, 1 + 3 * SIDE * SIDE)[:COUNT]
    pictures = records[:, 1:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        names = [f"cell{i}.png" for i in range(len(pictures))]
        for picture, name in zip(pictures, names):
            Image.fromarray(picture).save(work / name)
        for kind in NETWORKS:
            profile = work / f"{kind}.ini"
            profile.write_text(f"[model]\ntype = {kind}\n[data]\npath = .\n")
            numbers(kind, profile, pictures.astype(float), names, work)
            labels(kind, profile, pictures.astype(float), records[:, 0], names, work)


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    main()
