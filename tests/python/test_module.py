"""Trains and predicts with the module cleat, for each kind of data: test_module.py PROGRAM README...

What the module predicts must be what PROGRAM (`cleat predict`) writes for the same inputs, given to it as files that
this test writes itself. The Python blocks of the READMEs that import cleat are run as they stand."""
import csv
import json
import logging
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import cleat

PROGRAM, READMES = sys.argv[1], sys.argv[2:]
COMMON = {"train.epochs": 1, "train.warmup_steps": 0, "train.effective_batch_size": 8, "run.self_check": "never",
          "loader.num_workers": 1, "run.device": os.environ.get("CLEAT_TEST_DEVICE", "auto")}  # fmt: skip
random = np.random.default_rng(7)


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def grey(count, size=16):
    return random.integers(0, 256, (count, size, size), np.uint8)


def write_pgm_as_png(path, image):
    """From a different encoder than the module's: with Sub filters, uncompressed."""
    import struct
    import zlib

    rows = b"".join(
        b"\1" + bytes((int(v) - (int(row[i - 1]) if i else 0)) & 255 for i, v in enumerate(row)) for row in image
    )
    parts = [(b"IHDR", struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 8, 0, 0, 0, 0)),
             (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b"")]  # fmt: skip
    chunks = (struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def train(self, profile, data, settings, **options):
        options = {"out": self.folder / "run", "progress": False, **options}
        return cleat.train(profile, data, settings={**COMMON, **settings}, **options)

    def program(self, run, data):
        """The output folder of `cleat predict`."""
        out = self.folder / "by_program"
        command = [PROGRAM, "predict", "--all", run.folder / "resolved.ini", "--checkpoint", run, "--data", data, "--out", out]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out


class EveryKind(Case):
    NO_WARM_UP = {"train.warmup_epochs": 0}

    def test_images(self):
        images, labels = grey(48), random.integers(0, 3, 48)
        seen = []
        run = self.train("image_fashion", {"images": images, "labels": labels}, {"model.width": 8, "data.image_size": 16},
                         on_step=seen.append, validation={"images": images[:8], "labels": labels[:8]})  # fmt: skip
        steps = [record for record in seen if record["kind"] == "train"]
        self.assertEqual([record["step"] for record in steps], [1, 2, 3, 4, 5, 6])
        self.assertEqual(run.history()["loss"].tolist(), [record["loss"] for record in steps])
        self.assertEqual(run.metrics, {k: v for k, v in seen[-1].items() if k != "kind"})
        inputs = grey(9)
        found = cleat.predict(run, inputs)
        classes, probabilities = run.predict(inputs, probabilities=True)
        files = self.folder / "files"
        files.mkdir()
        for i, image in enumerate(inputs):
            write_pgm_as_png(files / f"{i}.png", image)
        rows = read_csv(self.program(run, files) / "predictions.csv")
        self.assertEqual(found.tolist(), [int(row["label"]) for row in rows])
        self.assertEqual(probabilities.tolist(), [[float(row[str(name)]) for name in classes] for row in rows])
        self.assertEqual(cleat.predict(run, list(inputs)).tolist(), found.tolist())
        moved = run.checkpoint.rename(self.folder / "moved")  # a checkpoint is enough
        self.assertEqual(cleat.predict(moved, files).tolist(), found.tolist())
        moved.rename(run.checkpoint)
        evaluated = cleat.evaluate(run, data={"images": inputs, "labels": found})
        self.assertEqual(evaluated["accuracy"], 1.0)
        self.assertNotIn("classes", evaluated)
        tables = cleat.evaluate(run, data={"images": inputs, "labels": found}, classes=True)
        self.assertEqual({name: tables[name] for name in evaluated}, evaluated)
        self.assertEqual([row["support"] for row in tables["classes"]], np.bincount(found, minlength=len(classes)).tolist())
        self.assertEqual(np.diag(tables["confusion"]["counts"]).tolist(), np.bincount(found, minlength=len(classes)).tolist())

    def test_images_of_named_classes_in_colour(self):
        images = random.integers(0, 256, (24, 16, 16, 3), np.uint8)
        labels = np.where(np.arange(24) % 2, "a cat", "dog")
        run = self.train("image_fashion", {"images": images, "labels": labels}, {"model.width": 8, "data.image_size": 16})
        with self.assertNoLogs("cleat", logging.WARNING):  # no labels, so no label names
            classes, probabilities = cleat.predict(run, images[:3], probabilities=True)
        self.assertEqual(classes.tolist(), ["a cat", "dog"])
        self.assertEqual(cleat.predict(run, images[:3]).tolist(), [classes[i] for i in probabilities.argmax(1)])

    def test_masks(self):
        images = grey(10, 32)
        run = self.train("masks", {"images": images, "masks": images > 100}, {"data.image_size": 32, **self.NO_WARM_UP})
        inputs = grey(3, 32)
        files = self.folder / "files"
        files.mkdir()
        for i, image in enumerate(inputs):
            write_pgm_as_png(files / f"{i}.png", image)
        out = self.program(run, files)
        probabilities = cleat.predict(run, inputs, probabilities=True)
        np.testing.assert_array_equal(probabilities, [np.load(out / f"{i}.npy") for i in range(3)])
        masks = cleat.predict(run, inputs)
        self.assertEqual((masks.shape, masks.dtype), ((3, 32, 32), np.dtype(bool)))
        np.testing.assert_array_equal(masks, probabilities >= np.float32(run.settings["model.threshold"]))

    def test_masks_of_classes(self):
        images = grey(10, 32)
        classes = (images // 86).astype(np.uint8)
        classes[:, 0] = 255
        small = {"data.image_size": 32, "data.classes": 3, "loss.positive_weight": "auto", **self.NO_WARM_UP}
        run = self.train("masks", {"images": images, "masks": classes}, small)
        found = cleat.predict(run, grey(3, 32))
        self.assertEqual((found.shape, found.dtype), ((3, 32, 32), np.dtype(np.uint8)))
        self.assertLess(found.max(), 3)
        with self.assertRaisesRegex(cleat.Error, "whole numbers"):
            self.train("masks", {"images": images, "masks": classes / 2}, small)

    def test_texts(self):
        words = np.array("good fine great poor bad awful day night".split())
        texts = [' "quoted", '.join(random.choice(words, 6)) for _ in range(40)]
        labels = ["yes" if "good" in text else "no" for text in texts]
        small = {"model.d_model": 16, "model.heads": 2, "model.layers": 1, "model.d_ff": 16, "data.vocabulary_size": 100}
        run = self.train("tweets_sentiment", {"texts": texts, "labels": labels}, small)
        inputs = ["a good day", 'bad, "bad"\nnight']
        (self.folder / "in.csv").write_text('text\na good day\n"bad, ""bad""\nnight"\n')
        rows = read_csv(self.program(run, self.folder / "in.csv") / "predictions.csv")
        self.assertEqual(cleat.predict(run, inputs).tolist(), [row["label"] for row in rows])
        classes, probabilities = cleat.predict(run, inputs, probabilities=True)
        self.assertEqual(probabilities.tolist(), [[float(row[name]) for name in classes] for row in rows])

    def test_tags(self):
        sentences = [["in", "Rome", "now"], ["to", "New", "York"]] * 12
        tags = [["O", "B-place", "O"], ["O", "B-place", "I-place"]] * 12
        small = {"model.d_model": 16, "model.heads": 2, "model.layers": 1, "model.d_ff": 16, "data.vocabulary_size": 100}
        run = self.train("tweets_ner", {"sentences": sentences, "tags": tags}, small)
        (self.folder / "in.conll").write_text("off\tO\nto\tO\nRome\tO\n\nhere\tO\n\n")
        lines = (self.program(run, self.folder / "in.conll") / "predictions.conll").read_text().split("\n")
        found = cleat.predict(run, [["off", "to", "Rome"], ["here"]])
        self.assertEqual([tag for sentence in found for tag in sentence], [line.split("\t")[1] for line in lines if line])

    def test_masked_tokens(self):
        texts = [" ".join([str(word)] * 6) for word in random.choice("good fine great poor".split(), 60)]
        small = {"model.d_model": 16, "model.heads": 2, "model.layers": 1, "model.d_ff": 16, "data.vocabulary_size": 100}
        run = self.train("text_pretrain", {"texts": texts}, small)
        inputs = ["good [MASK] good [MASK]", "nothing here", "[MASK], fine"]
        (self.folder / "in.txt").write_text("\n".join(inputs) + "\n")
        rows = read_csv(self.program(run, self.folder / "in.txt") / "predictions.csv")
        self.assertEqual([row["id"] for row in rows], ["1", "1", "3"])
        best = [row["token_1"] for row in rows]
        self.assertEqual(cleat.predict(run, inputs), [best[:2], [], best[2:]])
        found = cleat.predict(run, inputs, probabilities=True)
        self.assertEqual([len(tokens) for tokens in found], [2, 0, 1])
        expected = [[(row[f"token_{k}"], float(row[f"probability_{k}"])) for k in range(1, 6)] for row in rows]
        self.assertEqual(found[0] + found[2], expected)
        self.assertEqual(cleat.predict(run, self.folder / "in.txt"), [best[:2], best[2:]])
        with self.assertRaisesRegex(cleat.Error, "mask token"):
            cleat.predict(run, ["nothing here"])

    def test_answers_of_a_language_model(self):
        chats = pathlib.Path(__file__).parents[1] / "data/chats"
        rows = [[{"role": "user", "content": f"say {i}"}, {"role": "assistant", "content": f"{i}, \n{i}"}] for i in range(30)]
        (self.folder / "chats.jsonl").write_text("".join(json.dumps({"messages": row}) + "\n" for row in rows))
        small = {"model.d_model": 16, "model.heads": 2, "model.kv_heads": 1, "model.layers": 1, "model.d_ff": 16, "data.max_length": 64,
                 "data.vocabulary": chats / "tokenizer.json", "data.template": "chatml", "model.max_positions": 64}  # fmt: skip
        run = self.train("text_lm", self.folder / "chats.jsonl", small)
        found = cleat.generate(run, ["say 1", rows[2][:1]], max_tokens=9)
        (self.folder / "in.txt").write_text("say 1\nsay 2\n")
        command = [PROGRAM, "generate", "--checkpoint", run, "--data", "in.txt", "--max-tokens", "9", "--out", "by_program"]
        subprocess.run(command, check=True, capture_output=True)
        lines = (self.folder / "by_program/generated.jsonl").read_text().splitlines()
        self.assertEqual(found, [json.loads(line)["completion"] for line in lines])
        self.assertEqual(run.generate("say 1", max_tokens=9), found[0])
        self.assertEqual(cleat.generate(run.checkpoint, self.folder / "in.txt", max_tokens=9), found)
        drawn = [cleat.generate(run, "say 1", max_tokens=9, temperature=9, seed=seed) for seed in (1, 1, 2)]
        self.assertTrue(drawn[0] == drawn[1] != drawn[2], drawn)
        subprocess.run([PROGRAM, "export", run, "--format", "gguf-f32", "--out", "gguf"], check=True, capture_output=True)
        settings = {"data.template": "chatml", "train.precision": "f32"}
        weights = cleat.generate(self.folder / "gguf/model.gguf", "say 1", max_tokens=9, settings=settings)
        self.assertEqual(weights, run.generate("say 1", max_tokens=9, settings={"train.precision": "f32"}))
        with self.assertRaisesRegex(cleat.Error, "leaves no room for an answer|1 to 64 are possible"):
            run.generate("say " * 60)

    def test_series(self):
        times = np.datetime64("2026-01-01T00:00:00") + np.arange(240) * np.timedelta64(1, "h")
        values = np.sin(np.arange(240)[:, None] / [3, 5]) + 0.01 * random.standard_normal((240, 2))
        small = {"model.hidden": 8, "data.lookback": 12, "data.horizon": 4, "data.season": "none", "data.anchor": "last"}
        run = self.train("series_dense", {"times": times, "values": values, "columns": ["a", "b"]}, small)
        found = cleat.predict(run, {"times": times[:14], "values": values[:14], "columns": ["a", "b"]})
        lines = ["date,a,b"] + [f"{t},{a!r},{b!r}" for t, (a, b) in zip(times[:14].astype(str), values[:14].tolist())]
        (self.folder / "in.csv").write_text("\n".join(lines) + "\n")
        rows = read_csv(self.program(run, self.folder / "in.csv") / "predictions.csv")
        self.assertEqual(found.values.shape, (3, 4, 2))
        self.assertEqual(found.values.reshape(-1).tolist(), [float(row[name]) for row in rows for name in "ab"])
        self.assertEqual(found.columns, ["a", "b"])
        np.testing.assert_array_equal(found.times[-1], times[14:18])
        np.testing.assert_array_equal(found.made_at, times[11:14])

    def test_rna(self):
        sequences = ["".join(random.choice(list("ACGU"), n)) for n in (9, 12, 15, 11)] * 6
        turn = np.arange(20) * 0.6
        helix = np.stack([8 * np.cos(turn), 8 * np.sin(turn), 3 * turn], 1)
        coordinates = [helix[: len(sequence)].copy() for sequence in sequences]
        coordinates[0][3] = np.nan
        small = {"model.d_model": 32, "model.heads": 2, "model.layers": 1, "model.d_ff": 32}
        run = self.train("rna_small", {"sequences": sequences, "coordinates": coordinates}, small)
        (self.folder / "two.fasta").write_text(">b\nGGGAAACCC\n>a\nGCGCUUCGGCGC\n")
        rows = read_csv(self.program(run, self.folder / "two.fasta") / "predictions.csv")
        found = cleat.predict(run, ["GGGAAACCC", "GCGCUUCGGCGC"])
        self.assertEqual([chain.shape for chain in found], [(9, 3), (12, 3)])
        self.assertEqual(np.concatenate(found).tolist(), [[float(row[f"{c}_1"]) for c in "xyz"] for row in rows])

    def test_maps(self):
        frames = random.random((10, 3, 2, 16, 16)).astype(np.float32)
        masks = frames[:, -1, 0] > 0.5
        small = {"model.d_model": 16, "model.heads": 2, "model.layers": 1, "model.d_ff": 16, "model.features": 4}
        small.update(self.NO_WARM_UP)
        run = self.train("emberformer_small", {"frames": frames, "masks": masks}, small)
        np.save(self.folder / "one.npy", frames[3])
        files = self.folder / "files"
        files.mkdir()
        np.save(files / "one.npy", frames[3])
        by_program = np.load(self.program(run, files) / "one.npy")
        np.testing.assert_array_equal(cleat.predict(run, frames[3:4], probabilities=True)[0], by_program)


class Runs(Case):
    DATA = {"images": grey(32), "labels": np.arange(32) % 2}
    SMALL = {"model.width": 8, "data.image_size": 16}

    def test_stopped_by_its_callback_and_resumed(self):
        forever = {**self.SMALL, "train.epochs": 100000, "train.schedule": "constant"}
        run = self.train("image_fashion", self.DATA, forever, on_step=lambda record: record.get("step", 0) < 5)
        steps = int(run.history()["step"][-1])
        self.assertTrue(5 <= steps < 100000, steps)

        class Mine(Exception):
            pass

        def fail(record):
            raise Mine

        with self.assertRaises(Mine):
            self.train("image_fashion", self.DATA, forever, resume=True, on_step=fail)
        self.assertGreater(cleat.Run(run.folder).history()["step"][-1], steps)

    def test_control_c(self):
        script = f"""
import os, signal, sys, numpy as np, cleat
sys.stderr = sys.stdout
rows = np.arange(32)
images = np.broadcast_to(rows[:, None, None], (32, 16, 16)).astype(np.uint8)
send = lambda record: signal.raise_signal(signal.SIGINT) if record["kind"] == "train" and record["step"] == 3 else None
try:
    cleat.train("image_fashion", {{"images": images, "labels": rows % 2}}, out="run", on_step=send,
                settings={{**{COMMON!r}, **{self.SMALL!r}, "train.epochs": 100000}})
except KeyboardInterrupt:
    print("interrupted with", cleat.Run("run").checkpoint.name)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
        self.assertRegex(done.stdout, "interrupted with ckpt-E", done.stderr)
        self.assertIn("loss", done.stdout)  # progress

    def test_failures_have_text_and_status(self):
        def status_of(expected, text, function, *arguments, **options):
            with self.assertRaises(cleat.Error) as caught:
                function(*arguments, **options)
            self.assertEqual(caught.exception.status, expected, caught.exception)
            self.assertRegex(str(caught.exception), text)

        ok, s = self.DATA, cleat.Status
        status_of(s.NOT_FOUND, "image_fashion", cleat.train, "image_fashon", ok)
        status_of(s.PROFILE, "epoch", self.train, "image_fashion", ok, {"train.epoch": 3})
        status_of(s.NO_DEVICE, "no_such", self.train, "image_fashion", ok, self.SMALL, device="no_such")
        status_of(s.ARGUMENT, "uint8", self.train, "image_fashion", {**ok, "images": ok["images"] / 255.0}, self.SMALL)
        status_of(s.ARGUMENT, "32 images, 31 labels", self.train, "image_fashion", {**ok, "labels": ok["labels"][:31]}, {})
        status_of(s.ARGUMENT, r"\(32, 1\)", self.train, "image_fashion", {**ok, "labels": ok["labels"][:, None]}, {})
        status_of(s.ARGUMENT, "images, labels; found x", self.train, "image_fashion", {"x": 1}, {})
        status_of(s.NOT_FOUND, "checkpoint", cleat.predict, self.folder, ok["images"])
        run = self.train("image_fashion", ok, self.SMALL)
        status_of(s.NOT_FOUND, "arrays again", run.evaluate)
        status_of(s.ARGUMENT, "no inputs", run.predict, ok["images"][:0])
        status_of(s.ARGUMENT, "uint8", run.predict, ok["images"] / 255.0)
        status_of(s.NOT_FOUND, "data", cleat.train, "image_fashion", self.folder / "absent", settings=COMMON)

    def test_messages_go_to_logging(self):
        with self.assertLogs("cleat", logging.INFO) as logs:
            self.train("image_fashion", self.DATA, self.SMALL)
        self.assertTrue(any("first step" in line for line in logs.output), logs.output)

    def test_without_numpy(self):
        subprocess.run([PROGRAM, "data", "make", "rna", "--out", "data", "--count", "24"], check=True, capture_output=True)
        script = f"""
import sys
sys.modules["numpy"] = None
import cleat
assert cleat.devices()[0]["name"] and cleat.plan("rna", card="t4")["fits"]
small = {{"model.d_model": 16, "model.heads": 2, "model.layers": 1, "model.d_ff": 16}}
run = cleat.train("rna_small", "data", out="run", settings={{**{COMMON!r}, **small}}, progress=False)
assert run.history()["loss"][0] > 0 and run.checkpoint.is_dir() and run.settings["model.d_model"] == "16"
assert cleat.evaluate(run, "test")["rmsd"] > 0
try:
    cleat.predict(run, ["GGGAAACCC"])
except ImportError as error:
    print(error)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        self.assertIn("pip install numpy", done.stdout, done.stderr)

    def test_plans_and_devices(self):
        self.assertIn("memory_total", cleat.devices()[0])
        self.assertTrue(cleat.plan("image_fashion", card="t4", settings={"model.width": 64})["fits"])
        self.assertEqual(len(cleat.plan("image_fashion", card="all")) > 10, True)
        with self.assertRaises(cleat.Error) as caught:
            cleat.plan("image_fashion", card="t5")
        self.assertRegex(str(caught.exception), "^[^c].* t4")


class Readmes(Case):
    def test_their_lines_run(self):
        (self.folder / "profiles").mkdir()  # a smaller profile of the same name: ./profiles is searched first
        shipped = pathlib.Path(cleat.__file__).parent / "_native/share/cleat/profiles/image_fashion.ini"
        text = shipped.read_text(encoding="utf-8").replace("width = 16", "width = 8")
        for name, value in (("epochs", 1), ("warmup_steps", 0)):
            text, count = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
            self.assertEqual(count, 1)
        (self.folder / "profiles/image_fashion.ini").write_text(text.replace("[run]", "[run]\nself_check = never"))
        x, y = random.integers(0, 256, (64, 28, 28), np.uint8), np.arange(64) % 10
        np.savez("train.npz", x=x, y=y)
        np.save("test.npy", x[:5])
        blocks = []
        for readme in READMES:
            found = re.findall(r"(?m)((?:^(?:    .*)?\n)+)", pathlib.Path(readme).read_text(encoding="utf-8"))
            blocks += [block for block in found if "import cleat" in block]
        self.assertTrue(blocks)
        for i, block in enumerate(blocks):
            code = "\n".join(line[4:] for line in block.split("\n")).replace('"runs/mine"', f'"runs/mine{i}"')
            names = {}
            exec(compile(code, "README", "exec"), names)  # pylint: disable=exec-used
            self.assertEqual(names["labels"].shape, (5,))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert json.loads(subprocess.check_output([PROGRAM, "devices", "--json"])), "no device"
    unittest.main(argv=sys.argv[:1])
