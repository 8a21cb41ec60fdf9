#!/usr/bin/env python3
"""Products on matrix units: instructions per mma in the main loop, and bank conflicts of the whole kernel.
  test_matrix_counts.py RUN_OP CARD        the environment names the virtual card and its caches
Each product runs in two sizes that differ in the summed dimension; the difference between the counts is the main loop."""
# ctest: quick
import csv
import os
import pathlib
import subprocess
import sys
import tempfile

# Maximum instructions per mma, the mma included: about 15 % above the measured counts (clang 19). An mma on
# an A100 does twice the work of the others. Convolutions locate the pixels of their patches in the loop.
LIMITS = {
    "t4": {"linear": 2.1, "linear_dx": 2.2, "linear_dw": 2.2},
    "v100": {"linear": 2.2, "linear_dx": 2.5, "linear_dw": 2.5},
    "a100": {"linear": 2.4, "linear_dx": 2.5, "linear_dw": 2.5, "conv": 3.5},
    "mi210": {"linear": 4.2, "linear_dx": 4.8, "linear_dw": 5.2, "conv": 5.1},
    "rx7900xt": {"linear": 6.6, "linear_dx": 7.6, "linear_dw": 8.2, "conv": 7.2},
}
SIZES = {"linear": [(256, 256, 64), (256, 256, 128)], "linear_dx": [(256, 64, 256), (256, 128, 256)],
         "linear_dw": [(64, 256, 256), (128, 256, 256)], "conv": [(1, 16, 16, 256, 3, 1), (1, 16, 32, 256, 3, 1)]}


def counters(run_op, operation, sizes, folder):
    """The row of the kernel for matrix units. With four compute units, four tiles are not split."""
    report = pathlib.Path(folder, "report")
    report.unlink(missing_ok=True)
    done = subprocess.run([run_op, "f16", "mma_large", operation, *map(str, sizes)], capture_output=True, text=True,
                          env={**os.environ, "CLEAT_VIRTUAL_CARD_REPORT": str(report), "CLEAT_VIRTUAL_CARD_UNITS": "4"})
    assert done.returncode == 0, done.stdout + done.stderr
    with open(report, newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if "_mma" in row["kernel"]]
    assert len(rows) == 1, f"{operation}: {len(rows)} kernels for matrix units"
    return {name: int(text) for name, text in rows[0].items() if text.isdigit()}


def check_conflicts(name, row):
    """An ldmatrix of four blocks takes four wavefronts."""
    waves = (("matrix_load_waves", 4 * row["matrix_loads"]), ("shared_load_waves", row["shared_load_least"]),
             ("shared_store_waves", row["shared_store_least"]))
    for kind, least in waves:
        assert row[kind] == least, f"{name}: {row[kind]} {kind}, {least} without bank conflicts"


def main():
    run_op, card = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        for operation, limit in LIMITS[card].items():
            short, long = (counters(run_op, operation, sizes, folder) for sizes in SIZES[operation])
            name = f"{operation} on {card}"
            # On these the layout of the sums causes conflicts; on the last one transposed elements do as well.
            if card not in ("v100", "mi210", "rx7900xt"):
                check_conflicts(name, long)
            assert long["groups"] == short["groups"] and long["mma"] > short["mma"], f"{name}: the sizes are not comparable"
            each = (long["instructions"] - short["instructions"]) / (long["mma"] - short["mma"])
            print(f"{name}: {each:.2f} instructions per mma")
            assert each <= limit, f"{name}: {each:.2f} instructions per mma, more than {limit}"


if __name__ == "__main__":
    main()
