"""DataFrames of pandas in and out: test_frames.py BUILD SOURCE_DIR. A frame gives the bits of the CSV file that pandas writes
of it; times after the end of a series are those of pandas.date_range. Also curves in notebooks, and callbacks.
Exits with 77 without pandas or scikit-learn (tools/setup.sh --tests installs them)."""
# ctest: device cost=40
import pathlib
import subprocess
import sys
import types
import unittest.mock

from built import IMAGE, SERIES, SOURCE, TEXT, Case, cleat, main

import numpy as np
import pandas as pd

from cleat._images import write_png

random = np.random.default_rng(5)


def reviews(count=60):
    words = np.array("good fine great poor bad awful day night".split())
    texts = [" ".join(random.choice(words, 5)) + ', "so"' * (i % 3) for i in range(count)]
    return pd.DataFrame({"text": texts, "sentiment": ["yes" if "good" in text else "no" for text in texts]})


def train(profile, data, out, settings, **options):
    return cleat.train(profile, data, out=out, settings=settings, progress=False, **options)


class Texts(Case):
    def test_a_frame_gives_the_bits_of_its_file(self):
        frame = pd.read_csv(self.real("tweets_sentiment/train.csv")).dropna().sample(200, random_state=3)
        frame.drop(columns="textID").to_csv("all.csv", index=False)
        by_file = train("tweets_sentiment", "all.csv", "file", {**TEXT, "data.val_fraction": 0.1, "data.id_column": ""})
        by_frame = train("tweets_sentiment", frame, "frame", {**TEXT, "data.val_fraction": 0.1})
        self.assertEqual(by_file.history()["loss"].tolist(), by_frame.history()["loss"].tolist())
        self.assertEqual(by_file.metrics, by_frame.metrics)
        found = by_frame.predict(frame[["text"]].iloc[5:25])
        self.assertTrue(found.index.equals(frame.index[5:25]))
        self.assertEqual(list(found.columns), ["label", "probability", "negative", "neutral", "positive"])
        classes, probabilities = by_frame.predict(frame.text.iloc[5:25], probabilities=True)
        np.testing.assert_array_equal(found[classes].to_numpy(), probabilities)
        self.assertEqual(found.label.tolist(), by_frame.predict(list(frame.text.iloc[5:25])).tolist())
        accuracy = (by_frame.predict(frame).label == frame.sentiment).mean()
        self.assertAlmostEqual(by_frame.evaluate(data=frame)["accuracy"], accuracy, 6)

    def test_labels_of_every_dtype_are_the_same_classes(self):
        frame, losses = reviews(), []
        codes = (frame.sentiment == "yes").astype(int)
        with_gap = pd.concat([codes, pd.Series([np.nan])], ignore_index=True)[:-1]  # floats, by a missing value
        kinds = {"int": codes, "Int64": codes.astype("Int64"), "float": with_gap, "bool": codes.astype(bool),
                 "boolean": codes.astype("boolean"), "category": codes.astype("category"), "text": codes.astype(str),
                 "uint8": codes.astype("uint8")}  # fmt: skip
        self.assertEqual(with_gap.dtype, np.float64)
        for kind, labels in kinds.items():
            run = train("tweets_sentiment", frame.assign(sentiment=labels), kind, TEXT, validation=frame.assign(sentiment=labels))
            found = run.predict(frame)
            self.assertEqual(found.label.dtype, np.int64, kind)
            self.assertEqual(list(found.columns[2:]), ["0", "1"], kind)
            losses.append(run.history()["loss"].tolist())
        self.assertEqual(losses, losses[:1] * len(kinds))

    def test_missing_values_are_refused_or_empty(self):
        frame = reviews()
        for missing in (None, np.nan, pd.NA):
            for dtype in ("object", "string", "category"):
                labels = frame.sentiment.astype(object).where(frame.index != 7, missing).astype(dtype)
                self.refuses("csv:9: the label is empty", train, "tweets_sentiment", frame.assign(sentiment=labels), "x", TEXT)
            texts = frame.text.astype(object).where(frame.index != 7, missing)
            self.refuses("csv:9: the text is empty", train, "tweets_sentiment", frame.assign(text=texts), "x", TEXT)
            arrays = {"texts": texts, "labels": frame.sentiment}
            self.refuses("csv:9: the text is empty", train, "tweets_sentiment", arrays, "x", TEXT)
        number = pd.Series(range(60), dtype="Int64").mask(frame.index == 7)
        self.refuses("csv:9: the label is empty", train, "tweets_sentiment", frame.assign(sentiment=number), "x", TEXT)

    def test_numbers(self):
        frame = reviews()
        frame = frame.assign(stars=frame.text.str.count("good").astype("Int64").mask(frame.index == 3), size=frame.text.str.len())
        small = {**TEXT, "model.problem_type": "regression", "run.metric": "r2", "loss.label_smoothing": 0}
        run = train("tweets_sentiment", frame, "two", {**small, "data.label_column": "stars size"})
        found = run.predict(frame[["text"]])
        self.assertEqual(list(found.columns), ["stars", "size"])
        np.testing.assert_array_equal(run.predict(frame.text), found.to_numpy())
        one = train("tweets_sentiment", {"texts": frame.text, "labels": frame["size"]}, "one", small)
        self.assertEqual(one.predict(frame.text).shape, (60,))
        error = one.predict(frame.text) - frame["size"]
        evaluated = one.evaluate(data={"texts": frame.text, "labels": frame["size"]})
        self.assertAlmostEqual(evaluated["r2"] / (1 - (error**2).sum() / ((frame["size"] - frame["size"].mean()) ** 2).sum()), 1, 4)
        self.refuses("no target", train, "tweets_sentiment", frame, "x", {**small, "data.label_column": "stars"})

    def test_several_labels(self):
        frame = reviews()
        frame["tags"] = [[tag for tag in ("good", "bad", "day") if tag in text] for text in frame.text]
        small = {**TEXT, "model.problem_type": "multi_label", "run.metric": "macro_f1", "loss.label_smoothing": 0}
        run = train("tweets_sentiment", frame, "list", {**small, "data.label_column": "tags"})
        found, lists = run.predict(frame[["text"]]), run.predict(frame.text)
        self.assertEqual(list(found.columns), ["labels", "bad", "day", "good"])
        self.assertEqual([labels.split("|") if labels else [] for labels in found.labels], lists)
        names, probabilities = run.predict(frame.text, probabilities=True)
        np.testing.assert_array_equal(found[names].to_numpy(), probabilities)
        columns = frame.assign(**{tag: frame.text.str.contains(tag) for tag in ("bad", "day", "good")})
        by_columns = train("tweets_sentiment", columns, "columns", {**small, "data.label_column": "bad day good"})
        self.assertEqual(by_columns.history()["loss"].tolist(), run.history()["loss"].tolist())
        arrays = {"texts": frame.text, "labels": frame.tags}
        self.assertEqual(train("tweets_sentiment", arrays, "arrays", small).history()["loss"].tolist(), run.history()["loss"].tolist())

    def test_labels_in_arrays_and_with_separators(self):
        frame, many = reviews(), {**TEXT, "model.problem_type": "multi_label", "run.metric": "macro_f1", "loss.label_smoothing": 0}
        lists = frame.assign(sentiment=[["film", *(["good"] if "good" in text else [])] for text in frame.text])
        arrays = lists.assign(sentiment=lists.sentiment.map(np.array))
        runs = [train("tweets_sentiment", data, name, many) for data, name in ((lists, "lists"), (arrays, "arrays"))]
        self.assertEqual(runs[0].history()["loss"].tolist(), runs[1].history()["loss"].tolist())
        divided = frame.assign(sentiment=[["a, b"]] * len(frame))
        self.refuses("the label 'a, b': rename it", train, "tweets_sentiment", divided, "x", many)
        flags = {"texts": list(frame.text), "labels": np.eye(2, dtype=int)[[0, 1] * 30]}
        self.refuses("labels: rows of numbers", train, "tweets_sentiment", flags, "x", many)

    def test_odd_frames(self):
        frame = reviews()
        double = pd.concat([frame, frame.text], axis=1)
        self.refuses("two columns are called 'text'", train, "tweets_sentiment", double, "x", TEXT)
        self.refuses("no column 'sentiment'", train, "tweets_sentiment", frame[["text"]], "x", TEXT)
        self.refuses("no row", train, "tweets_sentiment", frame[:0], "x", TEXT)
        self.refuses("not a DataFrame", train, "tweets_ner", frame, "x", {})
        self.refuses("give both as the same", train, "tweets_sentiment", frame, "x", TEXT, validation={"texts": [], "labels": []})
        self.refuses("a DataFrame, not list", train, "tweets_sentiment", [1], "x", TEXT)
        odd = frame.assign(text=["a\rb\r\n\"c\" " + text for text in frame.text]).set_index(pd.Index(["i"] * 60))
        run = train("tweets_sentiment", odd, "odd", TEXT)
        self.assertEqual(run.predict(odd).label.tolist(), run.predict(odd.text).tolist())
        arrays = train("tweets_sentiment", {"texts": odd.text, "labels": odd.sentiment}, "arrays", TEXT)
        self.assertEqual(arrays.history()["loss"].tolist(), run.history()["loss"].tolist())
        self.assertTrue(run.predict(odd).index.equals(odd.index))
        self.refuses("no inputs", run.predict, odd[:0])
        numbered = frame.rename(columns={"text": 0, "sentiment": 1})
        train("tweets_sentiment", numbered, "numbered", {**TEXT, "data.text_column": 0, "data.label_column": 1})

    def test_pandas_is_not_imported(self):
        script = f"import sys; sys.argv[1:] = {sys.argv[1:3]!r}; sys.path[:0] = [{str(SOURCE / 'tools/python')!r}]\n"
        script += "import ctypes; ctypes.CDLL(sys.argv[1] + '/libcleat.so.0.2'); import cleat, cleat._frames\n"
        script += "assert not {'pandas', 'sklearn', 'matplotlib', 'IPython'} & set(sys.modules)"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


