#!/usr/bin/env python3
"""Makes run folders in the formats of `cleat train`, as fixtures of the `cleat report` tests.
  tests/report/make_runs.py OUT [NAME ...]      OUT/NAME for each name; all of them if none is given

healthy, loader, launch: the same training with different bottlenecks. The rest: see RUNS at the end."""
import base64
import json
import math
import pathlib
import random
import struct
import sys
import zlib

START = 1790000000.0
EVIL = "</script><b>\"quoted\" & 'single'"


def png(width, height, pixel):
    """A grey PNG as a data URL; pixel(x, y) from 0 to 255."""
    rows = b"".join(b"\0" + bytes(max(0, min(255, int(pixel(x, y)))) for x in range(width)) for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    data = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows, 9))
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + data + chunk(b"IEND", b"")).decode()


class Run:
    """A run folder that is written record by record."""

    def __init__(self, folder, name, metric="accuracy", ascends=True, family="resnet", epochs=50, per_epoch=40, host="kiwi"):
        self.path = pathlib.Path(folder) / name
        self.path.mkdir(parents=True, exist_ok=True)
        self.name, self.metric, self.ascends, self.family = name, metric, ascends, family
        self.epochs, self.per_epoch, self.host = epochs, per_epoch, host
        self.metrics, self.system = [], []
        self.random = random.Random(name)
        self.settings = {"model": {"type": family}, "data": {"path": "/data/sneakers", "num_workers": "4"},
                         "train": {"epochs": str(epochs), "learning_rate": "0.002", "effective_batch_size": "32"},
                         "run": {"device": "auto", "seed": "1", "metric": metric, "out": "auto"}}

    def train(self, step, **values):
        self.metrics.append({"kind": "train", "epoch": (step - 1) // self.per_epoch, "step": step, **values})

    def eval(self, step, **values):
        self.metrics.append({"kind": "eval", "epoch": step // self.per_epoch, "step": step, **values})

    def start(self, time=START, step=0, **more):
        record = {
            "kind": "start", "time": time, "step": step, "cleat": "0.1.0", "pid": 4242, "host": self.host,
            "command": f"cleat train profiles/{self.family}.ini --set data.path=/data/sneakers --out runs/{self.name}",
            "device": {"name": "Tesla T4", "platform": "NVIDIA CUDA", "driver": "550.54.15", "kind": "GPU", "vendor": "nvidia",
                       "compute_units": 40, "memory_total": 15843721216, "memory_free": 15612182528, "memory_source": "NVML"},
            "cpus": {"allowed": 4, "quota": None, "quota_source": None},
            "model": {"family": self.family, "parameters": 11181642, "metric": self.metric, "ascends": self.ascends, "precision": "f16"},
            "schedule": {"epochs": self.epochs, "steps_per_epoch": self.per_epoch, "total_steps": self.epochs * self.per_epoch},
            "plan": {"bytes": 1824522240, "categories": {"parameters": 44726568, "gradients": 44726568, "optimizer": 89453136,
                                                         "half weights": 22363284, "inputs": 12582912, "activations and workspace": 1610669772},
                     "micro_batches": [{"length": 128, "global": 32, "micro": 16}], "recompute": 0},
            "rates": {"flops": 7.6e12, "matrix_flops": 4.1e13, "bytes": 2.6e11, "launch_seconds": 6e-6, "source": "measured"},
            "forecast": {"step_seconds": 0.104, "source": "roofline estimate at measured rates"},
            "auto": [{"key": "train.batch_size", "given": "auto", "became": "16", "why": "largest micro-batch that fits"},
                     {"key": "data.num_workers", "given": "auto", "became": "4", "why": "CPUs of this process"}],
            "figures": [{"name": "memory_device", "unit": "bytes", "source": "NVML nvmlDeviceGetMemoryInfo",
                         "meaning": "memory in use on the device by all processes"},
                        {"name": "power", "unit": "W", "source": "NVML nvmlDeviceGetPowerUsage", "meaning": "power of the board"},
                        {"name": "memory_gtt", "unit": "bytes", "source": None, "meaning": "own system memory mapped to the card"}]}
        record.update(more)
        self.system.append(record)

    def samples(self, first, last, time, seconds, every=1.0, **shares):
        """Samples of the steps first..last, which take `seconds` in total."""
        count = max(1, int(seconds / every))
        values = {"dry_share": 0.012, "dry_loader": 0.004, "dry_evaluate": 0.006, "dry_checkpoint": 0.002, "dry_read": 0.0,
                  "dry_other": 0.0, "dry_handovers": 0.01, "roofline_share": 0.55, "busy_device": 0.97, "busy_own": None, **shares}
        for i in range(count + 1):
            step = first + (last - first) * i / count
            speed = (last - first) / seconds * (1 + self.random.gauss(0, 0.03))
            noise = {key: None if value is None else max(0.0, min(1.0, value * (1 + self.random.gauss(0, 0.1)))) for key, value in values.items()}
            self.system.append({"kind": "sample", "time": round(time + seconds * i / count, 3), "step": int(step),
                                "epoch": round(step / self.per_epoch, 3), "values": {
                "steps_per_second": round(speed, 3), "samples_per_second": round(32 * speed, 2),
                "step_seconds": round(1 / max(speed, 1e-9), 6) if i else None, **{k: v if v is None else round(v, 4) for k, v in noise.items()}, "workers": 4,
                "loader_fill_seconds": 0.8, "memory_planned": 1824522240, "memory_allocated": 1824522240,
                "memory_device": 2.1e9, "memory_device_total": 15843721216, "memory_own": 1.9e9, "memory_gtt": None,
                "power": round(62 + self.random.gauss(0, 2), 1), "energy": round(62 * seconds * i / count, 1), "temperature": round(61 + 8 * i / count),
                "clock": 1350, "throttled": 0, "throttle_reason": 0, "host_cpu": 1.4, "host_memory": 1.2e9,
                "host_memory_available": 2.2e10, "host_memory_limit": None, "cpu_quota_throttled": None}})
        return time + seconds

    def event(self, time, step, what, name, text, command=""):
        self.system.append({"kind": "event", "time": time, "step": step, "what": what, "name": name, "text": text, "command": command})

    def end(self, time, step, status="ok", text="", seconds=None):
        self.system.append({"kind": "end", "time": time, "step": step, "status": status, "text": text,
                            "seconds": time - START if seconds is None else seconds})

    def checkpoint(self, step, best_metric, best=True):
        name = f"ckpt-E{step // self.per_epoch:03d}-S{step:06d}"
        (self.path / name).mkdir(exist_ok=True)
        state = {"format": 2, "epoch": step // self.per_epoch, "step": step, "has_best": True,
                 "best_metric": {"value": best_metric, "bits": "0"}, "best_step": step, "epochs": 0, "time_used": {"value": 0.1 * step, "bits": "0"},
                 "files": {"model.safetensors": {"size": 44737536, "hash": "9c57dcea0f13fc1c1ff1e9f9f47e2e2a"}}}
        (self.path / name / "state.json").write_text(json.dumps({"state": state, "hash": "0"}))
        (self.path / "last").write_text(name + "\n")
        if best:
            (self.path / "best").write_text(name + "\n")

    def write(self, cut=False):
        def lines(name, records):
            text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
            (self.path / name).write_text(text[:-20] if cut and text else text)
        if self.metrics:
            lines("metrics.jsonl", self.metrics)
        if self.system:
            lines("system.jsonl", self.system)
        ini = ["# Every setting of a cleat run."]
        for section, keys in self.settings.items():
            ini += [f"[{section}] ; section"] + [f"{key} = {value}" for key, value in keys.items()]
        (self.path / "resolved.ini").write_text("\n".join(ini) + "\n")

    def examples(self, examples, baseline=None, confusion=None, step=None, **classes):
        step = step or self.epochs * self.per_epoch
        (self.path / "examples.json").write_text(json.dumps({"step": step, "epoch": step // self.per_epoch, "split": "val", "baseline": baseline,
                                                             "confusion": confusion, **classes, "examples": examples}))

    def learn(self, steps=None, floor=0.25, overfit_from=None, terms=()):
        """Train and eval records of a falling loss."""
        steps = self.epochs * self.per_epoch if steps is None else steps
        last = self.epochs * self.per_epoch
        for step in range(1, steps + 1):
            loss = floor + 2.05 * math.exp(-3.2 * step / last) * (1 + self.random.gauss(0, 0.06)) + abs(self.random.gauss(0, 0.03))
            rate = 0.002 * min(1, step / 80) * 0.5 * (1 + math.cos(math.pi * step / last))
            more = {term: round(loss / len(terms), 6) for term in terms}
            self.train(step, loss=round(loss, 7), **more, grad_norm=round(2 / math.sqrt(step) + abs(self.random.gauss(0, 0.2)), 6),
                       loss_scale=65536, learning_rate=rate)
            if step % self.per_epoch == 0:
                done = step / last
                mean = floor + 2.05 * math.exp(-3.2 * done) + 0.12
                if overfit_from and done > overfit_from:
                    mean += 1.6 * (done - overfit_from)
                score = 0.93 * (1 - math.exp(-4 * done)) - (0.25 * (done - overfit_from) if overfit_from and done > overfit_from else 0)
                self.eval(step, loss=round(mean, 6), accuracy=round(score + self.random.gauss(0, 0.004), 6), macro_f1=round(score - 0.02, 6))
        evals = [r for r in self.metrics if r["kind"] == "eval"]
        if evals:
            best = max(evals, key=lambda r: r["accuracy"])
            self.checkpoint(best["step"], best["accuracy"])
            if evals[-1] is not best:
                self.checkpoint(evals[-1]["step"], best["accuracy"], best=False)
        return evals


CLASSES = ["T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


def scores(labels, counts):
    rows = []
    for i, label in enumerate(labels):
        support, said, right = sum(counts[i]), sum(row[i] for row in counts), counts[i][i]
        rows.append({"name": label, "precision": right / said, "recall": right / support, "f1": 2 * right / (said + support), "support": support})
    return rows


def class_examples(run, labels=None, old=False):
    """old: as version 0.1 wrote them, without the worst ones and the scores of classes."""
    labels = labels or CLASSES
    rows = []
    for i in range(12):
        truth, wrong = labels[i % len(labels)], i in (4, 9)
        image = png(28, 28, lambda x, y: 235 - 9 * abs(x - 14) - 6 * abs(y - 14) - 20 * ((x * (i + 2) + y) % 5) if (x - 14) ** 2 + (y - 14) ** 2 < 150 else 12)
        rows.append({"kind": "class", "name": f"t10k-{i:05d}", "image": image, "text": None, "truth": truth,
                     "prediction": labels[(i + 2) % len(labels)] if wrong else truth, "confidence": 0.54 if wrong else 0.9 + 0.008 * i})
    n = len(labels)
    counts = [[int(930 + 5 * r) if r == c else max(0, int(40 / (1 + 2 * abs(r - c)) - 4)) for c in range(n)] for r in range(n)]
    if not old:
        rows.sort(key=lambda row: row["truth"] == row["prediction"])
        for i, row in enumerate(rows):
            row["choice"] = "worst" if i < 6 else "typical"
    run.examples(rows, {"text": "always predicting the most frequent class", "metric": "accuracy", "value": 0.1, "ascends": True},
                 {"labels": labels, "counts": counts}, **({} if old else {"classes": scores(labels, counts), "classes_left_out": 3}))


def profiled(run, launch=False):
    step, kernels = (0.021, 0.012) if launch else (0.1019, 0.1)
    rows = [("conv_mma", 42, 0.55, 4300, 95, "compute", 0.11 if launch else 0.71), ("conv_grad_weight", 21, 0.2, 3100, 80, "compute", 0.1 if launch else 0.62),
            ("batch_norm", 40, 0.12, 60, 210, "launch" if launch else "memory", 0.07 if launch else 0.8),
            ("relu_grad", 33, 0.06, 12, 190, "launch" if launch else "memory", 0.06 if launch else 0.74),
            ("adamw_step", 1, 0.04, 24, 230, "memory", 0.88), ("mean_pool", 2, 0.03, 4, 35, "launch", 0.09)]
    table = [{"kernel": k, "calls": c, "seconds": s * kernels, "share": s, "gflops": f, "gbytes": b, "bound": bound, "roof_share": roof,
              "saves": s * kernels * (1 - roof)} for k, c, s, f, b, bound, roof in rows]
    table.sort(key=lambda r: -r["saves"])
    (run.path / "profile-S000008.json").write_text(json.dumps({
        "step": 8, "steps": 3, "device": "Tesla T4", "precision": "f16", "profiled_step_seconds": step * 1.012, "unprofiled_step_seconds": step,
        "rates": {"flops": 7.6e12, "matrix_flops": 4.1e13, "bytes": 2.6e11, "launch_seconds": 6e-6, "source": "measured"},
        "phases": {"forward": kernels * 0.3, "backward": kernels * 0.62, "recompute": 0, "update": kernels * 0.05, "copies": kernels * 0.03, "idle": step - kernels},
        "kernels": table, "ops": [{"op": "conv2d", "seconds": kernels * 0.75, "share": 0.75, "saves": kernels * 0.25}],
        "layers": [{"layer": "stage3.0.conv1", "seconds": kernels * 0.2, "share": 0.2}, {"layer": "stage2.1.conv2", "seconds": kernels * 0.15, "share": 0.15}],
        "idle": [{"start": 0.01, "seconds": 0.0005, "host": "waiting for the loader"}],
        "memory": {"planned": 1824522240, "forward_peak": 1.4e9, "step_peak": 1.8e9, "persistent": {"parameters": 44726568},
                   "timeline": [[step * i / 120, 1.5e9 * math.sin(math.pi * i / 120), 1e8 * (i % 7)] for i in range(121)]}}))


def healthy(folder, name="healthy"):
    run = Run(folder, name)
    run.learn()
    run.start()
    end = run.samples(0, 2000, START + 20, 208)
    run.event(START + 60, 400, "workers", "more", "2 -> 4 loader threads: the device waited for 6 % of the batches")
    run.event(end, 2000, "checkpoint", "best", "ckpt-E050-S002000 was written in 0.4 s")
    run.end(end + 2, 2000)
    class_examples(run)
    profiled(run)
    run.write()


def loader(folder):
    run = Run(folder, "loader")
    run.learn()
    run.start()
    end = run.samples(0, 2000, START + 20, 330, dry_share=0.41, dry_loader=0.39, dry_evaluate=0.012, dry_checkpoint=0.003, roofline_share=0.31, dry_handovers=0.9)
    run.event(START + 60, 300, "hint", "loader_bound", "The device waited for data during 39 % of the time: 2 loader threads supply 195 samples/s, the "
              "device could take 320.", "cleat find-workers profiles/resnet.ini --write")
    run.event(START + 61, 301, "hint", "memory_unused", "The run uses 13 % of the device memory; 80 to 95 % is usual.", "cleat find-batch profiles/resnet.ini")
    run.end(end + 2, 2000)
    class_examples(run, old=True)
    for record in run.metrics:
        if record["kind"] == "eval":  # 0.1 recorded confusion matrices; a label may have such a name, too
            record |= {"bag_as_bag": 90, "bag_as_boot": 7, "boot_as_bag": 5, "boot_as_boot": 80, "f1_sold_as_seen": 0.5 + 0.0001 * record["step"]}
    run.write()


def launch(folder):
    run = Run(folder, "launch")
    run.learn()
    run.start()
    end = run.samples(0, 2000, START + 20, 42, every=0.5, dry_share=0.02, dry_loader=0.004, roofline_share=0.09)
    run.event(START + 55, 1500, "hint", "launch_bound", "A step has 214 kernels of 11 us on average: starting them takes longer than computing. The step "
              "reaches 9 % of the device's speed.", "cleat train profiles/resnet.ini --set train.batch_size=auto --set train.effective_batch_size=256")
    run.end(end + 2, 2000)
    class_examples(run)
    profiled(run, launch=True)
    run.write()


def killed(folder):
    run = Run(folder, "killed")
    run.learn(steps=1130)
    run.start()
    run.samples(0, 1130, START + 20, 118)
    run.write(cut=True)


def resumed(folder):
    """Killed at step 900, resumed from step 800 a day later; the metrics repeat 801 to 900."""
    run = Run(folder, "resumed")
    run.learn(steps=900)
    again = Run(folder, "resumed")
    again.learn()
    run.start()
    run.samples(0, 900, START + 20, 92)
    run.start(time=START + 86400, step=800)
    run.event(START + 86401, 800, "resume", "resume", "continues from ckpt-E020-S000800")
    end = run.samples(800, 2000, START + 86420, 125)
    run.end(end + 1, 2000, seconds=146)
    run.metrics += [r for r in again.metrics if r["step"] > 800]
    run.write()


def empty(folder):
    run = Run(folder, "empty")
    run.start()
    run.end(START + 4, 0, "no such device", "run.device = gpu: there is none of this kind", 4)
    run.write()


def one_eval(folder):
    run = Run(folder, "one_eval", epochs=1)
    run.eval(40, loss=2.1, accuracy=0.31)
    run.write()


def old(folder):
    """Before system.jsonl existed; terms that stay 0; a metric that descends."""
    run = Run(folder, "old", metric="rmsd", family="rna_transformer", epochs=8, per_epoch=38)
    for step in range(1, 305):
        run.train(step, loss=20 * math.exp(-step / 120) + 3, pair_distance=5 * math.exp(-step / 120), handedness=0, grad_norm=40 / math.sqrt(step), learning_rate=0.002)
        if step % 38 == 0:
            run.eval(step, loss=20 * math.exp(-step / 120) + 3.5, rmsd=12 * math.exp(-step / 150) + 2, lddt=0.8 - 0.5 * math.exp(-step / 100))
    run.checkpoint(304, 12 * math.exp(-304 / 150) + 2)
    run.write()


def diverged(folder):
    run = Run(folder, "diverged")
    run.learn(steps=600)
    for step in range(601, 640):
        run.train(step, loss=0.4 * 1.3 ** (step - 600), grad_norm=3 * 1.4 ** (step - 600), loss_scale=32768, learning_rate=0.002)
    run.train(640, loss=None, grad_norm=None, loss_scale=16384, learning_rate=0.002)
    run.start()
    end = run.samples(0, 640, START + 20, 66)
    run.end(end, 640, "stopped on a value that is not finite", "step 640: the gradient is not finite (loss nan, gradient norm inf). The parameters "
            "are as before that step; a smaller train.learning_rate or train.max_grad_norm, or a longer warm-up, may help")
    run.write()


def overfit(folder):
    run = Run(folder, "overfit")
    run.settings["train"]["learning_rate"] = "0.004"
    run.learn(floor=0.02, overfit_from=0.4)
    run.start()
    end = run.samples(0, 2000, START + 20, 208)
    run.end(end + 2, 2000)
    class_examples(run)
    run.write()


def evil(folder):
    """Every text of every file contains characters that are special in HTML and scripts."""
    run = Run(folder, "evil", host=EVIL)
    run.learn(steps=200)
    for record in run.metrics:
        record[EVIL + (" of eval" if record["kind"] == "eval" else "")] = 0.5 + 0.001 * record["step"]
    run.settings["data"]["path"] = EVIL
    run.start(command=EVIL, device={"name": EVIL, "driver": EVIL, "platform": EVIL, "kind": EVIL}, auto=[{"key": EVIL, "given": EVIL, "became": EVIL, "why": EVIL}])
    end = run.samples(0, 200, START + 20, 20)
    run.event(START + 30, 100, "hint", EVIL, EVIL, EVIL)
    run.event(START + 31, 110, EVIL, EVIL, EVIL)
    run.end(end, 200, EVIL, EVIL)
    class_examples(run, [EVIL, "b\n</td>", "javascript:alert(1)"])
    data = json.loads((run.path / "examples.json").read_text())
    data["examples"][0]["image"] = "https://example.org/pixel.png"
    data["examples"][2]["image"] = "https://localhost/" + "A" * 40
    data["examples"][1]["image"] = "data:image/png;base64,\"onerror=\"alert(1)"
    data["examples"].append({"kind": "tags", "name": EVIL, "words": [EVIL, "b"], "truth": [EVIL, "O"], "prediction": ["O", EVIL]})
    data["examples"].append({"kind": "tokens", "name": EVIL, "words": [EVIL, "b"], "truth": [EVIL, None], "prediction": ["O", EVIL], "confidence": [EVIL, 2]})
    data["examples"].append({"kind": "likelihood", "name": EVIL, "words": [EVIL, EVIL, None], "confidence": [EVIL, 2]})
    data["examples"].append({"kind": "rna", "name": EVIL, "sequence": EVIL, "truth": [[0, 0, 0], None, [9, 1, 0]], "prediction": [[0, 1, 0], [5, 5, 5], [9, 2, 0]],
                             "score": 1.2, "score_name": EVIL})
    data["examples"].append({"kind": "series", "name": EVIL, "column": EVIL, "past": [1, 2, None, 4], "truth": [5, 6], "prediction": [5, 7], "baseline": None})
    data["examples"].append({"kind": EVIL, "name": EVIL})
    data["examples"].append("no object")
    data["baseline"]["text"] = EVIL
    (run.path / "examples.json").write_text(json.dumps(data))
    run.write()


def long_run(folder):
    """10^5 steps, with one spike, one gap, all terms of an RNA model and 3 hours of samples."""
    run = Run(folder, "long", metric="rmsd", ascends=False, family="rna_transformer", epochs=100, per_epoch=1000)
    r = run.random
    for step in range(1, 100001):
        loss = 20 * math.exp(-step / 30000) + 2 + abs(r.gauss(0, 0.5))
        if step == 54321:
            loss = 444.5
        if 70000 <= step < 70400:
            loss = None
        terms = {name: round((loss or 1) * (0.1 + 0.05 * i), 7) for i, name in enumerate(("pair_distance", "lddt_loss", "frame", "bond_length", "bond_angle", "clash", "base_pair"))}
        run.train(step, loss=loss, **terms, handedness=0, coordinate=0, grad_norm=round(abs(r.gauss(5, 2)), 6), learning_rate=0.002 * (1 - step / 100001))
        if step % 1000 == 0:
            run.eval(step, loss=20 * math.exp(-step / 30000) + 2.4, rmsd=12 * math.exp(-step / 30000) + 2, lddt=0.85 - 0.6 * math.exp(-step / 20000))
    run.start()
    end = run.samples(0, 100000, START + 20, 10000)
    run.end(end + 2, 100000)
    run.checkpoint(100000, 2.4)
    rna_examples(run)
    run.write()


def rna_examples(run):
    rows = []
    for k in range(6):
        n, half = 24 + 6 * k, 12 + 3 * k
        truth = []
        for i in range(n):
            j = i if i < half else n - 1 - i
            turn = 0.57 * j + (0 if i < half else 2.6)
            truth.append([round(9 * math.cos(turn), 2), round(9 * math.sin(turn), 2), round(2.8 * j, 2)])
        if k == 1:
            truth[5] = None
        prediction = [[round(v + run.random.gauss(0, 0.5 + 0.4 * k), 2) for v in (p or [0, 0, 14])] for p in truth]
        rows.append({"kind": "rna", "name": f"hairpin_{k}", "sequence": "".join(run.random.choice("ACGU") for _ in range(n)), "truth": truth,
                     "prediction": prediction, "score": 1.1 + 0.7 * k, "score_name": "rmsd"})
    run.examples(rows, {"text": "all residues on a straight line", "metric": "rmsd", "value": 14.2, "ascends": False})


def rna(folder):
    run = Run(folder, "rna", metric="rmsd", ascends=False, family="rna_transformer", epochs=30, per_epoch=38)
    for step in range(1, 1141):
        run.train(step, loss=20 * math.exp(-step / 300) + 2 + abs(run.random.gauss(0, 0.5)), frame=9 * math.exp(-step / 300), grad_norm=40 / math.sqrt(step), learning_rate=0.002)
        if step % 38 == 0:
            run.eval(step, loss=20 * math.exp(-step / 300) + 2.5, rmsd=12 * math.exp(-step / 250) + 2 + run.random.gauss(0, 0.05), lddt=0.85 - 0.6 * math.exp(-step / 300))
    run.start()
    end = run.samples(0, 1140, START + 10, 120)
    run.end(end, 1140)
    rna_examples(run)
    run.checkpoint(1140, 2.2)
    run.write()


def series(folder):
    run = Run(folder, "series", metric="mse", ascends=False, family="lstm", epochs=12, per_epoch=60)
    for step in range(1, 721):
        run.train(step, loss=0.3 + 0.6 * math.exp(-step / 150) + abs(run.random.gauss(0, 0.02)), grad_norm=0.3, learning_rate=0.001)
        if step % 60 == 0:
            mse = 0.38 + 0.5 * math.exp(-step / 130)
            run.eval(step, loss=mse, mse=mse, mae=mse * 0.9, persistence_mse=1.2638, persistence_mae=0.725, seasonal_mse=0.5113, seasonal_mae=0.4476,
                     **{f"mse_step_{h}": mse * (0.8 + 0.01 * h) for h in (1, 2, 4, 8, 16, 24)})
    run.start()
    end = run.samples(0, 720, START + 10, 60)
    run.end(end, 720)
    rows = []
    for k in range(4):
        wave = [round(10 + 4 * math.sin(0.26 * i + k) + run.random.gauss(0, 0.5), 3) for i in range(120)]
        rows.append({"kind": "series", "name": f"2018-02-{20 + k} 00:00", "column": "OT", "past": wave[:96], "truth": wave[96:],
                     "prediction": [round(v * 0.96 + 0.3, 3) for v in wave[96:]], "baseline": [wave[95]] * 24})
    run.examples(rows, {"text": "the last known value", "metric": "mse", "value": 1.2638, "ascends": False})
    run.checkpoint(720, 0.382)
    run.write()


def masks(folder):
    run = Run(folder, "masks", metric="iou", family="segformer", epochs=10, per_epoch=30)
    for step in range(1, 301):
        run.train(step, loss=0.1 + 0.5 * math.exp(-step / 80), grad_norm=1 / step, learning_rate=0.001)
        if step % 30 == 0:
            run.eval(step, loss=0.12 + 0.5 * math.exp(-step / 80), iou=0.83 - 0.6 * math.exp(-step / 70), f1=0.9 - 0.6 * math.exp(-step / 70))
    run.start()
    end = run.samples(0, 300, START + 10, 30)
    run.end(end, 300)
    rows = []
    for k in range(6):
        inside = lambda x, y, d: (x - 30 - 3 * k) ** 2 + (y - 34) ** 2 < (16 + 2 * k + d) ** 2
        rows.append({"kind": "mask", "name": f"nucleus_{k}", "image": png(64, 64, lambda x, y: 60 + 120 * inside(x, y, 0) + (x * y) % 23),
                     "truth": png(64, 64, lambda x, y: 255 * inside(x, y, 0)), "prediction": png(64, 64, lambda x, y: 255 * inside(x, y, k - 2)),
                     "score": 0.9 - 0.04 * k, "score_name": "iou"})
    rows[1]["image_text"] = "last frame, channel count"
    rows.append({"kind": "tags", "name": "tweet 7", "words": ["Angela", "Merkel", "visits", "Paris", "today"], "truth": ["B-person", "I-person", "O", "B-location", "O"],
                 "prediction": ["B-person", "I-person", "O", "B-person", "O"]})
    rows.append({"kind": "tokens", "name": "9", "words": ["[CLS]", "the", "[MASK]", "was", "la", "##mp", "[SEP]"], "truth": [None, None, "flight", None, None, "##te", None],
                 "prediction": [None, None, "flight", None, None, "##mp", None], "confidence": [None, None, 0.42, None, None, 0.9, None]})
    rows.append({"kind": "likelihood", "name": "row 3", "words": ["<s>", "Paris", " is", " red"], "confidence": [None, 0.04, 0.625, 0.0031]})
    rows.append({"kind": "class", "name": "tweet 8", "image": None, "text": "Forest fire near La Ronge Sask. Canada", "truth": "disaster", "prediction": "disaster", "confidence": 0.97})
    run.examples(rows, {"text": "every pixel is background", "metric": "iou", "value": 0.0, "ascends": True})
    run.checkpoint(300, 0.82)
    run.write()


def dry(folder):
    """Loader-bound by its metrics, without a logged hint."""
    run = Run(folder, "dry")
    run.learn()
    run.start()
    end = run.samples(0, 2000, START + 20, 330, dry_share=0.41, dry_loader=0.39, roofline_share=0.31)
    run.end(end + 2, 2000)
    run.write()


def shared(folder):
    """Slow because of another process: the hint has no command."""
    run = Run(folder, "shared")
    run.learn()
    run.start()
    end = run.samples(0, 2000, START + 20, 400, roofline_share=0.08, busy_own=0.11)
    run.event(START + 60, 300, "hint", "foreign_load", "The device is busy 100 % of the time, this run accounts for 11 %: another process uses it.", "")
    run.end(end + 2, 2000)
    run.write()


CPU = {"name": "pthread-Intel Xeon", "platform": "Portable Computing Language", "driver": "3.1", "kind": "CPU", "vendor": "pocl",
       "compute_units": 2, "memory_total": 25276063744, "memory_free": 24051208495, "memory_source": "/proc/meminfo"}


def busy_cpu(folder):
    """On the CPU of a host where other processes take almost half: the kernels are not the cause."""
    run = Run(folder, "busy_cpu")
    run.learn()
    run.start(device=CPU)
    end = run.samples(0, 2000, START + 20, 66, dry_share=0.3, dry_evaluate=0.13, dry_loader=0.02, roofline_share=0.043, busy_device=0.99, busy_own=0.52)
    run.end(end + 2, 2000)
    run.write()


def busy_launch(folder):
    """The same, but the count of launches shows that they are the bottleneck regardless of the CPU's load."""
    run = Run(folder, "busy_launch")
    run.learn()
    run.start(device=CPU)
    end = run.samples(0, 2000, START + 20, 66, dry_share=0.2, dry_loader=0.02, roofline_share=0.043, busy_device=0.99, busy_own=0.52)
    run.event(START + 60, 1500, "hint", "launch_bound", "a step has 23 kernels of 6 us on average.", "cleat find-batch profiles/resnet.ini")
    run.end(end + 2, 2000)
    run.write()


def busy_loader(folder):
    """Other processes take a sixth of the CPU, but waits for the loader cost more."""
    run = Run(folder, "busy_loader")
    run.learn()
    run.start(device=CPU)
    end = run.samples(0, 2000, START + 20, 66, dry_share=0.45, dry_loader=0.42, roofline_share=0.2, busy_device=0.7, busy_own=0.45)
    run.end(end + 2, 2000)
    run.write()


def evaluates(folder):
    """Launch-bound, with evaluations that cost less; its time budget shortened the schedule."""
    run = Run(folder, "evaluates")
    run.learn(steps=800)
    run.start()
    end = run.samples(0, 800, START + 20, 66, dry_share=0.2, dry_evaluate=0.13, roofline_share=0.04)
    run.event(START + 30, 100, "note", "shorter_schedule", "the time budget allows 20 epochs: 800 steps instead of 2000")
    run.system[-1]["schedule"] = {"epochs": 20, "steps_per_epoch": 40, "total_steps": 800}
    run.event(START + 60, 700, "hint", "launch_bound", "A step has 214 kernels of 11 us on average.", "cleat find-batch profiles/resnet.ini")
    run.end(end + 2, 800)
    run.write()


def beaten(folder):
    """Two evaluations, both worse than a prediction without a model; it also waited for the loader."""
    run = Run(folder, "beaten", epochs=2)
    run.learn()
    run.start()
    end = run.samples(0, 80, START + 20, 40, dry_share=0.31, dry_loader=0.3)
    run.end(end + 2, 80)
    run.examples([], {"text": "always predicting the most frequent class", "metric": "accuracy", "value": 0.95, "ascends": True})
    run.write()


def collapsed(folder):
    """All predictions are one class: one sample of 21 more is right than by the nearest mean image."""
    run = Run(folder, "collapsed", epochs=4, per_epoch=4)
    for step in range(1, 17):
        run.train(step, loss=1.1 - 0.01 * step, learning_rate=0.002 * (17 - step) / 16)
        if step % 4 == 0:
            run.eval(step, loss=1.2 - 0.02 * step, accuracy=11 / 21)
    run.start()
    run.end(START + 9, 16)
    run.examples([], {"text": "nearest mean image", "metric": "accuracy", "value": 10 / 21, "ascends": True},
                 {"labels": ["rod", "round"], "counts": [[0, 10], [0, 11]]})
    run.write()


def level(folder, name="level", last_rate=0.002):
    """A metric that has not changed since the middle, at a constant learning rate."""
    run = Run(folder, name, epochs=10, per_epoch=4)
    for step in range(1, 41):
        run.train(step, loss=1 / min(step, 20), learning_rate=0.002 + (last_rate - 0.002) * step / 40)
        if step % 4 == 0:
            run.eval(step, loss=1 / min(step, 20), accuracy=0.04 * min(step, 20))
    run.start()
    run.end(START + 9, 40)
    run.examples([], {"text": "most frequent class", "metric": "accuracy", "value": 0.7, "ascends": True},
                 {"labels": ["a", "b"], "counts": [[12, 3], [2, 13]]})  # the standard error is 0.073
    run.write()


def decayed(folder):
    """The same, but the schedule ended near 0."""
    level(folder, "decayed", 2e-5)


def worse_series(folder):
    """A forecast that is worse than the values one season before, which it could have started from."""
    run = Run(folder, "worse_series", metric="mse", ascends=False, family="lstm", epochs=3, per_epoch=60)
    run.settings["data"]["anchor"] = "last"
    for step in range(60, 181, 60):
        run.eval(step, loss=0.9, mse=0.9, persistence_mse=1.2, seasonal_mse=0.5)
    run.start()
    run.end(run.samples(0, 180, START + 10, 40), 180)
    run.write()


def blend_series(folder):
    """A forecast from the values one season before, better than these, but not than their mean with the last ones."""
    run = Run(folder, "blend_series", metric="mse", ascends=False, family="lstm", epochs=3, per_epoch=60)
    run.settings["data"]["anchor"] = "season"
    for step in range(60, 181, 60):
        run.eval(step, loss=0.45, mse=0.45, persistence_mse=1.2, seasonal_mse=0.5, blend_mse=0.4)
    run.start()
    run.end(run.samples(0, 180, START + 10, 40), 180)
    run.write()


def running(folder):
    run = Run(folder, "interrupted")
    run.learn(steps=700)
    run.start()
    end = run.samples(0, 700, START + 20, 73)
    run.end(end, 700, "interrupted", "")
    run.write()


RUNS = {"healthy": healthy, "loader": loader, "launch": launch, "killed": killed, "resumed": resumed, "empty": empty, "one_eval": one_eval, "old": old,
        "diverged": diverged, "overfit": overfit, "evil": evil, "long": long_run, "rna": rna, "series": series, "masks": masks, "interrupted": running, "shared": shared, "dry": dry,
        "busy_cpu": busy_cpu, "busy_launch": busy_launch, "busy_loader": busy_loader, "evaluates": evaluates, "beaten": beaten, "collapsed": collapsed, "level": level, "decayed": decayed, "worse_series": worse_series,
        "blend_series": blend_series}

if __name__ == "__main__":
    for wanted in sys.argv[2:] or RUNS:
        RUNS[wanted](sys.argv[1])
