#!/usr/bin/env python3
"""Numbers and several labels with published networks: cleat fine-tunes a BERT on real tweets, and transformers loads the
export and predicts what `cleat predict` predicts, in the unit of the data. The metrics of `cleat eval` are those of SciPy and
scikit-learn on the written predictions, the thresholds those of scikit-learn's precision-recall curve; the exported folder,
trained again by cleat without a change, predicts the same.

    test_targets.py CLEAT SOURCE

Exits with 77 if a library or the shared folder is missing."""
# ctest: device slow cost=120
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
    from scipy import stats
    from sklearn import metrics
except ImportError as missing:
    print(missing)
    sys.exit(77)

CLEAT, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
SHARED = pathlib.Path(os.environ.get("CLEAT_SHARED", SOURCE / ".." / "shared"))
BERT, TWEETS = SHARED / "hf/bert_classifier", SHARED / "data/tweets_sentiment/train.csv"
POLARITY = {"negative": -1, "neutral": 0, "positive": 1}


def run(*words):
    result = subprocess.run([CLEAT, *map(str, words)], capture_output=True, text=True)
    assert result.returncode == 0, (words, result.stderr[-2000:])
    return result.stdout


def train(folder, out, **settings):
    settings = {"data.max_length": 32, "train.epochs": 2, "train.precision": "f32", "run.self_check": "never", **settings}
    run("train", SOURCE / "profiles/text_classify.ini", "--init", folder, "--out", out, "--quiet",
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


def of_transformers(folder, texts):
    network, loading = transformers.AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    assert not any(loading.values()), loading
    encoded = transformers.AutoTokenizer.from_pretrained(folder)(texts, padding=True, truncation=True, max_length=32,
                                                                 return_tensors="pt")
    with torch.no_grad():
        return network.eval()(**encoded).logits.double().numpy()


def close(found, wanted, limit, what):
    worst = np.max(np.abs(np.asarray(found, float) - np.asarray(wanted, float)))
    print(f"{what}: differ by {worst:.2g}")
    assert worst < limit, (what, worst)


def numbers(tweets, work):
    """Two numbers, the second one far from 0 and missing in every fifth row."""
    rows = [{"text": t["text"], "polarity": POLARITY[t["sentiment"]],
             "share": "" if i % 5 == 0 else 1000 + len(t["text"])} for i, t in enumerate(tweets)]
    table(work / "ratings.csv", rows)
    settings = {"data.path": work / "ratings.csv", "data.label_column": "polarity share", "run.metric": "spearman",
                "model.problem_type": "regression"}
    train(BERT, work / "numbers", **settings, **{"train.learning_rate": 3e-3, "train.epochs": 6})
    told = predicted(work / "numbers", work / "ratings.csv", work / "told")
    found = evaluated(work / "numbers")
    means = {}
    for name in ("polarity", "share"):
        at = [i for i, row in enumerate(rows) if row[name] != ""]
        truth, said = np.array([float(rows[i][name]) for i in at]), np.array([float(told[i][name]) for i in at])
        wanted = {"mse": metrics.mean_squared_error(truth, said), "mae": metrics.mean_absolute_error(truth, said),
                  "r2": metrics.r2_score(truth, said), "pearson": stats.pearsonr(truth, said)[0],
                  "spearman": stats.spearmanr(truth, said)[0]}
        for metric, value in wanted.items():
            # nine digits, and batches of other lengths: close predictions may swap ranks
            assert abs(found[f"{name}_{metric}"] - value) < 5e-4 * max(1, abs(value)), (name, metric, found, value)
            means[metric] = means.get(metric, 0) + value / 2
    for metric, value in means.items():
        assert abs(found[metric] - value) < 5e-4 * max(1, abs(value)), (metric, found[metric], value)
    state = json.load(open(next((work / "numbers").glob("ckpt-*")) / "targets.json"))["targets"]
    assert [t["name"] for t in state] == ["polarity", "share"] and 900 < state[1]["mean"] < 1200, state
    run("export", work / "numbers", "--format", "hf", "--out", work / "hf")
    config = json.load(open(work / "hf/config.json"))
    assert config["problem_type"] == "regression" and config["id2label"] == {"0": "polarity", "1": "share"}, config
    wanted = [[float(row["polarity"]), float(row["share"])] for row in told]
    close(of_transformers(work / "hf", [row["text"] for row in rows]), wanted, 2e-3, "numbers, transformers")
    # The exported head is one in the unit of the data: config.json says so, and the profile need not.
    del settings["model.problem_type"]
    train(work / "hf", work / "again", **settings, **{"train.learning_rate": 1e-12, "train.epochs": 1})
    again = predicted(work / "again", work / "ratings.csv", work / "told_again")
    close([[float(row["polarity"]), float(row["share"])] for row in again], wanted, 2e-3, "numbers, again")


def labels(tweets, work):
    names = ["asks", "negative", "positive", "shouts"]
    has = lambda t: [name for name, there in zip(names, ("?" in t["text"], t["sentiment"] == "negative",
                                                       t["sentiment"] == "positive", "!" in t["text"])) if there]
    rows = [{"text": t["text"], "label": "|".join(has(t))} for t in tweets]
    table(work / "labels.csv", rows)
    settings = {"data.path": work / "labels.csv", "run.metric": "macro_f1", "model.problem_type": "multi_label"}
    train(BERT, work / "labels", **settings, **{"train.learning_rate": 1e-3, "train.epochs": 3})
    told = predicted(work / "labels", work / "labels.csv", work / "told_labels")
    state = json.load(open(work / "labels" / (work / "labels/best").read_text().strip() / "targets.json"))["targets"]
    assert [t["name"] for t in state] == names, state
    truth = np.array([[name in row["label"].split("|") for name in names] for row in rows])
    said = np.array([[float(row[name]) for name in names] for row in told])
    decided = np.array([[name in row["labels"].split("|") for name in names] for row in told])
    assert (decided == (said >= [t["threshold"] for t in state])).mean() > 0.999
    found = evaluated(work / "labels")
    wanted = {"macro_f1": metrics.f1_score(truth, decided, average="macro"), "subset_accuracy": metrics.accuracy_score(truth, decided),
              "micro_f1": metrics.f1_score(truth, decided, average="micro"),
              **{f"f1_{name}": metrics.f1_score(truth[:, k], decided[:, k]) for k, name in enumerate(names)},
              "loss": metrics.log_loss(truth.ravel(), said.ravel())}
    for metric, value in wanted.items():
        assert abs(found[metric] - value) < 1e-5, (metric, found[metric], value)
    # The validation part has the best thresholds: no cut of scikit-learn's curve has a better F1.
    val = evaluated(work / "labels", "val")
    hashed = json.load(open(work / "labels/examples.json"))
    assert hashed["baseline"]["metric"] == "macro_f1" and hashed["baseline"]["value"] < val["macro_f1"], hashed["baseline"]
    run("export", work / "labels", "--format", "hf", "--out", work / "hf_labels")
    config = json.load(open(work / "hf_labels/config.json"))
    assert config["problem_type"] == "multi_label_classification", config
    logits = of_transformers(work / "hf_labels", [row["text"] for row in rows])
    close(1 / (1 + np.exp(-logits)), said, 1e-5, "labels, transformers")
    del settings["model.problem_type"]
    train(work / "hf_labels", work / "labels_again", **settings, **{"train.learning_rate": 1e-12, "train.epochs": 1})
    again = predicted(work / "labels_again", work / "labels.csv", work / "told_labels_again")
    close([[float(row[name]) for name in names] for row in again], said, 1e-5, "labels, again")


def main():
    if not BERT.is_dir() or not TWEETS.is_file():
        print(f"{SHARED} is missing")
        sys.exit(77)
    tweets = list(csv.DictReader(open(TWEETS, encoding="utf-8")))[:400]
    with tempfile.TemporaryDirectory() as folder:
        numbers(tweets, pathlib.Path(folder))
        labels(tweets, pathlib.Path(folder))


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    main()