class Images(Case):
    def test_tables_of_files(self):
        images, names = random.integers(0, 256, (24, 16, 16), np.uint8), [f"{i}.png" for i in range(24)]
        folder = pathlib.Path("photos").resolve()
        folder.mkdir()
        for name, image in zip(names, images):
            write_png(folder / name, image)
        frame = pd.DataFrame({"file": names, "label": pd.Categorical(np.where(np.arange(24) % 2, "x", "y"))})
        frame.to_csv("photos/table.csv", index=False)
        small = {**IMAGE, "data.image_column": "file"}
        by_file = train("image_fashion", "photos/table.csv", "file", {**small, "data.val_fraction": 0.25})
        inputs = frame[["file"]][3:9]
        below = {**small, "data.image_folder": "photos"}
        for name, files, chosen in (("below", "photos/" + frame.file, small), ("absolute", str(folder) + "/" + frame.file, small),
                                    ("named", frame.file, below), ("whole", str(folder) + "/" + frame.file, below)):  # fmt: skip
            run = train("image_fashion", frame.assign(file=files), name, {**chosen, "data.val_fraction": 0.25})
            if chosen is below:  # then the images have the same names
                self.assertEqual(run.history()["loss"].tolist(), by_file.history()["loss"].tolist())
            found = run.predict(inputs.assign(file=files))
            self.assertTrue(found.index.equals(inputs.index))
            self.assertEqual(found.label.tolist(), run.predict(images[3:9]).tolist())
        train("image_fashion", frame[4:], "parts", below, validation=frame[:4])
        self.refuses("second time", train, "image_fashion", pd.concat([frame, frame]), "x", below)

    def test_odd_tables(self):
        frame = pd.DataFrame({"file": ["a.png", None], "label": ["x", "y"]})
        self.refuses("data.image_column = ''", train, "image_fashion", frame, "x", IMAGE)
        self.refuses("a.png|names files", train, "image_fashion", frame, "x", {**IMAGE, "data.image_column": "file"})
        self.refuses("cannot name a class", train, "image_fashion",
                     {"images": np.zeros((2, 16, 16), np.uint8), "labels": np.array([1, np.nan])}, "x", IMAGE)  # fmt: skip

    def test_numbers_are_written_as_a_table(self):
        """The files for a library with model.problem_type of images."""
        from cleat._images import Classes

        known = {"model.problem_type": "regression", "data.label_column": "size", "data.val_fraction": "0.1"}
        folder = pathlib.Path("table")
        folder.mkdir()
        part = {"images": random.integers(0, 256, (3, 16, 16, 3), np.uint8), "labels": [1.5, None, 2]}
        made = Classes.write_training(folder, part, None, known.get)
        table = pd.read_csv("table/train.csv")
        self.assertEqual(table["size"].fillna(-1).tolist(), [1.5, -1, 2])
        self.assertEqual(table.image.tolist(), sorted(path.name for path in folder.glob("*.png")))
        self.assertEqual(made["data.image_column"], "image")
        classes = pd.DataFrame({"image": table.image, "label": ["a", "b", "a"]})
        classes.to_csv("table/train.csv", index=False)
        train("image_fashion", "table", "run", {**IMAGE, "data.image_column": "image"}, resume=False)


