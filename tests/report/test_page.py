#!/usr/bin/env python3
"""Checks the files of `cleat report` for all fixture runs: form, size, escapes, verdicts, CSV. Needs no browser.
  tests/report/test_page.py CLEAT zoom|drawings      whether the program was built with dygraphs or without"""
# ctest: quick
import csv
import fcntl
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_runs  # noqa: E402

VOID = {"meta", "link", "br", "img", "input", "hr", "path", "circle"}
MAX_BYTES = 500_000
faults = []


def check(good, text):
    if not good:
        faults.append(text)


class Page(html.parser.HTMLParser):
    """Checks nesting and links while reading; keeps text, scripts, ids and plots."""

    def __init__(self, name, source):
        super().__init__(convert_charrefs=True)
        self.name, self.open, self.tags, self.ids, self.plots, self.drawn, self.chips = name, [], [], [], [], [], []
        self.words, self.scripts, self.json, self.commands = [], [], "", []
        self.feed(source)
        self.close()
        check(not self.open, f"{name}: not closed: {self.open}")

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append(tag)
        for key, value in attrs:
            value = value or ""
            check(not key.startswith("on"), f"{self.name}: <{tag} {key}>")
            check(key not in ("href", "src", "action", "data", "srcset", "poster", "background") or value.startswith("data:"),
                  f"{self.name}: <{tag} {key}={value[:60]}> may load from elsewhere")
            check(key != "style" or re.fullmatch(r"(left|width|--share):[0-9.%]+(;width:[0-9.%]+)?", value), f"{self.name}: style={value[:60]}")
        if "id" in values:
            check(values["id"] not in self.ids, f"{self.name}: id {values['id']} twice")
            self.ids.append(values["id"])
        if "data-plot" in values:
            self.plots.append(values["data-plot"])
        if "data-drawn" in values:
            self.drawn.append(values["data-drawn"])
        if tag == "script":
            self.scripts.append(values.get("type"))
        if tag not in VOID:
            self.open.append((tag, values.get("class") or "", values.get("type")))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        check(self.open and self.open[-1][0] == tag, f"{self.name}: </{tag}> closes {self.open[-1:]}")
        if self.open:
            self.open.pop()

    def handle_data(self, text):
        tag, classes, kind = self.open[-1] if self.open else ("", "", None)
        if tag == "script" and kind == "application/json":
            self.json += text
        elif tag not in ("script", "style"):
            self.words.append(text)
            if "chip" in classes.split():
                self.chips.append(text)
            if tag == "code" and any(c == "command" for _, c, _ in self.open):
                self.commands.append(text)


def report(cleat, folder, names, *options):
    paths = [str(folder / name) for name in names]
    done = subprocess.run([cleat, "report", *paths, *options], capture_output=True, text=True)
    check(done.returncode == 0, f"{names}: exit code {done.returncode}: {done.stderr}")
    return done.stdout.strip()


def read_page(path, name):
    source = pathlib.Path(path).read_text(encoding="utf-8")
    check(len(source.encode()) < MAX_BYTES, f"{name}: {len(source.encode())} bytes")
    styles = "".join(re.findall(r"<style>(.*?)</style>", source, re.S))
    check("url(" not in styles and "@import" not in styles, f"{name}: the style loads something")
    check("sourceMappingURL" not in source, f"{name}: names a source map")
    check("default-src 'none'" in source, f"{name}: no content security policy")
    check(not re.search(r'(?:d|cx|cy|x|y|points|style)="[^"]*(?:nan|inf)\b', source), f"{name}: a coordinate is not a number")
    page = Page(name, source)
    page.text = re.sub(r"\s+", " ", "".join(page.words))
    page.data = json.loads(page.json)
    check([plot["id"] for plot in page.data] == page.plots, f"{name}: figures {page.plots}, data {[p['id'] for p in page.data]}")
    check(source.count('class="drawing"><svg') == len(page.plots), f"{name}: a plot without a drawing")
    zoom = sys.argv[2] == "zoom"
    check(page.scripts == ["application/json", None, None][:3 if zoom else 2], f"{name}: scripts {page.scripts}")
    check(("dygraphs" in page.text) == zoom and (".dygraph-legend" in styles) == zoom, f"{name}: dygraphs is {'missing' if zoom else 'named'}")
    return page


