"""For test_onnxruntime.py: a short run of each model family. Inputs are made as a user of an export makes them, from raw data and
the model's metadata; outputs are compared with those of `cleat predict`."""
import csv
import json
import struct
import subprocess
import zlib

import numpy as np
import onnx

random = np.random.default_rng(5)
TRANSFORMER = "model.d_model=16 model.heads=2 model.layers=2 model.d_ff=32".split()
SERIES = "data.lookback=12 data.horizon=3 data.anchor=none data.season=none".split()


def write_csv(path, header, lines):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *lines])


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_png(path, image):
    """image u8 [H, W], without filters."""
    height, width = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    chunks = (struct.pack(">I", len(d)) + kind + d + struct.pack(">I", zlib.crc32(kind + d)) for kind, d in parts)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def padded(samples):
    """Sequences of tokens, padded with -1 to slightly more than the longest, and their lengths."""
    lengths = np.array([len(s) for s in samples], np.int32)
    tokens = np.full((len(samples), lengths.max() + 3), -1, np.int32)
    for row, sample in zip(tokens, samples):
        row[: len(sample)] = sample
    return {"tokens": tokens, "lengths": lengths}


# --- texts

WORDS = "good fine great poor bad awful day night".split()


def pieces(word, vocabulary):
    """WordPiece: repeatedly the longest known prefix."""
    found, start = [], 0
    while start < len(word):
        end = next((e for e in range(len(word), start, -1) if ("##" * (start > 0) + word[start:e]) in vocabulary), 0)
        if not end:
            return [vocabulary["[UNK]"]]
        found.append(vocabulary["##" * (start > 0) + word[start:end]])
        start = end
    return found


def vocabulary_of(facts):
    return {piece: i for i, piece in enumerate(facts["file/vocab.txt"].split("\n")[:-1])}


def framed(sentence, vocabulary):
    """Tokens of a sentence, and where each word begins."""
    tokens, begins = [vocabulary["[CLS]"]], []
    for word in sentence:
        begins.append(len(tokens))
        tokens += pieces(word, vocabulary)
    return tokens + [vocabulary["[SEP]"]], begins


def sentence(words):
    return [str(word) for word in random.choice(WORDS, words)]


class Texts:
    settings = [*TRANSFORMER, "data.vocabulary_size=80"]
    predicted = [sentence(n) for n in (1, 7, 4, 2, 5)] + [["strange", "day"]]

    def train_data(self, folder):
        texts = [sentence(n) for n in random.integers(1, 9, 40)]
        write_csv(folder / "train.csv", ["text", "label"], [(" ".join(t), "yes" if "good" in t else "no") for t in texts])
        return folder

    def predict_data(self, folder):
        write_csv(folder / "in.csv", ["text"], [[" ".join(t)] for t in self.predicted])
        return folder / "in.csv"

    def compare(self, out, facts, run, compare):
        vocabulary, labels = vocabulary_of(facts), json.loads(facts["labels"])
        batch = padded([framed(text, vocabulary)[0] for text in self.predicted])
        expected = np.array([[float(row[name]) for name in labels] for row in read_csv(out / "predictions.csv")])
        compare("text_classifier, probabilities", softmax(run(batch)), expected)


