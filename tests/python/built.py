"""The module of this source tree with the library and the program of a build: sys.argv is BUILD SOURCE_DIR, imported before
cleat. Exits with 77 without one of PACKAGES or without a device."""
import ctypes
import importlib
import os
import pathlib
import sys
import tempfile
import unittest

BUILD, SOURCE = map(pathlib.Path, sys.argv[1:3])
SHARED = pathlib.Path(os.environ.get("CLEAT_SHARED", SOURCE / ".." / "shared"))
PACKAGES = ("numpy", "pandas", "sklearn")
for package in PACKAGES:
    try:
        importlib.import_module(package)
    except ImportError as missing:
        print(f"skipped: {missing}")
        sys.exit(77)

sys.path.insert(0, str(SOURCE / "tools/python"))
os.environ["PATH"] = f"{BUILD}:{os.environ['PATH']}"
os.environ["LD_LIBRARY_PATH"] = str(BUILD)  # for worker processes
ctypes.CDLL(str(BUILD / "libcleat.so.0.2"))  # found by its name from now on

import cleat  # noqa: E402

try:
    cleat.devices()
except cleat.Error as error:
    print(f"skipped: {error}")
    sys.exit(77)

QUICK = {"train.epochs": 1, "run.self_check": "never", "loader.num_workers": 1,
         "run.device": os.environ.get("CLEAT_TEST_DEVICE", "auto")}  # fmt: skip
TEXT = {**QUICK, "model.d_model": 16, "model.d_ff": 16, "model.layers": 1, "model.heads": 2, "train.warmup_steps": 0,
        "data.vocabulary_size": 200}  # fmt: skip
IMAGE = {**QUICK, "model.width": 8, "data.image_size": 16, "train.effective_batch_size": 8, "train.warmup_steps": 0}
SERIES = {**QUICK, "model.hidden": 8, "data.lookback": 12, "data.horizon": 4, "data.season": "none", "data.anchor": "last"}


class Case(unittest.TestCase):
    """A test in an empty folder that has the shipped profiles."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        os.symlink(SOURCE / "profiles", "profiles")

    def refuses(self, text, function, *arguments, error=cleat.Error, **options):
        with self.assertRaisesRegex(error, text):
            function(*arguments, **options)

    def real(self, path):
        """A file of the shared data."""
        if not (SHARED / "data" / path).is_file():
            self.skipTest(f"{SHARED}/data/{path} is missing")
        return SHARED / "data" / path


def main():
    print(", ".join(f"{name} {sys.modules[name].__version__}" for name in PACKAGES))
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