def check_verdicts(pages):
    """The contents of the first screen."""
    expected = {"healthy": (["Finished", "Good utilisation"], "train.epochs="),
                "loader": (["Finished", "Loader-bound"], "cleat find-workers profiles/resnet.ini --write"),
                "launch": (["Finished", "Launch-bound"], "train.effective_batch_size=256"),
                "killed": (["Killed", "Good utilisation"], "--resume"), "interrupted": (["Interrupted", "Good utilisation"], "--resume"),
                "diverged": (["Diverged", "Good utilisation"], "train.learning_rate=0.001"), "overfit": (["Finished", "Good utilisation"], "early_stopping"),
                "empty": (["Failed", "Speed not recorded"], "cleat doctor"), "old": (["Finished", "Speed not recorded"], "train.epochs=16"),
                "resumed": (["Finished", "Good utilisation"], "train.epochs="), "one_eval": (["Finished", "Speed not recorded"], None),
                "dry": (["Finished", "Loader-bound"], "cleat find-workers profiles/resnet.ini --set data.path=/data/sneakers --write"),
                "shared": (["Finished", "Device shared with other processes"], None),
                "busy_cpu": (["Finished", "Device shared with other processes"], "ps -eo pcpu"),
                "beaten": (["Finished", "Loader-bound", "Not better than the baseline"], "train.epochs=4"),
                "collapsed": (["Finished", "Speed not recorded", "Within chance of the baseline", "Predicts only 'round'"], "train.epochs=8"),
                "level": (["Finished", "Speed not recorded"], None),
                "worse_series": (["Finished", "Good utilisation", "Not better than the baseline"], "data.anchor=season"),
                "blend_series": (["Finished", "Good utilisation", "Not better than the baseline"], "data.anchor=last"),
                "busy_launch": (["Finished", "Launch-bound"], "cleat find-batch"),
                "busy_loader": (["Finished", "Loader-bound"], "cleat find-workers"), "evaluates": (["Finished", "Launch-bound"], "cleat find-batch")}
    for name, (chips, command) in expected.items():
        check(pages[name].chips == chips, f"{name}: {pages[name].chips}")
        check(command is None or command in (pages[name].commands or [""])[0], f"{name}: the first command is {pages[name].commands[:1]}, not {command}")
    check("improving" not in pages["diverged"].text, "diverged: it was improving")
    sentences = {"healthy": ["accuracy 0.9", "against 0.1: always predicting the most frequent class", "Tesla T4", "11.2 million", "3 min 50 s", "50 of 50 epochs", "3.582 Wh"],
                 "loader": ["waited for the loader 39 % of the time"], "launch": ["Training was launch-bound", "% of its measured speed"], "killed": ["the process was killed"],
                 "overfit": ["overfitted since epoch 2"], "diverged": ["step 640: the gradient is not finite"], "resumed": ["in 2 sessions", "4 min 18 s"],
                 "series": ["mse 0.382", "against 0.5113: repeating the values one season before"], "old": ["lower is better"], "empty": ["No step completed"],
                 "interrupted": ["can continue"], "shared": ["What to do nextLet the other processes end", "Other processes took 84 % of the device"],
                 "busy_cpu": ["Other processes took 43 % of the device", "It also lost time: evaluations 13 %", "of the host, by this run"],
                 "busy_launch": ["It also lost time: other processes 4", "A step has 23 kernels of 6 us on average. (up to step 1,500)"],
                 "blend_series": ["not better than 0.4: the mean of the last known values and those one season before", "from the last known values, from which"],
                 "collapsed": ["accuracy 0.5238 within chance of 0.4762: nearest mean image"], "level": ["against 0.7: most", "It had reached a plateau"],
                 "decayed": ["learning rate to nearly 0: a longer run may be better"],
                 "masks": ["last frame, channel count"], "beaten": ["not better than 0.95: always"], "busy_loader": ["It also lost time: other processes 2"], "evaluates": ["20 of 20 epochs", "evaluations 13 %"]}
    for name, texts in sentences.items():
        for text in texts:
            check(text in pages[name].text, f"{name}: does not contain '{text}'")
    check("plateau" not in pages["collapsed"].text + pages["decayed"].text, "a plateau of 4 evaluations, or of a schedule that ended")
    check("Target: 80 to 95 %" in pages["healthy"].text, "healthy: no target of the device's memory")
    check("more memory allows" not in pages["busy_cpu"].text, "busy_cpu: a target for the memory of the host")


