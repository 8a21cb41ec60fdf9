"""Intel's part of kernel_counts.py: kernels compiled by ocloc, without a card, and their main loops in iga64's listing.

Programs are those that tests/vendor/list_programs.c writes. Nothing is run: a loop is counted as it is listed."""
import math
import os
import pathlib
import re
import shutil
import subprocess

# ocloc's device, iga64's platform, shape of list_programs, lanes of a vector engine a clock (f32 and i32), multiply-adds
# of its matrix unit a clock. Data sheets: 512 engines of 128 f16 operations at 2.1 GHz; 1024 of 512 at 1.6 GHz.
CARDS = {"arc_a770": ("acm-g10", "12p71", 8, 8, 64), "max1550": ("pvc", "12p72", 16, 16, 256)}

# What serves an operation: the file's beginning with matrix units and without, and the options of the program.
OPERATIONS = {
    "linear": ("linear_mma", "linear", "-TRANS_A0-TRANS_B1-"), "linear_dx": ("linear_mma", "linear", "-TRANS_A0-TRANS_B0-"),
    "linear_dw": ("linear_mma", "linear", "-C_F321-TRANS_A1-TRANS_B0-|-F32-TRANS_A1-TRANS_B0-"),
    "conv": ("conv_mma", "conv_gpu", "-CONV_KIND0-"), "conv_dx": ("conv_mma", "conv_gpu", "-CONV_KIND1-PHASES0-"),
    "conv_dw": ("conv_mma", "conv_gpu", "-CONV_KIND2-"), "attention": ("attention_mma", "attention_gpu", "-DH%d-")}


class Missing(Exception):
    """A compiler, or the program that lists kernels, is missing."""


def run(command):
    return subprocess.run(command, capture_output=True, text=True)


# --- programs

def list_programs(build, folder):
    """[(shape, program, kernel)] of all programs, whose sources are written to the folder."""
    lister = next(pathlib.Path(build).rglob("vendor/list_programs"), None) or next(
        (path for path in pathlib.Path(build).rglob("list_programs") if path.is_file()), None)
    if not lister:
        raise Missing(f"no list_programs in {build} (ninja -C {build} list_programs)")
    root = pathlib.Path(__file__).resolve().parent.parent
    done = subprocess.run([lister, folder], capture_output=True, text=True,
                          env=dict(os.environ, CLEAT_SOURCE_DIR=str(root), CLEAT_KERNEL_DIR=str(root / "cl")))
    if done.returncode:
        raise Missing(f"list_programs: {done.stderr.strip()}")
    rows = [line.split("\t") for line in (folder / "programs.tsv").read_text().splitlines()]
    return [(row[0], row[2], row[3]) for row in rows]


def tile(program):
    """The elements that a work-item, or a subgroup, computes; tiles whose memory is aligned come first."""
    sizes = dict(re.findall(r"-(BLOCK_M|BLOCK_N|ITEM_M|ITEM_N|ITEMS_N|ROWS)(\d+)", program))
    number = lambda name: int(sizes.get(name, 1))
    squareness = -abs(number("ITEMS_N") - 16)
    return ("ALIGNED0" not in program and not re.search(r"ALIGNED[48]0", program),
            number("BLOCK_M") * number("BLOCK_N") * number("ITEM_M") * number("ITEM_N"), squareness, number("ROWS"))


def programs_of(programs, card, storage, workload):
    """[(shape, program, [kernels])] that serve an operation: one with the largest tile for each file of kernels."""
    operation, _, width = workload.partition(":")
    with_unit, without, options = OPERATIONS[operation]
    subgroup = CARDS[card][2]
    shape = f"intel{subgroup}" if storage == "f32" else f"matrix_intel{subgroup}"
    stem = without if storage == "f32" else with_unit
    pattern = options % int(width or 64) if "%d" in options else options
    chosen = {}
    for where, program, kernel in programs:
        wanted = where == shape and re.match(rf"{stem}(_\w+)?-{storage.upper()}-", program) and re.search(pattern, program)
        if wanted and "EPILOGUE" not in program and not kernel.endswith(("_reduce", "_plain", "_sum_keys")):
            group = re.sub(r"-(TILE_K|BLOCK_|ITEM|SUBGROUPS_|ALIGNED|ROWS|COLS|COLUMN_|THREADS|UNROLL)\w*", "", program)
            chosen.setdefault(group, {}).setdefault(program, []).append(kernel)
    best = [max(group.items(), key=lambda item: (tile(item[0]), item[0])) for group in chosen.values()]
    return [(shape, program, kernels) for program, kernels in best]


# --- compiling

