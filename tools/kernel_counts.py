#!/usr/bin/env python3
"""What kernels issue, counted on a virtual card or in a listing: which share of a card's peak their instructions allow.

  tools/kernel_counts.py [--card t4] [--storage f32] WORKLOAD...

A WORKLOAD is an operation with its sizes, or a group of them:
  linear:M,N,K  linear_dx:M,N,K  linear_dw:M,N,K     y [M, N] = x [M, K] weight^T, and the gradients
  linear_dw_bias:M,N,K                               the gradients of the weight and of a bias
  attention:BATCH,LENGTH,HEADS,WIDTH                 with its gradients
  lstm:BATCH,LENGTH,HIDDEN                           with the gradient of the recurrent weight; the main loop is a step
  conv:BATCH,HEIGHT,CHANNELS,FEATURES,KERNEL,STRIDE  also conv_dx, conv_dw
  w1       the products and the attention of a layer of W1 (width 256, 4 heads, 512 of 1024 rows); takes minutes
  small    one tile: what changes when a kernel changes; takes seconds
It needs a build with -DCLEAT_VIRTUAL_CARDS=ON (`ninja -C build virtual_card run_op`), and the clang that CMake found.
Registers, spills and SASS need ptxas and nvdisasm (PTXAS=, NVDISASM=, PATH, /usr/local/cuda/bin, or the packages triton
or nvidia-cuda-nvdisasm of this Python); missing ones are reported, and their columns show "-".

Every row is a kernel with one set of options. Columns:
  mix       useful instructions (fma, or mma where there are any) of all that were issued, whole launch
  loop      the same in the main loop alone: the workload is run in two sizes that differ in the summed dimension only,
            and the counts are subtracted (attention: three lengths, second differences)
  per mma   instructions of the main loop for each mma, that one included
  peak      share of the card's peak that the issue slots of the main loop allow: slots that the useful instructions
            occupy / slots issued, at most 100 %. A scheduler issues one warp instruction a clock. An FMA occupies
            32 / (f32 lanes of a scheduler) slots: 2 on sm_70, 75, 80 (16 lanes), 1 on sm_90 (32). An mma occupies its
            m n k / (multiply-adds of the matrix unit of a scheduler a clock: 128 on sm_70 and 75, 256 on sm_80, 512 on
            sm_90), as NVIDIA's data sheets give them.
  shared    share of peak that shared memory allows: an SM with its four schedulers serves one wavefront a clock
  conflict  wavefronts of shared memory / the least without bank conflicts
  sectors   32-byte sectors of global requests / the least for their bytes
  barriers  a warp, a launch;  diverge: divergent branches of all branches
  regs      registers of a work-item by ptxas, "!N": N bytes spilled;  groups: work-groups an SM holds at once (registers,
            shared memory, warps), and warps
  SASS      FFMA or HMMA of all instructions in the innermost loop that has most of them, in ptxas' code;
            then as `per mma` and `peak`
AMD's cards run the code that clang writes for them, so no other listing is needed. s_waitcnt, s_nop and the like are
not counted. Their columns:
  peak      a SIMD issues one vector and one scalar instruction a slot (gfx90a: four clocks, others: one), to waves that it
            chooses. An FMA is one slot (gfx1100: half a slot, as pairs). An mma of 16 x 16 x 16 occupies the matrix unit of
            gfx90a for 8 slots, while other instructions issue, and the vector unit of gfx1100 for 32. Packed and paired
            FMAs count twice, so that `mix` may exceed 100 %. gfx1030 has no mma: v_dot2 counts as an FMA.
  shared    as above; the four SIMDs of gfx90a, the two of the others share LDS, which serves one wavefront a clock
  LDS       instructions of LDS (loads, stores) for each useful one;  wide: 16 bytes a lane, of its loads
  VGPR      of a lane, AGPRs included, "!N": N bytes of scratch;  SGPR;  waves: that a SIMD holds, by clang
There is no virtual card of Intel's (arc_a770, max1550): the listing of ocloc and iga64 is counted, and nothing runs, so that
a workload is an operation without sizes (linear, conv_dx, attention:WIDTH), in its largest tile. It needs `ninja -C build
list_programs` and the packages intel-opencl-icd and libigc-tools. Columns:
  loop      dpas, or f32 mad, of all instructions of the innermost loop that has most of them (sync.nop left out)
  peak      clocks of the useful instructions / clocks of the pipe that is busiest (`pipe`). An engine issues to its pipes for
            floats, integers, matrices and messages at once, to threads that it chooses; a pipe takes 8 lanes a clock
            (arc_a770) or 16 (max1550), a quarter of that for `math`; a dpas occupies 16 or 8 clocks
  SLM       messages of SLM (loads, stores) for each useful instruction;  wide: of its loads, those that bring 16 bytes a lane
            or a block
  GRF       registers of a thread, "!N": N spilled;  SIMD: lanes;  scratch: bytes of a thread
The clang of the virtual card stands in for NVIDIA's compiler, and counts of PTX include what ptxas removes (mov): if
the SASS columns differ, they are nearer to the card. Rows with less than 1 % of a workload's instructions are left out.

  --build DIR      (build)       --variant NAME   a kernel variant, where the operation has it (gpu, clblast, mma_large)
  --kinds          also instructions of the main loop by kind: per 100 useful ones
  --markdown       a table for a README, without options
  --update FILE    makes the tables of a README again: each stands between a line <!-- kernel_counts.py OPTION... -->,
                   whose options it uses, and a line <!-- end -->
  --keep DIR       keeps counters, PTX and SASS there
Exit codes: 0, 1 a run failed, 2 wrong usage, 77 no clang or no virtual card."""
import argparse
import csv
import glob
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import intel_listing