class Tags(Texts):
    def train_data(self, folder):
        lines = "".join(f"{w}\t{'B-x' if w == 'good' else 'O'}\n" + "\n" * (i % 5 == 4) for i, w in enumerate(sentence(200)))
        (folder / "my.train.conll").write_text(lines)
        (folder / "my.dev.conll").write_text(lines[: len(lines) // 4].rsplit("\n\n", 1)[0] + "\n\n")
        return folder

    def predict_data(self, folder):
        (folder / "in.lines").write_text("".join(" ".join(s) + "\n" for s in self.predicted))
        return folder / "in.lines"

    def compare(self, out, facts, run, compare):
        vocabulary, labels = vocabulary_of(facts), json.loads(facts["labels"])
        found = [framed(words, vocabulary) for words in self.predicted]
        best = run(padded([tokens for tokens, _ in found])).argmax(-1)
        tags = [labels[best[i, at]] for i, (_, begins) in enumerate(found) for at in begins]
        lines = (out / "predictions.conll").read_text().split("\n")
        expected = [line.split("\t")[1] for line in lines if line]
        compare("text_tagger, equal tags", np.array([a == b for a, b in zip(tags, expected, strict=True)]), np.ones(len(expected)))


class Masked(Texts):
    """Texts with a mask token each, for which the five most probable tokens are predicted."""
    settings = [*TRANSFORMER, "data.vocabulary_size=80", "model.network=bert", "model.max_positions=32", "data.max_length=32"]

    def train_data(self, folder):
        (folder / "lines.txt").write_text("".join(" ".join(sentence(n)) + "\n" for n in random.integers(1, 9, 40)))
        return folder / "lines.txt"

    def predict_data(self, folder):
        lines = [" ".join([*words[:1], "[MASK]", *words[1:]]) for words in self.predicted]
        (folder / "in.txt").write_text("\n".join(lines) + "\n")
        return folder / "in.txt"

    def compare(self, out, facts, run, compare):
        vocabulary = vocabulary_of(facts)
        mask = vocabulary["[MASK]"]
        found = [framed(words, vocabulary) for words in self.predicted]
        at = [begins[1] if len(begins) > 1 else len(tokens) - 1 for tokens, begins in found]
        logits = run(padded([[*tokens[:i], mask, *tokens[i:]] for i, (tokens, _) in zip(at, found)]))
        best = softmax(np.array([row[i] for i, row in zip(at, logits)]))
        rows = read_csv(out / "predictions.csv")
        chosen = [[vocabulary[row[f"token_{k}"]] for k in range(1, 6)] for row in rows]
        expected = np.array([[float(row[f"probability_{k}"]) for k in range(1, 6)] for row in rows])
        near = 1e-6 / expected.max()  # of six decimals
        compare("text_pretrain, probabilities", np.take_along_axis(best, np.array(chosen), 1), expected, near)
        compare("text_pretrain, the best five", -np.sort(-best)[:, :5], expected, near)


# --- series


class Series:
    """Standardised with the means and standard deviations of series.csv; forecasts are converted back."""

    def __init__(self, *settings):
        self.settings = [*SERIES, *settings]
        steps = np.arange(200)
        self.values = 10 + 3 * np.sin(steps[:, None] / [3, 5]) + 0.1 * random.standard_normal((200, 2))

    def lines(self, count):
        times = (np.datetime64("2026-01-01T00:00:00") + np.arange(count) * np.timedelta64(1, "h")).astype(str)
        return [(t, *(f"{v:.6f}" for v in row)) for t, row in zip(times, self.values)]

    def train_data(self, folder):
        write_csv(folder / "train.csv", ["date", "a", "b"], self.lines(200))
        return folder / "train.csv"

    def predict_data(self, folder):
        write_csv(folder / "in.csv", ["date", "a", "b"], self.lines(20))
        return folder / "in.csv"

    def compare(self, out, facts, run, compare):
        known = list(csv.DictReader(facts["file/series.csv"].splitlines()))
        mean, std = (np.array([float(r[key]) for r in known if r["kind"] == "feature"]) for key in ("mean", "deviation"))
        x = (np.array([[float(v) for v in line[1:]] for line in self.lines(20)]) - mean) / std
        windows = np.stack([x[i : i + 12] for i in range(9)]).astype(np.float32)
        found = run({"x": windows}).reshape(9, 3, 2) * std + mean
        expected = np.array([[float(r["a"]), float(r["b"])] for r in read_csv(out / "predictions.csv")])
        compare(f"{facts['cleat.model']}, forecasts", found, expected.reshape(9, 3, 2))


# --- images


def images(count, size):
    return random.integers(0, 256, (count, size, size), np.uint8)


def normalised(pixels, facts):
    mean, std = (np.array(json.loads(facts[key])) for key in ("mean", "std"))
    return ((pixels[..., None] / 255 - mean) / std).astype(np.float32)


class Images:
    settings = ["model.width=8", "model.stem=large", "data.image_size=32"]
    predicted = images(5, 32)

    def train_data(self, folder):
        for name in ("across", "down"):
            for split in ("train", "val"):
                (folder / split / name).mkdir(parents=True)
                for i, image in enumerate(images(12, 32)):
                    write_png(folder / split / name / f"{i}.png", image // (1 + (name == "down")))
        return folder

    def predict_data(self, folder):
        (folder / "in").mkdir()
        for i, image in enumerate(self.predicted):
            write_png(folder / "in" / f"{i}.png", image)
        return folder / "in"

    def compare(self, out, facts, run, compare):
        found = softmax(run({"image": normalised(self.predicted, facts)}))
        rows = {row["id"].removesuffix(".png"): row for row in read_csv(out / "predictions.csv")}
        expected = [[float(rows[str(i)][name]) for name in json.loads(facts["labels"])] for i in range(5)]
        compare(f"{out.name.removeprefix('out-')}, probabilities", found, np.array(expected))


class VisionTransformers(Images):
    settings = ["model.d_model=16", "model.heads=2", "model.layers=2", "model.d_ff=32", "model.patch=8", "data.image_size=32"]


class ConvNeXts(Images):
    settings = ["model.blocks=1 1", "model.widths=8 16", "data.image_size=32"]


class Masks(Images):
    settings = ["data.image_size=32", "model.stem_stride=2"]

    def train_data(self, folder):
        for part in ("images", "masks"):
            (folder / part).mkdir()
        for i, image in enumerate(images(10, 32)):
            write_png(folder / "images" / f"{i}.png", image)
            write_png(folder / "masks" / f"{i}.png", np.where(image > 100, 255, 0).astype(np.uint8))
        return folder

    def compare(self, out, facts, run, compare):
        found = sigmoid(run({"image": normalised(self.predicted, facts)}))[..., 0]
        compare("mask_segformer, probabilities", found, np.stack([np.load(out / f"{i}.npy") for i in range(5)]))


class SceneMasks(Masks):
    """Masks of three classes."""

    settings = ["data.image_size=32", "model.stem_stride=2", "data.classes=3"]
    type = "mask_segformer"

    def train_data(self, folder):
        super().train_data(folder)
        for i, image in enumerate(images(10, 32)):
            write_png(folder / "masks" / f"{i}.png", image % 3)
        return folder

    def compare(self, out, facts, run, compare):
        found = softmax(run({"image": normalised(self.predicted, facts)})).max(-1)
        compare("mask_segformer with classes, probabilities", found, np.stack([np.load(out / f"{i}.npy") for i in range(5)]))


class Maps:
    settings = [*TRANSFORMER, "model.features=4", "model.stem_stride=1", "data.patch=4", "data.history=3"]
    predicted = random.random((3, 3, 2, 16, 20)).astype(np.float32)

    def train_data(self, folder):
        for i, frames in enumerate(random.random((8, 3, 2, 16, 20)).astype(np.float32)):
            np.save(folder / f"{i}.npy", frames)
            np.save(folder / f"{i}_mask.npy", (frames[-1, 0] > 0.5).astype(np.uint8))
        (folder / "val.txt").write_text("6\n7\n")
        return folder

    def predict_data(self, folder):
        (folder / "in").mkdir()
        for i, frames in enumerate(self.predicted):
            np.save(folder / "in" / f"{i}.npy", frames)
        return folder / "in"

    def compare(self, out, facts, run, compare):
        mean, std = (np.array(json.loads(facts[key]))[:, None, None] for key in ("mean", "std"))
        frames = (self.predicted - mean) / std  # [B, T, C, H, W]
        cut = frames.reshape(3, 3, 2, 4, 4, 5, 4).transpose(0, 3, 5, 1, 4, 6, 2)  # [B, rows, columns, T, p, p, C]
        batch = {"frames": cut.reshape(3, 20, 3, 32).astype(np.float32), "lengths": np.full((3, 20), 3, np.int32)}
        found = sigmoid(run(batch)).reshape(3, 16, 20)
        compare("emberformer, probabilities", found, np.stack([np.load(out / f"{i}.npy") for i in range(3)]))


# --- RNA


class Rna:
    settings = [*TRANSFORMER, "model.positions=both_ends"]
    predicted = ["GGGAAACCC", "GCGCUUCGGCGC", "A", "GGGGGCAUUUCGAUGCCCCC"]

    def train_data(self, folder):
        subprocess.run([self.program, "data", "make", "rna", "--out", folder / "data", "--count", "24"], check=True, capture_output=True)
        return folder / "data"

    def predict_data(self, folder):
        (folder / "in.fasta").write_text("".join(f">{i}\n{s}\n" for i, s in enumerate(self.predicted)))
        return folder / "in.fasta"

    def compare(self, out, facts, run, compare):
        batch = padded([["ACGUN".index(letter) for letter in s] for s in self.predicted])
        found = run(batch)
        rows = read_csv(out / "predictions.csv")
        expected = np.array([[float(row[f"{c}_1"]) for c in "xyz"] for row in rows])
        whole = np.concatenate([found[i, :n] for i, n in enumerate(batch["lengths"])])
        # the file has three decimals
        compare("rna_transformer, coordinates", whole.round(3), expected, 1.5e-3 / np.abs(expected).max())


FAMILIES = {
    "text_classifier": Texts(),
    "text_tagger": Tags(),
    "text_pretrain": Masked(),
    "series_lstm": Series("model.hidden=8", "model.layers=2"),
    "series_transformer": Series(*TRANSFORMER),
    "series_dense": Series("model.hidden=16", "model.layers=2"),
    "image_resnet": Images(),
    "image_vit": VisionTransformers(),
    "image_convnext": ConvNeXts(),
    "mask_segformer": Masks(),
    "mask_classes": SceneMasks(),
    "emberformer": Maps(),
    "rna_transformer": Rna(),
}
NAMES = list(FAMILIES)


def train(program, device, name, folder):
    """The run folder."""
    family = FAMILIES[name]
    family.program = program
    data = folder / f"data-{name}"
    data.mkdir()
    profile, run = folder / f"{name}.ini", folder / f"run-{name}"
    profile.write_text(f"[model]\ntype = {getattr(family, 'type', name)}\n[data]\npath = {family.train_data(data)}\n")
    common = ["train.epochs=2", "train.effective_batch_size=8", "train.warmup_steps=0", "run.self_check=never", "model.dropout=0",
              "train.precision=f32", f"run.device={device}", "loader.num_workers=1", "train.learning_rate=1e-2"]  # fmt: skip
    subprocess.run([program, "train", profile, "--out", run, "--quiet", *common, *family.settings], check=True)
    return run


def compare(program, device, name, folder, run, model, predict, compare_arrays):
    family, out = FAMILIES[name], folder / f"out-{name}"
    data = folder / f"predict-{name}"
    data.mkdir()
    subprocess.run([program, "predict", "--checkpoint", run, "--data", family.predict_data(data), "--out", out,
                    "--device", device, "--quiet", "--all"], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    facts = {entry.key: entry.value for entry in onnx.load(model, load_external_data=False).metadata_props}
    family.compare(out, facts, predict, compare_arrays)
