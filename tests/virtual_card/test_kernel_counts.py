#!/usr/bin/env python3
"""Test of tools/kernel_counts.py: known counts, and listings of loops.
  test_kernel_counts.py TOOL BUILD CARD    the environment names the virtual card's caches"""
# ctest: quick
import importlib.util
import subprocess
import sys

LISTING = """
\t.section\t.text.other,"ax",@progbits
        /*0000*/                   FFMA R1, R2, R3, R4 ;
\t.section\t.text.kernel,"ax",@progbits
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/                   IADD3 R1, R1, 0x1, RZ ;
.L_x_1:
        /*0020*/                   FFMA R1, R2, R3, R4 ;
        /*0030*/              @!P1 FFMA R1, R2, R3, R4 ;
        /*0040*/                   LDS.128 R1, [R2] ;
        /*0050*/               @P0 BRA `(.L_x_1) ;
        /*0060*/                   FFMA R1, R2, R3, R4 ;
        /*0070*/               @P0 BRA `(.L_x_0) ;
        /*0080*/                   BRA `(.L_x_2) ;
.L_x_2:
        /*0090*/                   EXIT ;
"""


def load(path):
    spec = importlib.util.spec_from_file_location("kernel_counts", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_listing(tool):
    body = tool.function_of(LISTING, "kernel")
    assert tool.sass_loops(body)[0] == [(1, 7), (2, 5)], tool.sass_loops(body)
    assert tool.sass_main_loop(body, "t4") == (2, 4, 0, 4), tool.sass_main_loop(body, "t4")
    assert tool.sass_main_loop(body, "h100") == (2, 4, 0, 2)
    assert tool.sass_main_loop(tool.function_of(LISTING, "other"), "t4") is None
    assert tool.useful_slots("HMMA.16816.F32", "a100") == 8 and tool.useful_slots("IMAD", "t4") == 0


def table(path, build, *words):
    """The rows of the tool's table, as lists of words."""
    done = subprocess.run([sys.executable, path, "--build", build, *words], capture_output=True, text=True)
    if done.returncode == 77:
        print(done.stderr)
        sys.exit(77)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def check_counts(path, build):
    words = ("--variant", "gpu", "--card", "t4", "linear:256,256,32")
    head, row = table(path, build, *words)
    assert head[:2] == ["workload", "kernel"] and row[:2] == ["linear:256,256,32", "linear_gpu"], row
    assert table(path, build, *words)[1] == row, "counts differ between runs"


def check_products(tool, path, build, folder):
    """256 x 256 elements fill every tile: 256 * 256 * 32 / 32 multiply-adds of warps, and the same number again in the main loop."""
    table(path, build, "--variant", "gpu", "--card", "t4", "--keep", folder, "linear:256,256,32")
    runs = [tool.read_report(f"{folder}/linear-256x256x{k}.tsv") for k in (32, 64)]
    key = next(key for key in runs[0] if key[0] == "linear_gpu")
    loop = tool.difference(runs, key)
    assert runs[0][key]["fma"] == loop["fma"] == 256 * 256 * 32 / 32, (runs[0][key]["fma"], loop["fma"])
    assert sum(loop[kind] for kind in tool.KINDS) + loop["fma"] == loop["instructions"], "kinds do not add up"


def check_amd_slots(tool):
    """Shares of ten slots: gfx90a's matrix unit works beside the vector unit, gfx1100's is part of the vector unit."""
    loop = {"mma": 1, "fma": 0, "vectors": 6, "scalars": 3, "instructions": 20}
    assert tool.slots_of(loop, "mi210") == tool.issued_slots(loop, "mi210") == 8
    assert (tool.slots_of(loop, "rx7900xt"), tool.issued_slots(loop, "rx7900xt")) == (32, 37)
    loop = {"mma": 0, "fma": 12, "vectors": 7, "scalars": 9, "instructions": 20}
    assert (tool.slots_of(loop, "mi210"), tool.issued_slots(loop, "mi210")) == (12, 9)


def check_amd(tool, path, build, card):
    """Products with full tiles: multiply-adds of waves, and products of 16 x 16 x 16."""
    import pathlib
    import tempfile
    wave = 64 if card == "mi210" else 32
    with tempfile.TemporaryDirectory() as folder:
        dots = card == "rx6800xt"  # no mma, two products each
        for variant, storage in (("gpu_large", "f32"), ("mma_large", "f16")):
            head, row = table(path, build, "--variant", variant, "--card", card, "--storage", storage, "--keep", folder,
                              "linear:256,256,64")
            assert head[-3:] == ["VGPR", "SGPR", "waves"], head
            vgpr, sgpr, waves = row[-3:]
            assert 16 <= int(vgpr) <= 512 and 16 <= int(sgpr) <= 106 and 1 <= int(waves) <= 16, row
            kernel = tool.read_report(pathlib.Path(folder, "linear-256x256x64.tsv"))
            kernel = next(row for (name, _), row in kernel.items() if name.startswith("linear_"))
            if storage == "f32":
                assert kernel["fma"] == 256 * 256 * 64 / wave, kernel["fma"]
            elif dots:
                assert kernel["fma"] == 256 * 256 * 64 / wave / 2, kernel["fma"]
            else:
                assert kernel["mma"] == 256 * 256 * 64 / 4096, kernel["mma"]
            assert 0 < kernel["scalars"] < kernel["vectors"] < kernel["instructions"], kernel
            # The remaining instructions invalidate caches, at most once per barrier.
            memory = sum(kernel[f"{space}_{way}s"] for space in ("global", "shared") for way in ("load", "store"))
            rest = kernel["instructions"] - kernel["vectors"] - kernel["scalars"] - memory
            assert 0 <= rest <= kernel["barriers"], kernel


def main():
    import tempfile
    path, build, card = sys.argv[1:4]
    tool = load(path)
    if card != "t4":
        check_amd_slots(tool)
        check_amd(tool, path, build, card)
        print("kernel_counts: ok")
        return
    check_listing(tool)
    check_counts(path, build)
    with tempfile.TemporaryDirectory() as folder:
        check_products(tool, path, build, folder)
    assert subprocess.run([sys.executable, path, "nothing:1"], capture_output=True).returncode == 2
    print("kernel_counts: ok")


if __name__ == "__main__":
    main()