class Series(Case):
    def made(self, rows, **times):
        values = np.sin(np.arange(rows)[:, None] / [3, 5]) + 0.01 * random.standard_normal((rows, 2))
        return pd.DataFrame(values, columns=["a", "b"]).set_index(pd.date_range(periods=rows, **times))

    def forecast(self, run, frame):
        """The last forecast, after a check that its times continue those of the frame."""
        found = run.predict(frame)
        found = found[found.made_at == found.made_at.max()]
        self.assertEqual(found.step.tolist(), [1, 2, 3, 4])
        expected = pd.date_range(frame.index[-1], periods=5, freq=frame.index.freq)
        self.assertEqual([frame.index[-1]] * 4, found.made_at.tolist())
        self.assertEqual(expected[1:].tolist(), found.time.tolist())
        return found

    def test_a_frame_gives_the_bits_of_its_file(self):
        frame = pd.read_csv(self.real("timeseries_ett/ETTh1.csv"), parse_dates=["date"], nrows=600)
        frame.to_csv("all.csv", index=False)
        by_file = train("series_dense", "all.csv", "file", {**SERIES, "data.train_rows": None, "data.val_rows": None,
                        "data.test_rows": None, "data.val_fraction": 0.2})  # fmt: skip
        indexed = frame.set_index("date").asfreq("h")
        for name, data in (("column", frame), ("index", indexed), ("last", frame[[*frame.columns[1:], "date"]])):
            run = train("series_dense", data, name, {**SERIES, "data.val_fraction": 0.2})
            self.assertEqual(by_file.history()["loss"].tolist(), run.history()["loss"].tolist())
        found = self.forecast(run, indexed[:40])
        self.assertEqual(list(found.columns[3:]), list(frame.columns[1:]))
        arrays = run.predict({"times": frame.date[:40], "values": frame.iloc[:40, 1:], "columns": list(frame.columns[1:])})
        np.testing.assert_array_equal(found.iloc[:, 3:].to_numpy(), arrays.values[-1])
        self.assertEqual(run.evaluate(data=frame)["mse"], run.evaluate(data=indexed)["mse"])

    def test_times(self):
        zones = [dict(start="2026-03-20", freq="h", tz="Europe/Berlin"), dict(start="2026-01-01", freq="D", tz="Europe/Berlin"),
                 dict(start="2026-01-01 09:30", freq="W-FRI", tz="America/New_York"), dict(start="2026-01-01", freq="15min"),
                 dict(start="2026-01-01", freq="D", tz="Asia/Kathmandu"), dict(start="2000-01-01", freq="MS"),
                 dict(start="2026-01-01", freq="h", tz="UTC"), dict(start="2026-06-01", freq="h", tz="Europe/Berlin")]  # fmt: skip
        for i, times in enumerate(zones):
            frame = self.made(220, **times)
            run = train("series_auto", frame, f"run{i}", SERIES)
            self.forecast(run, frame)  # ends after a change to summer time
            self.forecast(run, frame[:60])
            found = self.forecast(run, frame[3:20])
            self.assertEqual(found.time.dt.tz, frame.index.tz)
            unzoned = frame.set_axis(pd.date_range("2026-01-01", periods=220, freq=times["freq"]))
            self.assertEqual(train("series_auto", unzoned, f"plain{i}", SERIES).history()["loss"].tolist(), run.history()["loss"].tolist())

    def test_other_times(self):
        base = self.made(220, start="2026-01-01", freq="D")
        loss = train("series_auto", base, "base", SERIES).history()["loss"].tolist()
        rows = base.reset_index(drop=True)
        others = {"text": rows.assign(t=base.index.strftime("%Y-%m-%d"))[["t", "a", "b"]],
                  "object": rows.assign(t=base.index.date)[["t", "a", "b"]], "period": base.set_axis(base.index.to_period()),
                  "seconds": base.set_axis(base.index.as_unit("s")) if hasattr(base.index, "as_unit") else base,
                  "nullable": base.convert_dtypes(), "named": rows.assign(when=base.index)}  # fmt: skip
        for name, frame in others.items():
            run = train("series_auto", frame, name, SERIES)
            self.assertEqual(run.history()["loss"].tolist(), loss, name)
            self.assertEqual(run.predict(frame[-20:]).time.iloc[-1], pd.Timestamp("2026-08-12"), name)

    def test_many_series_and_odd_frames(self):
        one = self.made(220, start="2026-01-01", freq="D").rename_axis("day").reset_index()
        run = train("series_auto", pd.concat([one.assign(shop=name) for name in ("x", "y")]), "many", {**SERIES, "data.series_column": "shop"})
        found = run.predict(pd.concat([one.assign(shop=name)[-20:] for name in ("y", "z")]))
        self.assertEqual(set(found.series), {"y", "z"})
        columns = one.rename(columns={"a": "time", "b": "step"})
        self.assertEqual(list(train("series_auto", columns, "names", SERIES).predict(columns[-20:]).columns[-2:]), ["time", "step"])
        self.refuses("fractions of a second", train, "series_auto", self.made(220, start="2026-01-01", freq="500ms"), "x", SERIES)
        self.refuses("is not a finite number|not a finite", train, "series_auto", one.assign(a="u"), "x", SERIES)
        self.refuses("no column 'date'", train, "series_auto", one, "x", {**SERIES, "data.time_column": "date"})
        self.refuses("the time is empty|every row requires a time", train, "series_auto", one.assign(day=one.day.mask(one.index == 4)), "x", SERIES)
        self.refuses("separate validation", train, "series_auto", one, "x", SERIES, validation=one)


