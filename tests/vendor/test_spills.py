#!/usr/bin/env python3
"""Products, attention and recurrences of the workloads W1 to W9 keep their values in registers on NVIDIA's cards.
  test_spills.py TOOLS WORKLOAD_PROGRAMS CLANG LIBCLC PTX_FEATURE NATIVE
  test_spills.py TOOLS WORKLOAD_PROGRAMS OLD_CLANG

Clang, in place of NVIDIA's compiler, and ptxas compile every program for its card. A kernel fails if ptxas spills registers
or if it has a stack frame, which holds an array, such as the sums, because a loop was not unrolled.
Two groups of the largest f32 tile fit on a compute unit: 128 registers for each of 256 work-items, on LARGE_SMS.
Skipped (77) without ptxas. SPILLS_KEEP=FOLDER keeps programs, PTX and a table of registers there.

The driver's compiler is older than the newest clang and prints warnings that clang 19 lacks. The second form
compiles with an old clang and fails at a front-end warning or an array in memory. It does not link libclc, because an old
clang cannot read that of clang 19, so calls with vectors take up to 16 bytes of memory each, which are allowed."""
# ctest: slow
import collections
import concurrent.futures
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# Card file: sm. On sm_80 and sm_90 ptxas 12.9 spills a few bytes in a few kernels, mostly around the main loop.
CARDS = {"t4": 75}
ARRAY_CARDS = {"t4": 75, "a100_40": 80}
LARGE_CARDS = ("t4", "a100_40", "h100")
LARGE_SMS = (75, 80, 86, 89, 90)
LARGE = re.compile(r"linear_gpu .*-DWG=256 |conv_gpu .*-DWG=256 .*-DCONV_KIND=0 ")  # the gradients of convolutions take 144 registers
VECTOR = 16  # bytes passed to a libclc function by address
KERNELS = re.compile(r"(linear|conv)_(gpu|mma)$|attention_.*_(forward|gradients|dq|keys)$|lstm_mma_")

# A kernel that must be reported: 160 values in 40 registers.
SPILLING = """.version 7.5
.target sm_{sm}
.address_size 64
.visible .entry spilling(.param .u64 x)
.maxnreg 40
{{
.reg .f32 %f<161>;
.reg .u64 %r;
ld.param.u64 %r, [x];
{loads}bar.sync 0;
{stores}ret;
}}
"""


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def fail(text):
    print(text)
    sys.exit(1)


def assemble(ptxas, sm, ptx, kernel):
    """Registers, stack frame bytes and spill bytes reported by ptxas."""
    entry = ["--entry", kernel] if kernel else []
    done = run([ptxas, "-v", f"-arch=sm_{sm}", *entry, "-o", os.devnull, str(ptx)])
    found = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\s.*Used (\d+) registers", done.stderr, re.S)
    if done.returncode or not found:
        fail(f"ptxas {ptx}: {done.stderr.strip()[-1000:]}")
    frame, stores, loads, registers = map(int, found.groups())
    return registers, frame, stores + loads


def check_itself(ptxas, folder):
    values = range(160)
    text = SPILLING.format(sm=75, loads="".join(f"ld.global.f32 %f{i}, [%r+{4 * i}];\n" for i in values),
                           stores="".join(f"st.global.f32 [%r+{4 * i}], %f{159 - i};\n" for i in values))
    (folder / "spilling.ptx").write_text(text)
    registers, frame, spills = assemble(ptxas, 75, folder / "spilling.ptx", None)
    if not frame or not spills:
        fail(f"a kernel that must spill is not reported: {registers} registers, frame {frame}, spills {spills}")


def add_group_size(text, kernel, size):
    """Adds reqd_work_group_size, which clang omits and which limits the registers that ptxas may use per work-item."""
    head, name, rest = text.partition(f".entry {kernel}(")
    before, brace, body = rest.partition("\n{")
    return f"{head}{name}{before}\n.reqntid {size}, 1, 1{brace}{body}" if ".reqntid" not in before else text


def compile_program(clang, libclc, feature, native, source, options, sm, kernel):
    ptx = source.with_suffix(".ptx")
    done = run([clang, "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-target", "nvptx64-nvidia-nvcl", "-Xclang", "-target-cpu",
                "-Xclang", f"sm_{sm}", "-Xclang", "-target-feature", "-Xclang", f"+{feature}", "-O3", "-w", "-mllvm", "-inline-threshold=100000000",
                "-Xclang", "-mlink-builtin-bitcode", "-Xclang", libclc, "-include", native, "-D__NV_CL_C_VERSION=120", *options, "-S", "-o", ptx, source])
    if done.returncode:
        fail(f"clang {source} {' '.join(options)}: {done.stderr[-1000:]}")
    sizes = dict(word[2:].split("=") for word in options if re.match("-D(WG|THREADS)=", word))
    size = sizes.get("THREADS", sizes["WG"])
    ptx.write_text(add_group_size(ptx.read_text(), kernel, size))
    return ptx


def check_programs(arguments, ptxas, folder):
    lister, *compiler = arguments
    done = run([lister, str(folder), *CARDS])
    if done.returncode:
        fail(done.stderr)
    rows = [line.split("\t") for line in (folder / "programs.tsv").read_text().splitlines()]
    counts, spilling = collections.Counter(), []
    with open(folder / "registers.tsv", "w") as table:
        for number, card, kernel, options, workload in rows:
            if not KERNELS.search(kernel):
                continue
            ptx = compile_program(*compiler, folder / f"{number}.cl", options.split(), CARDS[card], kernel)
            registers, frame, spills = assemble(ptxas, CARDS[card], ptx, kernel)
            print(card, kernel, registers, frame, spills, options, sep="\t", file=table)
            counts[card, kernel] += 1
            if frame or spills:
                spilling.append(f"{card} {kernel} ({workload}): {registers} registers, frame of {frame} bytes, {spills} bytes spilled: {options}")
    for (card, kernel), count in sorted(counts.items()):
        print(f"{card}: {count} of {kernel}")
    for card in CARDS:
        for kernel in ("linear_gpu", "conv_gpu", "linear_mma", "conv_mma"):
            if not counts[card, kernel]:
                fail(f"no program of {kernel} for {card}")
    if spilling:
        fail("\n".join(spilling) + f"\n{len(spilling)} of {sum(counts.values())} kernels do not fit in registers")
    print(f"{sum(counts.values())} kernels without spills")