# sm, slots of an FMA, multiply-adds of a scheduler's matrix unit a clock, warps, groups and KiB of shared memory of an SM
CARDS = {"t4": (75, 2, 128, 32, 16, 64), "v100": (70, 2, 128, 64, 32, 96),
         "a100": (80, 2, 256, 64, 32, 164), "h100": (90, 1, 512, 64, 32, 228)}
SCHEDULERS, REGISTERS = 4, 65536  # of an SM
# AMD: slots of an FMA and of an mma; whether the matrix unit works beside the vector unit; slots in which LDS serves a wavefront
AMD = {"mi210": (1, 8, True, 1), "rx7900xt": (0.5, 32, False, 2), "rx6800xt": (1, 1, False, 2)}
# The index of the dimension that the kernel sums over, and in how many sizes to run.
SUMMED = {"linear": (2, 2), "linear_dx": (1, 2), "linear_dw": (0, 2), "linear_dw_bias": (0, 2), "attention": (1, 3), "lstm": (1, 2),
          "conv": (2, 2), "conv_dx": (3, 2), "conv_dw": (0, 2)}
LAYER = ["768,256", "256,256", "1024,256", "256,1024"]  # N, K of the products of a layer of W1
GROUPS = {"w1": [f"{op}:1024,{nk}" for op in ("linear", "linear_dx", "linear_dw") for nk in LAYER] + ["attention:1,512,4,64"],
          "small": ["linear:128,128,128", "linear_dx:128,128,128", "linear_dw:128,128,128", "attention:1,256,1,64"]}
KINDS = ("floats", "integers", "moves", "compares", "converts", "memory", "flow")
TEXT = {"card", "kernel", "options"}


def stop(code, message):
    print(f"kernel_counts: {message}", file=sys.stderr)
    sys.exit(code)


# --- tools of NVIDIA

def candidates(name):
    """Paths where that program may be."""
    yield os.environ.get(name.upper())
    yield shutil.which(name)
    yield f"/usr/local/cuda/bin/{name}"
    for package in ("triton", "nvidia"):
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            yield from glob.glob(f"{folder}/**/bin/{name}", recursive=True)


def program(name, works):
    """The first of them that works, or None."""
    for path in candidates(name):
        if path and os.access(path, os.X_OK) and works(path):
            return path
    return None


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def has_arch(sm):
    """Releases of ptxas drop old cards, but still list them in their help."""
    sample = f".version 6.4\n.target sm_{sm}\n.address_size 64\n"
    return lambda path: run([path, f"-arch=sm_{sm}", "-o", os.devnull, "-"], input=sample).returncode == 0


# --- counters