def find_compiler():
    ocloc = os.environ.get("OCLOC") or shutil.which("ocloc")
    if not ocloc or not shutil.which("iga64"):
        raise Missing("no ocloc or no iga64 (packages intel-opencl-icd, libigc-tools)")
    return ocloc


def compile_program(source, options, card, folder):
    """ocloc's binary, and how many bytes each kernel spilled by its messages."""
    ocloc = find_compiler()
    folder.mkdir(parents=True, exist_ok=True)
    # macros of extensions that drivers define, and ocloc does not
    macros = "".join(f" -Dcl_intel_subgroup_{name}=1" for name in ("matrix_multiply_accumulate", "local_block_io"))
    all_options = f"-cl-std=CL1.2{macros} {options}"
    done = run([ocloc, "compile", "-file", source, "-device", CARDS[card][0], "-out_dir", folder, "-output", "k",
                "-options", all_options.strip(), "-internal_options", "-cl-intel-allow-zebin"])
    messages = done.stdout + done.stderr
    binary = next(folder.glob("*.bin"), None)
    if done.returncode or not binary:
        raise RuntimeError(f"ocloc: {source}: {messages.strip()[-1000:]}")
    spills = dict(re.findall(r"kernel (\w+)\s+compiled \w+ allocated \d+ regs and spilled around (\d+)", messages))
    return binary, {kernel: int(count) for kernel, count in spills.items()}


def facts_of(binary):
    """{kernel: {grf_count, simd_size, slm_size, scratch}} as the binary's .ze_info has them."""
    text = binary.read_bytes().replace(b"\0", b"").decode("latin-1")
    kernels = {}
    for part in re.split(r"^  - name: +", text, flags=re.M)[1:]:
        part = part.split("\nkernels_misc_info")[0]
        name = part.split()[0]
        number = lambda key: int((re.search(rf"^      {key}: +(\d+)", part, re.M) or [0, 0])[1])
        if "simd_size" in part:
            private = re.search(r"^    per_thread_memory_buffers:(.*?)(?=^    \w|\Z)", part, re.M | re.S)
            scratch = sum(map(int, re.findall(r"^        size: +(\d+)", private[1], re.M))) if private else 0
            kernels[name] = {key: number(key) for key in ("grf_count", "simd_size", "slm_size")} | {"scratch": scratch}
    return kernels


def disassemble(binary, kernel, card, folder):
    """iga64's listing of a kernel."""
    sections = run(["readelf", "-SW", binary]).stdout
    found = re.search(rf"\.text\.{kernel}\s+PROGBITS\s+\w+\s+(\w+)\s+(\w+)", sections)
    if not found:
        raise RuntimeError(f"no {kernel} in {binary}")
    offset, size = (int(word, 16) for word in found.groups())
    code = folder / f"{kernel}.krn"
    code.write_bytes(binary.read_bytes()[offset:offset + size])
    done = run(["iga64", "-d", f"-p={CARDS[card][1]}", code])
    if done.returncode or not done.stdout:
        raise RuntimeError(f"iga64: {done.stderr.strip()[-500:]}")
    (folder / f"{kernel}.asm").write_text(done.stdout)
    return done.stdout


# --- the listing

def instructions_of(text):
    """[(first, last)] of every loop; [(opcode, lanes, line)] of every instruction. sync.nop is no work."""
    listed, labels, branches = [], {}, []
    for line in text.splitlines():
        label = re.match(r"\s*(\w+):\s*$", line)
        if label:
            labels[label[1]] = len(listed)
            continue
        found = re.match(r"\s*(?:\([^)]*\)\s*)?([a-z][\w.]*(?:\.\([^ ]*\))?)\s*(?:\((\d+)\|\w+\))?", line)
        if not found or line.strip().startswith("//"):
            continue
        if found[1].startswith(("jmpi", "while", "goto", "brc", "brd")):
            branches += [(len(listed), target) for target in re.findall(r"\bL\d+\b", line)]
        if not found[1].startswith(("sync.nop", "nop", "sync.all")):
            listed.append((found[1], int(found[2] or 1), line))
    loops = {(labels[target], at) for at, target in branches if target in labels and labels[target] <= at}
    return sorted(loops), listed


def is_useful(opcode, line, wanted):
    return opcode.startswith(wanted) and (wanted == "dpas" or re.search(r">:f\b", line) is not None)


def main_loop(text):
    """The instructions of the innermost loop that holds most dpas, or else most mad of f32; and which of both."""
    loops, listed = instructions_of(text)
    wanted = "dpas" if any(opcode.startswith("dpas") for opcode, *_ in listed) else "mad"
    count = {loop: sum(is_useful(opcode, line, wanted) for opcode, _, line in listed[loop[0]:loop[1] + 1]) for loop in loops}
    inner = [(f, l) for f, l in loops if count[f, l] and not any(
        count[other] and f <= other[0] and other[1] <= l and other != (f, l) for other in loops)]
    if not inner:
        return None, wanted
    first, last = max(inner, key=lambda loop: (count[loop], loop[0] - loop[1]))
    return listed[first:last + 1], wanted