class Progress(Case):
    def test_callbacks_are_checked_before_the_run_starts(self):
        seen = []
        train("tweets_sentiment", reviews(40), "one", TEXT, callbacks=seen.append)
        self.assertEqual(seen[-1]["kind"], "eval")
        self.refuses("3 is not a function", train, "tweets_sentiment", reviews(40), "x", TEXT, callbacks=[3])
        self.assertFalse(pathlib.Path("x").exists())

    def test_each_callback_gets_each_record(self):
        seen, calls = ([], [], []), []
        data = reviews(40)
        run = train("tweets_sentiment", data, "a", {**TEXT, "train.effective_batch_size": 4}, on_step=seen[0].append,
                    callbacks=[seen[1].append, seen[2].append])  # fmt: skip
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])
        self.assertEqual([record["loss"] for record in seen[0] if record["kind"] == "train"], run.history()["loss"].tolist())
        stops = train("tweets_sentiment", data, "b", {**TEXT, "train.epochs": 10000, "train.schedule": "constant"},
                      callbacks=[lambda record: False, calls.append])  # fmt: skip
        self.assertLess(len(stops.history()["step"]), 20000)
        self.assertTrue(calls)  # also after the first one has returned False

    def test_published_weights(self):
        """The sizes of the network come from the weights, also when the run is continued or begun again elsewhere."""
        data = {"images": random.integers(0, 256, (24, 32, 32, 3), np.uint8), "labels": np.arange(24) % 3}
        weights = {"model.init": SOURCE / "tests/published/resnet", "train.warmup_ratio": 0, "train.schedule": "constant"}
        small = {**IMAGE, **weights, "data.val_fraction": 0.25}
        del small["model.width"], small["data.image_size"], small["train.warmup_steps"]
        run = train("image_finetune", data, "run", small)
        self.assertNotEqual(run.settings["model.widths"], "auto")
        for out, options in (("run", {"resume": True}), ("next", {"resume_from": "run"})):
            again = train("image_finetune", data, out, {**small, "train.epochs": 2}, **options)
            self.assertEqual(again.history()["step"].tolist(), [1, 2, 3, 4, 5, 6])
        self.refuses("model.init", train, "image_finetune", data, "x", {**small, "model.init": "absent"})

    def test_curves_in_a_notebook(self):
        try:
            import IPython.display
            import matplotlib  # noqa: F401
        except ImportError as missing:
            self.skipTest(missing)
        shown, place = [], types.SimpleNamespace(update=lambda image: shown.append(image.data))
        kernel = types.SimpleNamespace(kernel=object())
        with unittest.mock.patch("IPython.get_ipython", lambda: kernel), \
                unittest.mock.patch("IPython.display.display", lambda *_, **__: place):  # fmt: skip
            cleat.train("tweets_sentiment", reviews(40), out="a", settings={**TEXT, "train.epochs": 3})
        self.assertGreaterEqual(len(shown), 1)
        self.assertTrue(all(png.startswith(b"\x89PNG") and len(png) > 5000 for png in shown))
        with unittest.mock.patch("IPython.display.display", self.fail):
            cleat.train("tweets_sentiment", reviews(40), out="b", settings=TEXT)  # not in a notebook


if __name__ == "__main__":
    main()
