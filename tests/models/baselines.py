"""Prints the expected values of test_baselines.c, computed independently of cleat: scikit-learn's naive Bayes and nearest
centroids, scikit-image's Otsu threshold, numpy's distances.

    pip install numpy pillow scikit-learn scikit-image tokenizers
    python3 tests/models/baselines.py SHARED/data VOCAB.txt     # of a run of tweets_sentiment.ini
"""
import csv
import gzip
import pathlib
import sys

import numpy as np
from PIL import Image
from skimage.color import rgb2gray
from skimage.filters import threshold_otsu
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import NearestCentroid
from tokenizers import BertWordPieceTokenizer

data = pathlib.Path(sys.argv[1])


def texts():
    def read(name):
        rows = list(csv.DictReader((data / "tweets_sentiment" / name).open(encoding="utf-8", newline="")))
        return [r["text"] for r in rows], np.array([r["sentiment"] for r in rows])

    tokenizer = BertWordPieceTokenizer(sys.argv[2], lowercase=True)

    def counts(rows):
        table = np.zeros((len(rows), tokenizer.get_vocab_size()), np.uint8)
        for i, text in enumerate(rows):
            np.add.at(table[i], tokenizer.encode(text, add_special_tokens=False).ids[:126], 1)
        return table

    (train, classes), (val, truth) = read("train.csv"), read("val.csv")
    return np.mean(MultinomialNB(alpha=1).fit(counts(train), classes).predict(counts(val)) == truth)


def idx(name):
    whole = gzip.open(data / "fashion_mnist" / f"{name}.gz").read()
    shape = np.frombuffer(whole, ">i4", whole[3], 4)
    return np.frombuffer(whole, np.uint8, offset=4 + 4 * whole[3]).reshape(shape)


def clothes():
    x, y, u, v = (idx(n) for n in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"))
    return np.mean(NearestCentroid().fit(x.reshape(len(x), -1) / 255, y).predict(u.reshape(len(u), -1) / 255) == v)


def cells():
    def read(part):
        files = sorted((data / "blood_cells" / "jpeg224" / part).glob("*/*.jpg"))
        small = [np.asarray(Image.open(f).convert("RGB"), float).reshape(32, 7, 32, 7, 3).mean((1, 3)).ravel() for f in files]
        return np.array(small), np.array([f.parent.name for f in files])

    (x, y), (u, v) = read("train"), read("val")
    x, u = (a.reshape(len(a), -1, 3) / 255 for a in (x, u))
    std = np.std([np.asarray(Image.open(f).convert("RGB"), float) / 255 for f in sorted((data / "blood_cells/jpeg224/train").glob("*/*.jpg"))], (0, 1, 2))
    return np.mean(NearestCentroid().fit((x / std).reshape(len(x), -1), y).predict((u / std).reshape(len(u), -1)) == v)


def masks():
    folder = data / "nuclei_seg"
    val = set((folder / "val.txt").read_text().split())
    sums = {part: np.zeros((2, 2)) for part in ("train", "val")}  # intersection and union of bright, dark
    for path in sorted((folder / "images").iterdir()):
        image = Image.open(path).convert("RGB").resize((256, 256), Image.BILINEAR)
        mask = np.asarray(Image.open(folder / "masks" / f"{path.stem}.png").convert("L").resize((256, 256), Image.NEAREST)) >= 128
        grey = np.rint(rgb2gray(np.asarray(image)) * 255).astype(np.uint8)
        for dark, found in enumerate((grey > threshold_otsu(grey), grey <= threshold_otsu(grey))):
            sums["val" if path.stem in val else "train"][dark] += (found & mask).sum(), (found | mask).sum()
    return {part: s[:, 0] / s[:, 1] for part, s in sums.items()}


def chains(most):
    rows = {r["target_id"]: r["split"] for r in csv.DictReader((data / "rna_3d" / "sequences.csv").open())}
    points = {name: [] for name in rows}
    for r in csv.DictReader((data / "rna_3d" / "labels.csv").open()):
        points[r["ID"].rsplit("_", 1)[0]].append([float(r[k] or "nan") for k in ("x_1", "y_1", "z_1")])
    sums, pairs, found = np.zeros(most), np.zeros(most), []
    for part in ("train", "val"):
        for name in (n for n in rows if rows[n] == part):
            p = np.array(points[name][:most], np.float32).astype(float)
            i, j = np.triu_indices(len(p), 1)
            d = np.linalg.norm(p[i] - p[j], axis=1)
            known = np.isfinite(d)
            if part == "train":
                np.add.at(sums, (j - i)[known], d[known])
                np.add.at(pairs, (j - i)[known], 1)
            elif known.any():
                found.append(np.abs((sums / np.maximum(pairs, 1))[j - i] - d)[known].mean())
    return np.mean(found)


print("naive Bayes on tweets_sentiment", texts())
print("nearest centroid on fashion_mnist", clothes())
print("nearest centroid on blood_cells, 32 x 32", cells())
print("Otsu on nuclei_seg, 256 x 256: bright, dark", masks())
print("mean distance of each separation on rna_3d, 128 residues", chains(128), "1200 residues", chains(1200))