def check_large(arguments, kernel_counts, folder):
    """Registers of the largest f32 tiles. Later cards run code compiled for sm_75, so one compilation suffices."""
    lister, *compiler = arguments
    done = run([lister, str(folder), *LARGE_CARDS])
    if done.returncode:
        fail(done.stderr)
    rows = [line.split("\t") for line in (folder / "programs.tsv").read_text().splitlines()]
    programs = {f"{kernel} {options}": (folder / f"{number}.cl", kernel, options) for number, card, kernel, options, workload in rows}
    programs = [program for text, program in programs.items() if LARGE.match(text)]
    ptxas = {sm: kernel_counts.program("ptxas", kernel_counts.has_arch(sm)) for sm in LARGE_SMS}
    bad = []
    for source, kernel, options in programs:
        text = compile_program(*compiler, source, options.split(), 75, kernel).read_text()
        for sm in filter(ptxas.get, LARGE_SMS):
            ptx = source.with_suffix(f".{sm}.ptx")
            ptx.write_text(text.replace(".target sm_75", f".target sm_{sm}").replace(".version 7.5", ".version 7.8"))
            registers, frame, spills = assemble(ptxas[sm], sm, ptx, kernel)
            if registers > 128 or frame or spills:
                bad.append(f"sm_{sm} {kernel}: {registers} registers, frame of {frame} bytes, {spills} bytes spilled: {options}")
    if not programs or bad:
        fail("\n".join(bad) + f"\n{len(bad)} of {len(programs)} programs need more than 128 registers on a card")
    print(f"{len(programs)} programs of 256 work-items in 128 registers; no ptxas for {[sm for sm in LARGE_SMS if not ptxas[sm]]}")


# A kernel that must be reported: a runtime value indexes an array.
INDEXED = """__kernel void indexed(__global float *x, int n) {
    float y[8];
    for (int i = 0; i < 8; ++i) y[i] = x[i];
    y[n && 2] = 1.0f;
    for (int i = 0; i < n; ++i) y[(i + n) % 8] += x[i];
    for (int i = 0; i < 8; ++i) x[i] = y[i];
}
"""


def old_compile(clang, source, options, sm):
    """Front-end warnings, and sizes of arrays in memory."""
    done = run([clang, "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-target", "nvptx64-nvidia-nvcl", "-Xclang", "-target-cpu",
                "-Xclang", f"sm_{sm}", "-Xclang", "-target-feature", "-Xclang", "+ptx75", "-O3", "-D__NV_CL_C_VERSION=120", *options, "-S", "-o", "-", source])
    if done.returncode:
        fail(f"{clang} {source} {' '.join(options)}: {done.stderr[-1000:]}")
    warnings = [line for line in done.stderr.splitlines() if "warning:" in line and "-Wpass-failed" not in line]
    return warnings, [int(size) for size in re.findall(r"__local_depot\d+\[(\d+)\]", done.stdout)]


def check_arrays(lister, clang, folder):
    (folder / "indexed.cl").write_text(INDEXED)
    warnings, arrays = old_compile(clang, folder / "indexed.cl", [], 75)
    if not warnings or arrays != [32]:
        fail(f"a kernel with an array in memory and a warning is not reported: {arrays}, {warnings}")
    done = run([lister, str(folder), *ARRAY_CARDS])
    if done.returncode:
        fail(done.stderr)
    rows = [line.split("\t") for line in (folder / "programs.tsv").read_text().splitlines()]
    programs = {(card, options): (folder / f"{number}.cl", kernel, workload) for number, card, kernel, options, workload in rows if KERNELS.search(kernel)}

    def findings(program):
        (card, options), (source, kernel, workload) = program
        warnings, arrays = old_compile(clang, source, options.split(), ARRAY_CARDS[card])
        arrays = [f"{size} bytes in memory: {options}" for size in arrays if size > VECTOR]
        return [f"{card} {kernel} ({workload}): {text}" for text in warnings + arrays]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        bad = [text for texts in pool.map(findings, programs.items()) for text in texts]
    if not programs or bad:
        fail("\n".join(bad) + f"\n{len(bad)} findings in {len(programs)} programs")
    print(f"{len(programs)} programs, no array in memory, no warning")


def main():
    tools, *arguments = sys.argv[1:]
    if len(arguments) == 2:
        with tempfile.TemporaryDirectory() as temporary:
            return check_arrays(*arguments, pathlib.Path(temporary))
    specification = importlib.util.spec_from_file_location("kernel_counts", pathlib.Path(tools) / "kernel_counts.py")
    kernel_counts = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(kernel_counts)
    ptxas = kernel_counts.program("ptxas", kernel_counts.has_arch(min(CARDS.values())))
    if not ptxas:
        print("skipped: no ptxas for sm_75")
        sys.exit(77)
    keep = os.environ.get("SPILLS_KEEP")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(keep or temporary)
        folder.mkdir(exist_ok=True)
        check_itself(ptxas, folder)
        check_programs(arguments, ptxas, folder)
        check_large(arguments, kernel_counts, folder)


main()