def read_report(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for number, row in enumerate(rows, 1):
        for name in row:
            if name not in TEXT:
                row[name] = float(row[name])
        row["ptx"] = f"{path}.ptx/{number}.ptx"
    return {(row["kernel"], row["options"]): row for row in rows}


def count(arguments, operation, sizes, folder):
    """The counters of one run: {(kernel, options): row}."""
    name = f"{operation}-{'x'.join(map(str, sizes))}"
    report = folder / f"{name}.tsv"
    pathlib.Path(f"{report}.ptx").mkdir(exist_ok=True)
    build = pathlib.Path(arguments.build).resolve()
    runner = next(iter(build.rglob("run_op")), None)
    card = build / "virtual_card"
    if not runner or not (card / "libcleat_virtual_card.so").exists():
        stop(77, f"no virtual card in {build} (cmake -B {build} -DCLEAT_VIRTUAL_CARDS=ON && ninja -C {build} virtual_card run_op)")
    environment = dict(os.environ, OCL_ICD_VENDORS=f"{card}/", CLEAT_VIRTUAL_CARD=arguments.card,
                       CLEAT_VIRTUAL_CARD_REPORT=str(report), CLEAT_VIRTUAL_CARD_STRICT="1",
                       CLEAT_VIRTUAL_CARD_RACES="0")
    for variable in ("CLEAT_CACHE_DIR", "CLEAT_VIRTUAL_CARD_CACHE"):  # compiled programs are kept
        environment.setdefault(variable, str(build / "kernel_counts" / variable.lower()))
        os.makedirs(environment[variable], exist_ok=True)
    done = run([runner, arguments.storage, arguments.variant, operation, *map(str, sizes)], env=environment)
    if done.returncode:
        no_compiler = "COMPILER_NOT_AVAILABLE" in done.stderr or "no compiler" in done.stderr
        stop(77 if no_compiler else 1, f"{name}: {done.stderr.strip()[-2000:]}")
    return read_report(report)


def difference(runs, key):
    """The main loop of a kernel: the counters that grow with the summed dimension; None where it ran once only."""
    if any(key not in run for run in runs):
        return None
    rows = [run[key] for run in runs]
    signs = (-1, 1) if len(rows) == 2 else (1, -2, 1)
    loop = {name: sum(sign * row[name] for sign, row in zip(signs, rows))
            for name in rows[0] if isinstance(rows[0][name], float)}
    # With more work-groups, such as more parts of a split k, a difference contains more than the loop.
    groups = [row["groups"] for row in rows]
    loop["same_groups"] = len(set(groups)) == 1 if len(rows) == 2 else sum(map(lambda s, g: s * g, signs, groups)) == 0
    return loop if loop["instructions"] > 0 else None


# --- SASS

def useful_slots(opcode, card):
    """Issue slots that a useful instruction of SASS occupies at the card's peak; 0: it is not useful."""
    _, fma_slots, products, *_ = CARDS[card]
    if opcode.startswith("FFMA"):
        return fma_slots
    shape = re.match(r"HMMA\.(884|1688|16816)", opcode)
    of = {"884": 4 * 8 * 8 * 4 // 4, "1688": 16 * 8 * 8, "16816": 16 * 8 * 16}  # 884 is one of four steps
    return of[shape[1]] / products if shape else 0


def sass_loops(text):
    """[(first, last)] of every loop, and the opcodes, of one function of nvdisasm's listing."""
    opcodes, labels, branches = [], {}, []
    for line in text.splitlines():
        label = re.match(r"\s*(\.L_x?_?\w+):", line)
        if label:
            labels[label[1]] = len(opcodes)
        found = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*)", line)
        if found:
            target = re.search(r"`\((\.L_\w+)\)", found[2])
            if found[1].startswith("BRA") and target:
                branches.append((len(opcodes), target[1]))
            opcodes.append(found[1])
    loops = {(labels[target], at) for at, target in branches if target in labels and labels[target] <= at}
    return sorted(loops), opcodes


def sass_main_loop(text, card):
    """The innermost loop with most useful instructions: (useful, all, mma, slots), or None."""
    loops, opcodes = sass_loops(text)
    wanted = "HMMA" if any(opcode.startswith("HMMA") for opcode in opcodes) else "FFMA"
    counted = {(first, last): sum(opcode.startswith(wanted) for opcode in opcodes[first:last + 1])
               for first, last in loops}
    inner = [(first, last) for first, last in loops if counted[first, last] and not any(
        counted[f, l] for f, l in loops if first <= f and l <= last and (f, l) != (first, last))]
    if not inner:
        return None
    first, last = max(inner, key=counted.get)
    body = [opcode for opcode in opcodes[first:last + 1] if not opcode.startswith("NOP")]
    useful = [opcode for opcode in body if opcode.startswith(wanted)]
    return (len(useful), len(body), len(useful) if wanted == "HMMA" else 0,
            sum(useful_slots(opcode, card) for opcode in useful))


def function_of(listing, kernel):
    """The part of a listing that is the kernel's."""
    at = re.search(rf"^\s*\.section\s+\.text\.{kernel},", listing, re.M)
    if not at:
        return ""
    end = re.search(r"^\s*\.section\s", listing[at.end():], re.M)
    return listing[at.end():at.end() + end.start()] if end else listing[at.end():]


def assemble(row, card, tools):
    """Registers, spilled bytes and shared bytes by ptxas, and the loop in SASS, into the row."""
    ptxas, nvdisasm = tools
    cubin = row["ptx"].replace(".ptx/", ".ptx/cubin-")
    done = run([ptxas, "-v", f"-arch=sm_{CARDS[card][0]}", row["ptx"], "-o", cubin])
    if done.returncode:
        stop(1, f"ptxas: {done.stderr.strip()[-1000:]}")
    about = re.search(rf"Compiling entry function '{row['kernel']}'.*?(?=Compiling entry|\Z)", done.stderr, re.S)
    about = about[0] if about else ""
    for name, pattern in (("registers", r"Used (\d+) registers"), ("spilled", r"(\d+) bytes spill stores"),
                          ("shared_bytes", r"(\d+) bytes smem")):
        found = re.search(pattern, about)
        row[name] = int(found[1]) if found else 0
    if nvdisasm:
        listing = run([nvdisasm, "-c", cubin])
        pathlib.Path(cubin.replace("cubin-", "sass-")).write_text(listing.stdout)
        if listing.returncode:
            print(f"kernel_counts: {(listing.stderr or 'nvdisasm failed').strip()}", file=sys.stderr)
        row["sass"] = sass_main_loop(function_of(listing.stdout, row["kernel"]), card)


def occupancy(row, card):
    """Work-groups and warps that an SM holds."""
    _, _, _, warps, groups, kib = CARDS[card]
    own = -(-int(row["work_items"]) // 32)
    registers = -(-row["registers"] * 32 // 256) * 256 * own  # of a group; a warp gets them in units of 256
    shared = row["shared_bytes"] + (1024 if CARDS[card][0] >= 80 else 0)
    fit = min(groups, warps // own, REGISTERS // max(registers, 1), kib * 1024 // max(shared, 1))
    return fit, fit * own


# --- the table

def share(part, whole):
    return f"{100 * part / whole:.0f} %" if whole else "-"


def ratio(part, least):
    return f"{part / least:.2f}" if least else "-"


def useful_of(counters):
    return counters["mma"] if counters["mma"] else counters["fma"]


def slots_of(counters, card):
    if card in AMD:
        return counters["mma"] * AMD[card][1] if counters["mma"] else counters["fma"] * AMD[card][0]
    _, fma_slots, products, *_ = CARDS[card]
    return counters["mma_products"] / products if counters["mma"] else counters["fma"] * fma_slots


def issued_slots(counters, card):
    """Slots in which the instructions can be issued, at the least."""
    if card not in AMD:
        return counters["instructions"]
    _, mma_slots, beside, _ = AMD[card]
    matrix = counters["mma"] * mma_slots
    vectors = max(counters["vectors"], matrix) if beside else counters["vectors"] - counters["mma"] + matrix
    return max(vectors, counters["scalars"])


def short_options(options):
    """The options that distinguish the kernels of one file."""
    words = re.findall(r"-D(\w+=\w+|STORAGE_\w+)", options)
    usual = ("WG=", "VEC=", "ALIGNED", "MATRIX_UNIT", "STORAGE_F32", "SUB_GROUP")
    return " ".join(word for word in words if not word.startswith(usual))[:60]


def cells(workload, row, loop, arguments):
    card = arguments.card
    waves = [loop or row][0]
    wave_count = waves["shared_load_waves"] + waves["shared_store_waves"] + waves["matrix_load_waves"]
    main = loop or row
    out = {"workload": workload, "kernel": row["kernel"], "options": short_options(row["options"]),
           "mix": share(useful_of(row), row["instructions"])}
    mark = "" if loop is None or loop["same_groups"] else "*"
    out["loop"] = share(useful_of(loop), loop["instructions"]) + mark if loop else "-"
    out["per mma"] = f"{main['instructions'] / main['mma']:.1f}" if main["mma"] else "-"
    slots = slots_of(main, card)
    issued = issued_slots(main, card)
    out["peak"] = share(min(slots, issued), issued) if slots else "-"
    served = (AMD[card][3] if card in AMD else SCHEDULERS) * wave_count
    out["shared"] = share(min(slots, served), served) if slots and served else "-"
    out["conflict"] = ratio(main["shared_load_waves"] + main["shared_store_waves"],
                            main["shared_load_least"] + main["shared_store_least"])
    out["sectors"] = ratio(row["global_load_sectors"] + row["global_store_sectors"],
                           row["global_load_least"] + row["global_store_least"])
    warps = row["groups"] * -(-row["work_items"] // 32)
    out["barriers"] = f"{row['barriers'] / warps:.0f}"
    out["diverge"] = share(row["divergent_branches"], row["branches"])
    if card in AMD:
        useful = useful_of(main)
        out["LDS"] = f"{(main['shared_loads'] + main['shared_stores']) / useful:.2f}" if useful else "-"
        out["wide"] = share(main["shared_wide_loads"], main["shared_loads"])
    out.update(listed_cells(row) if card in AMD else assembled_cells(row, card))
    if arguments.kinds:
        out.update({kind: f"{100 * main[kind] / max(useful_of(main), 1):.0f}" for kind in KINDS})
    return out


def assembled_cells(row, card):
    out = dict.fromkeys(("regs", "groups", "SASS", "SASS/mma", "SASS peak"), "-")
    if "registers" in row:
        out["regs"] = f"{row['registers']}" + (f"!{row['spilled']}" if row["spilled"] else "")
        groups, warps = occupancy(row, card)
        out["groups"] = f"{groups} ({warps})"
    if row.get("sass"):
        useful, issued, mma, slots = row["sass"]
        out["SASS"] = share(useful, issued)
        out["SASS/mma"] = f"{issued / mma:.1f}" if mma else "-"
        out["SASS peak"] = share(min(slots, issued), issued)
    return out


def listed_cells(row):
    """Registers and waves, as clang's listing for AMD has them."""
    text = pathlib.Path(row["ptx"]).read_text(encoding="utf-8")
    listed = {}
    for kernel in re.split(r"^  - ", text[text.index(".amdgpu_metadata"):], flags=re.M)[1:]:
        fields = dict(re.findall(r"^ *(\.\w+): +(\S+)$", kernel, re.M))
        if re.search(rf"^    \.name: +{row['kernel']}$", kernel, re.M):
            listed = fields
    waves = re.search(rf"^{row['kernel']}:.*?^; Occupancy: (\d+)", text, re.M | re.S)
    if not listed or not waves:
        stop(1, f"no {row['kernel']} in {row['ptx']}")
    scratch = int(listed[".private_segment_fixed_size"])
    return {"VGPR": listed[".vgpr_count"] + (f"!{scratch}" if scratch else ""), "SGPR": listed[".sgpr_count"], "waves": waves[1]}


def tabulate(workload, arguments, tools, folder):
    operation, _, text = workload.partition(":")
    if operation not in SUMMED or not re.fullmatch(r"\d+(,\d+)*", text):
        stop(2, f"'{workload}' is not a workload (--help lists them)")
    sizes = [int(size) for size in text.split(",")]
    index, n_runs = SUMMED[operation]
    if index >= len(sizes):
        stop(2, f"'{workload}' has too few sizes (--help)")
    runs = []
    for times in range(1, n_runs + 1):
        runs.append(count(arguments, operation, [*sizes[:index], sizes[index] * times, *sizes[index + 1:]], folder))
    total = sum(row["instructions"] for row in runs[0].values())
    rows = []
    for key, row in runs[0].items():
        if row["instructions"] < 0.01 * total or row["kernel"].startswith("mma_probe"):
            continue
        if tools[0] and arguments.card not in AMD:
            assemble(row, arguments.card, tools)
        rows.append(cells(workload, row, difference(runs, key), arguments))
    return rows


def tabulate_intel(arguments, folder):
    """The rows of all workloads, for a card of Intel's."""
    try:
        (folder / "programs").mkdir(exist_ok=True)
        programs = intel_listing.list_programs(arguments.build, folder / "programs")
        rows = []
        for workload in arguments.workloads:
            if not re.fullmatch(rf"({'|'.join(intel_listing.OPERATIONS)})(:\d+)?", workload):
                stop(2, f"'{workload}' is not a workload for {arguments.card} (--help lists them)")
            rows += intel_listing.cells_of(programs, arguments.card, arguments.storage, workload, folder)
        return rows
    except intel_listing.Missing as missing:
        stop(77, missing)
    except RuntimeError as failed:
        stop(1, failed)


def print_text(rows):
    names = list(rows[0])
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in names}
    for row in [dict(zip(names, names)), *rows]:
        print("  ".join(row[name].ljust(widths[name]) if name in ("workload", "kernel", "options")
                        else row[name].rjust(widths[name]) for name in names).rstrip())


def print_markdown(rows, arguments):
    names = [name for name in rows[0] if name not in ("options", "barriers", "diverge")
             and any(row[name] != "-" for row in rows)]
    print(f"| {arguments.card}, {arguments.storage}: " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(f"`{row[name]}`" if name == "kernel" else row[name] for name in names) + " |")


def update(path):
    """Makes the tables of a README again."""
    def table(found):
        done = run([sys.executable, __file__, "--markdown", *found[2].split()])
        if done.returncode:
            stop(done.returncode, done.stderr.strip())
        return f"{found[1]}\n\n{done.stdout}\n<!-- end -->"

    text = pathlib.Path(path).read_text(encoding="utf-8")
    new, tables = re.subn(r"(<!-- kernel_counts\.py (.*?) -->)\n.*?<!-- end -->", table, text, flags=re.S)
    if not tables:
        stop(1, f"{path} has no line <!-- kernel_counts.py OPTION... -->")
    pathlib.Path(path).write_text(new, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("workloads", nargs="*")
    parser.add_argument("--card", default="t4", choices=[*CARDS, *AMD, *intel_listing.CARDS])
    parser.add_argument("--storage", default="f32", choices=("f32", "f16", "bf16"))
    parser.add_argument("--build", default="build")
    parser.add_argument("--variant", default="-")
    parser.add_argument("--keep")
    parser.add_argument("--update")
    for flag in ("kinds", "markdown"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("-h", "--help", action="store_true")
    arguments = parser.parse_args()
    if arguments.update:
        update(arguments.update)
        return
    if arguments.help or not arguments.workloads:
        print(__doc__)
        sys.exit(0 if arguments.help else 2)
    nvidia = arguments.card in CARDS
    tools = (program("ptxas", has_arch(CARDS[arguments.card][0])), program("nvdisasm", lambda path: True)) if nvidia else (None, None)
    for name, path in zip(("ptxas", "nvdisasm"), tools):
        if nvidia and not path:
            print(f"kernel_counts: no {name} for {arguments.card}: its columns show -", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(arguments.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        rows = tabulate_intel(arguments, folder) if arguments.card in intel_listing.CARDS else []
        for word in arguments.workloads if not rows else []:
            for workload in GROUPS.get(word, [word]):
                rows += tabulate(workload, arguments, tools, folder)
    if not rows:
        stop(1, "no kernel was counted")
    if arguments.markdown:
        print_markdown(rows, arguments)
    else:
        print_text(rows)
        if any(row["loop"].endswith("*") for row in rows):
            print("* the number of work-groups changed with the summed dimension: not the main loop alone")


if __name__ == "__main__":
    main()