def slots_of(opcode, lanes, line, card):
    """(pipe, clocks that it is occupied)."""
    _, _, subgroup, width, products = CARDS[card]
    if opcode.startswith("dpas"):
        depth, rows = map(int, re.match(r"dpas\w*\.(\d+)x(\d+)", opcode).groups())
        return "matrix", 2 * depth * rows * subgroup / products  # pairs of f16
    if opcode.startswith("send"):
        return "send", 1
    types = re.findall(r":(df|uq|q|ud|d|f|hf|bf|uw|w|ub|b)\b", line)
    wide = 2 if types and types[0] in ("df", "uq", "q") else 1
    clocks = max(1, math.ceil(lanes * wide / width))
    if opcode.startswith("math"):
        return "integer", 4 * clocks
    return ("float" if types and types[0] in ("f", "hf", "bf") else "integer"), clocks


def message(line):
    """(memory, way, bytes of a lane) of a load or a store; a block counts as 16 bytes."""
    found = re.search(r"\b(load|store)\.(slm|ugm)\.d(\d+)(?:u32)?(?:x(\d+))?(t?)", line)
    if not found:
        block = re.search(r"(block|oword)", line)
        return ("slm" if "slm" in line else "ugm", "load", 16) if block else None
    size = int(found[3]) // 8 * int(found[4] or 1)
    return found[2], found[1], 16 if found[5] else size


def count_loop(body, wanted, card):
    """What a main loop holds: numbers by name."""
    pipes = dict.fromkeys(("matrix", "float", "integer", "send"), 0)
    useful, useful_slots = 0, 0
    messages = [message(line) for opcode, _, line in body if opcode.startswith("send")]
    for opcode, lanes, line in body:
        pipe, clocks = slots_of(opcode, lanes, line, card)
        pipes[pipe] += clocks
        if is_useful(opcode, line, wanted):
            useful += 1
            useful_slots += clocks
    shared = [m for m in messages if m and m[0] == "slm"]
    loads = [m for m in shared if m[1] == "load"]
    return {"useful": useful, "instructions": len(body), "slots": useful_slots, "busiest": max(pipes.values()),
            "pipe": max(pipes, key=pipes.get), "shared": len(shared), "shared_loads": len(loads),
            "wide_loads": sum(m[2] >= 16 for m in loads), "global": sum(m is not None and m[0] == "ugm" for m in messages)}


def rows_of(programs, card, storage, workload, folder):
    """[(kernel, program, counts or None, facts, spilled)] of what serves an operation."""
    out = []
    for shape, program, kernels in programs_of(programs, card, storage, workload):
        place = folder / f"{card}-{program}"
        options = (folder / "programs" / shape / "options").read_text().strip()
        binary, spills = compile_program(folder / "programs" / shape / f"{program}.cl", options, card, place)
        facts = facts_of(binary)
        for kernel in kernels:
            body, wanted = main_loop(disassemble(binary, kernel, card, place))
            counts = count_loop(body, wanted, card) if body else None
            out.append((kernel, program, counts, wanted, facts[kernel], spills.get(kernel, 0)))
    return out


def cells_of(programs, card, storage, workload, folder):
    """The rows of kernel_counts' table."""
    rows = []
    for kernel, program, counts, wanted, facts, spilled in rows_of(programs, card, storage, workload, folder):
        out = {"workload": workload, "kernel": kernel, "options": program.partition("-")[2][:70]}
        c = counts or dict.fromkeys(("useful", "instructions", "slots", "busiest", "shared", "shared_loads", "wide_loads"), 0)
        share = lambda part, whole: f"{100 * part / whole:.0f} %" if whole else "-"
        out["loop"] = share(c["useful"], c["instructions"])
        out["per mma"] = f"{c['instructions'] / c['useful']:.1f}" if c["useful"] and wanted == "dpas" else "-"
        out["peak"] = share(c["slots"], c["busiest"])
        out["pipe"] = c.get("pipe", "-")
        out["SLM"] = f"{c['shared'] / c['useful']:.2f}" if c["useful"] else "-"
        out["wide"] = share(c["wide_loads"], c["shared_loads"])
        out["GRF"] = f"{facts['grf_count']}" + (f"!{spilled}" if spilled else "")
        out["SIMD"] = str(facts["simd_size"])
        out["scratch"] = str(facts["scratch"])
        rows.append(out)
    return rows