def check_series(page):
    """The spike and the gap of the long run."""
    loss = page.data[0]["lines"][0]
    xs, at = [], 0
    for step in loss["x"]:
        at += step
        xs.append(at)
    check(len(xs) == len(loss["y"]) <= 2000, f"long: {len(xs)} points")
    check(xs == sorted(set(xs)) and xs[0] == 1 and xs[-1] == 100000, "long: steps do not ascend")
    check((54321, 444.5) in zip(xs, loss["y"]), "long: the spike is lost")
    inside = [y for x, y in zip(xs, loss["y"]) if 70150 <= x < 70300]
    check(inside and all(y is None for y in inside), "long: the gap is not a gap")
    check(all(len(line["y"]) <= 2000 for plot in page.data for line in plot["lines"]), "long: a line with too many points")


def check_escapes(page, source):
    check(make_runs.EVIL in page.text, "evil: the text is changed")
    check("b" not in page.tags or source.count("<b>\"quoted\"") == 0, "evil: a tag came from a file")
    check("example.org" not in source and "localhost" not in source, "evil: an image from elsewhere")
    check("onerror" not in source, "evil: an attribute from a file")
    check(any(make_runs.EVIL + " of eval" == plot["id"][len("metric-"):] for plot in page.data), "evil: no plot of the metric")
    check(not any("</b" in script for script in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', source, re.S)), "evil: a tag in the data")


def check_classes(pages):
    """The worst examples, scores of classes, and the records of earlier versions."""
    text = pages["healthy"].text
    check(0 < text.find("Worst") < text.find("Others, at even distances") < text.find("Classes") < text.find("Confusion matrix"), "healthy: the order of examples and tables")
    check("classprecisionrecallf1support" in text and "3 with the least support are left out." in text and "iou" not in text, "healthy: the table of classes")
    check(pages["healthy"].drawn.count("class") == 12 and pages["loader"].drawn.count("class") == 12, "healthy, loader: examples are missing")
    check("Worst" not in pages["loader"].text and "Others" not in pages["loader"].text, "loader: groups of an earlier version")
    check(not any("_as_bo" in plot or "_as_ba" in plot for plot in pages["loader"].plots), f"loader: curves of counts: {pages['loader'].plots}")
    check("metric-f1_sold_as_seen" in pages["loader"].plots, f"loader: no curve of a label's F1: {pages['loader'].plots}")


def check_csv(folder):
    rows = list(csv.DictReader((folder / "healthy" / "metrics.csv").open(newline="")))
    check(list(rows[0])[:5] == ["step", "epoch", "time", "split", "loss"], f"csv: columns {list(rows[0])}")
    logged = [json.loads(line) for line in (folder / "healthy" / "metrics.jsonl").read_text().splitlines()]
    check(len(rows) == len(logged), f"csv: {len(rows)} rows of {len(logged)} records")
    by_key = {(r["split"], int(r["step"])): r for r in rows}
    for record in logged:
        row = by_key[(record["kind"], record["step"])]
        for key, value in record.items():
            if key not in ("kind", "step"):
                check(abs(float(row[key]) - value) <= 1e-8 * abs(value), f"csv: {record['kind']} {record['step']} {key}: {row[key]}, not {value}")
    time = float(by_key[("train", 1000)]["time"])
    check(abs(time - (make_runs.START + 20 + 104)) < 0.2, f"csv: step 1000 at {time}")
    times = [float(r["time"]) for r in rows if r["time"]]
    check(times == sorted(times) and len(times) == len(rows), "csv: times do not ascend")
    diverged = list(csv.DictReader((folder / "diverged" / "metrics.csv").open(newline="")))
    check(diverged[-1]["step"] == "640" and diverged[-1]["loss"] == "" and diverged[-1]["loss_scale"] == "16384", f"csv: null is {diverged[-1]}")
    resumed = list(csv.DictReader((folder / "resumed" / "metrics.csv").open(newline="")))
    steps = [int(r["step"]) for r in resumed if r["split"] == "train"]
    check(steps == list(range(1, 2001)), "csv: the resumed run repeats steps")
    late = next(float(r["time"]) for r in resumed if r["step"] == "850")
    check(late > make_runs.START + 86400, "csv: a repeated step has its first time")
    check(all(r["time"] == "" for r in csv.DictReader((folder / "old" / "metrics.csv").open(newline=""))), "csv: invented times")


def check_compare(cleat, folder):
    path = report(cleat, folder, ["healthy", "overfit", "evil"], "--out", str(folder / "three.html"), "--csv", str(folder / "one.csv"))
    check(path == str(folder / "three.html") and (folder / "one.csv").exists(), f"compare: wrote {path}")
    page = read_page(folder / "three.html", "compare")
    check("healthy has the best accuracy" in page.text, "compare: no winner")
    check("train.learning_rate0.0020.0040.002" in page.text.replace(" ", ""), "compare: the learning rates")
    check("train.effective_batch_size" not in page.text, "compare: a setting that does not differ")
    check(re.search(r"Settings that differ.*best *accuracy *0.9158 *accuracy *0.799.*train.learning_rate", page.text), "compare: settings without results")
    check(len(page.data[0]["lines"]) == 6, f"compare: {len(page.data[0]['lines'])} lines of the loss")
    check(len({line["colour"] for line in page.data[0]["lines"]}) == 3, "compare: the runs have equal colours")
    verdicts = page.text.split("Verdict of each run")[1].split("Learning")[0]
    for name in ("healthy", "overfit", "evil"): # what each run's own page says
        own = read_page(folder / name / "report.html", name)
        check(own.text.split("steps. ", 1)[1][:60] in verdicts, f"compare: the verdict of {name} is lost")
    report(cleat, folder, ["series", "worse_series"], "--out", str(folder / "two.html"))
    page = read_page(folder / "two.html", "compare")
    check(re.search(r"Verdict of each run.*mse [0-9.]+ against .*mse [0-9.]+ not better than ", page.text), "compare: verdicts without baselines")
    check(page.text.count("Not better than the baseline") == 1 and "series has the best mse" in page.text, "compare: a run below the baseline is hidden")
    names = [line["name"] for plot in page.data if plot["id"] == "metric-mse" for line in plot["lines"]]
    check(names == ["series", "worse_series", "series, persistence_mse", "series, seasonal_mse"], f"compare: lines {names}")
    for name in ("collapsed", "level"): # accuracies 11 / 21 and 0.8
        path = folder / name / "resolved.ini"
        path.write_text(path.read_text().replace("num_workers = 4", "num_workers = 4\nfolds = 2"))
    report(cleat, folder, ["collapsed", "level"], "--out", str(folder / "folds.html"))
    page = read_page(folder / "folds.html", "folds")
    check("accuracy 0.6619 (0.1953), mean and standard deviation of 2 folds" in page.text and "has the best" not in page.text, "compare: folds have a winner")
    many = ["healthy", "one_eval", "old", "empty", "beaten", "series", "worse_series", "evaluates", "rna", "masks"]
    report(cleat, folder, many, "--out", str(folder / "many.html"))
    page = read_page(folder / "many.html", "many")
    check(all(name in page.text.split("Settings that differ")[1].split("Learning")[0] for name in many), "many: a run lacks a column")
    drawn = {line["name"].split(",")[0] for line in page.data[0]["lines"]}
    check("first 8 of the 10 runs" in page.text and "evaluates" in drawn and not drawn & {"rna", "masks"}, f"many: draws {drawn}")


def check_commands(cleat, pages):
    """Commands that the report itself suggests have existing names and settings. Hints have their own commands."""
    help_text = subprocess.run([cleat, "--help"], capture_output=True, text=True).stdout
    settings, section = set(), ""
    for line in subprocess.run([cleat, "train", "--help-profile"], capture_output=True, text=True).stdout.splitlines():
        if line.startswith("["):
            section = line[1:line.index("]")]
        elif found := re.match(r"  ([a-z_]+) =", line):
            settings.add(f"{section}.{found[1]}")
    proposed = [pages[name].commands[0] for name in pages if pages[name].commands and name not in ("launch", "loader", "evil", "busy_cpu")]
    check(len(proposed) > 8 and len(settings) > 40, f"commands: {len(proposed)} of {len(settings)} settings")
    for command in proposed:
        words = command.split()
        check(re.search(rf"^  {words[1]} ", help_text, re.M), f"commands: there is no `{command}`")
        for assignment in (b for a, b in zip(words, words[1:]) if a == "--set"):
            check(assignment.split("=")[0] in settings, f"commands: there is no setting of `{command}`")


def check_running(cleat, folder):
    """A run in progress holds the lock of its folder."""
    with (folder / "killed" / ".train.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        page = read_page(report(cleat, folder, ["killed"]), "running")
    check(page.chips[0] == "Still running" and "--resume" not in page.text, f"running: {page.chips}")
    copy = shutil.copytree(folder / "killed", folder / "a run")
    command = read_page(report(cleat, folder, ["a run"]), "a run").commands[0]
    # each path is one word: PowerShell would divide '/a run'/resolved.ini
    check(command == f"cleat train '{copy}/resolved.ini' --out '{copy}' --resume", f"a run: {command}")


def check_cut_files(cleat, folder):
    """Every file truncated at any place, or damaged, still gives a page."""
    for name in ("metrics.jsonl", "system.jsonl", "examples.json", "profile-S000008.json", "resolved.ini"):
        path = folder / "healthy" / name
        whole = path.read_bytes()
        for text in (b"", whole[:1], whole[:len(whole) // 3], whole[:-3], b"\xff\x00{]" + whole[5:], b"[1,2,null]\n", b'{"kind":"start"}\n{"kind":"sample"}\n'):
            path.write_bytes(text)
            read_page(report(cleat, folder, ["healthy"]), f"healthy with {len(text)} bytes of {name}")
        path.unlink()
        read_page(report(cleat, folder, ["healthy"]), f"healthy without {name}")
        path.write_bytes(whole)


def main():
    cleat = sys.argv[1]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for make in make_runs.RUNS.values():
            make(folder)
        pages, seconds = {}, {}
        for name in make_runs.RUNS:
            began = time.monotonic()
            path = report(cleat, folder, [name])
            seconds[name] = time.monotonic() - began
            check(path == str(folder / name / "report.html"), f"{name}: wrote {path}")
            pages[name] = read_page(path, name)
        check_verdicts(pages)
        check_commands(cleat, pages)
        check_series(pages["long"])
        check(seconds["long"] < 20, f"long: {seconds['long']:.1f} s")  # about 0.5 s; this only detects quadratic algorithms
        check_escapes(pages["evil"], (folder / "evil" / "report.html").read_text())
        check(pages["rna"].drawn.count("rna") == 6 and pages["masks"].drawn.count("mask") == 6 and pages["series"].drawn.count("series") == 4, "examples are missing")
        check(pages["masks"].drawn.count("tags") == 1 and pages["masks"].drawn.count("tokens") == 1, "masks: no words, or no tokens")
        check(pages["masks"].drawn.count("likelihood") == 1, "masks: no likelihoods")
        words = (folder / "masks/report.html").read_text().split('data-drawn="likelihood"')[1].split("</figure>")[0]
        check(re.findall('class="word (\\w*)">([^<]*)', words) == [("", "&lt;s&gt;"), ("", "Paris"), ("right", " is"), ("wrong", " red")], words)
        check(re.findall("<small>([^<]*)", words) == ["4.0 %", "62 %", "0.3 %"], words)
        check_classes(pages)
        check("roofline" in pages["healthy"].drawn, "healthy: no roofline")
        check("1 damaged line" not in pages["killed"].text, "killed: the incomplete last line counts as damage")
        check_csv(folder)
        check_compare(cleat, folder)
        check_running(cleat, folder)
        check_cut_files(cleat, folder)
        size = (folder / "long" / "report.html").stat().st_size
    print("\n".join(faults[:40]))
    print(f"{len(pages)} runs, 100,000 steps: {size} bytes in {seconds['long']:.2f} s, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
