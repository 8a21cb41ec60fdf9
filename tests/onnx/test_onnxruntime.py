"""ONNX Runtime computes from exports what PyTorch and cleat compute: test_onnxruntime.py PROGRAM EXPORTER SOURCE.

EXPORTER exports the networks of all reference trajectories in SOURCE/tests/golden and of the published checkpoints in
SOURCE/tests/published and $CLEAT_SHARED/hf (SOURCE/../shared/hf). Their outputs are compared with PyTorch's in double precision
and with cleat's, also for parts of the batch and of the length; graphs of single operations are compared with cleat. Then
PROGRAM trains each family briefly and exports it; `cleat predict` is compared with the model. Skipped (77)
without onnxruntime or a device."""
# ctest: device
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import arrays
import families

PROGRAM, EXPORTER, SOURCE = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
DEVICE = os.environ.get("CLEAT_TEST_DEVICE", "auto")
SHARED = pathlib.Path(os.environ.get("CLEAT_SHARED", SOURCE.parent / "shared")) / "hf"
TOLERANCE = 1e-5  # of the largest value
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print(f"FAILED: {what}")


def deviation(found, expected):
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def compare(what, found, expected, tolerance=TOLERANCE):
    if found.shape != expected.shape:
        check(False, f"{what}: shape {found.shape} instead of {expected.shape}")
        return
    worst = deviation(found, expected)
    print(f"  {what}: {worst:.1e}")
    check(worst <= tolerance, f"{what}: deviates by {worst:.1e}, more than {tolerance:.0e}")


def open_model(path):
    """The model, checked by onnx: structure, types and shapes of every node."""
    onnx.checker.check_model(str(path), full_check=True)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def run(session, batch):
    return session.run(None, {i.name: batch[i.name] for i in session.get_inputs()})[0]


# --- reference trajectories, and graphs of single operations


class UnknownNetwork(Exception):
    pass


def export(subject, folder, options=()):
    """The opened model, its inputs, and the outputs to compare with."""
    name = pathlib.Path(subject).stem
    model, stored = folder / f"{name}.onnx", folder / f"{name}.safetensors"
    made = subprocess.run([EXPORTER, subject, model, stored, *options], check=False)
    if made.returncode == 77:
        sys.exit(77)
    if made.returncode == 3:
        raise UnknownNetwork
    made.check_returncode()
    session, stored = open_model(model), arrays.read(stored)
    batch = {i.name: stored[i.name] for i in session.get_inputs() if i.name in stored}
    if "lengths" not in batch and any(i.name == "lengths" for i in session.get_inputs()):
        count, length = batch["tokens"].shape
        batch["lengths"] = np.full(count, length, np.int32)
    return session, batch, {by: stored[by] for by in ("cleat", "output") if by in stored}


def rows(output, lengths):
    """Rows of [B, L, ...] within their sample; other outputs unchanged."""
    if lengths is None or lengths.ndim != 1 or output.ndim < 3:
        return output
    return np.concatenate([output[b, :n].ravel() for b, n in enumerate(lengths)])


def compare_golden(path, folder, options=()):
    session, batch, outputs = export(path, folder, options)
    name, lengths, whole = path.stem, batch.get("lengths"), run(session, batch)
    for by, output in outputs.items():
        if output.ndim == 4 and output.shape[1] == whole.shape[-1] != output.shape[-1]:
            output = output.transpose(0, 2, 3, 1)  # of PyTorch: channels first
        expected = output.reshape(whole.shape).astype(np.float64)
        compare(f"{name}, {'cleat' if by == 'cleat' else 'PyTorch'}", rows(whole, lengths), rows(expected, lengths))
    expected = whole.astype(np.float64)
    for count in (1, 3):  # other batch sizes
        part = {key: value[-count:] for key, value in batch.items()}
        n = None if lengths is None else part["lengths"]
        compare(f"{name}, {count} samples", rows(run(session, part), n), rows(expected[-count:], n))
    lengths_vary = [isinstance(i.shape[1], str) for i in session.get_inputs() if i.name == "tokens"]
    if any(lengths_vary):  # other lengths: each sample alone, without padding
        for b, n in enumerate(lengths):
            alone = {key: batch[key][b : b + 1] if batch[key].ndim == 1 else batch[key][b : b + 1, :n] for key in batch}
            found = rows(run(session, alone), alone["lengths"])
            compare(f"{name}, sample {b} of length {n}", found, rows(expected[b : b + 1], alone["lengths"]))


def compare_op_graph(name, folder):
    """Every element, including those past the lengths."""
    session, batch, outputs = export(name, folder)
    compare(f"operations: {name}", run(session, batch), outputs["cleat"].astype(np.float64))


# --- trained models


def compare_family(family, folder):
    trained, model = families.train(PROGRAM, DEVICE, family, folder), folder / f"{family}.onnx"
    subprocess.run([PROGRAM, "export", trained, "--format", "onnx", "--out", model], check=True)
    session = open_model(model)
    families.compare(PROGRAM, DEVICE, family, folder, trained, model, lambda batch: run(session, batch), compare)


def main():
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        for path in sorted((SOURCE / "tests/golden").glob("*.safetensors")):
            compare_golden(path, folder)
        published = (SOURCE / "tests/published", SHARED)
        for path in sorted(path for place in published for path in place.glob("*/expected.safetensors")):
            try:
                compare_golden(path.parent, folder)
            except UnknownNetwork:
                print(f"  {path.parent.name}: skipped, no model family matches the network")
        for name in subprocess.run([EXPORTER], check=True, capture_output=True, text=True).stdout.split():
            compare_op_graph(name, folder)
        compare_golden(SOURCE / "tests/golden/text.safetensors", folder, ["--external-data"])
        check((folder / "text.onnx.data").exists(), "--external-data writes no file")
        for family in families.NAMES:
            compare_family(family, folder)
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
