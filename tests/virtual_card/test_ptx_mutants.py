#!/usr/bin/env python3
# Changes the interpreter of the virtual card, one line at a time: the tests test_ptx_*.c must detect each change.
#   test_ptx_mutants.py FOLDER [COMPILER]      FOLDER: tests/virtual_card
# Exits with 77 without a compiler or CMocka.
# ctest: slow cost=76
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

FOLDER = os.path.abspath(sys.argv[1])
COMPILER = sys.argv[2] if len(sys.argv) > 2 else "cc"
CORE = """access body counters declare decode flow global_atomics instructions_async instructions_atomic instructions_memory instructions_warp lexer parse registers
run shared_memory tables unwritten warp""".split()
ARITHMETIC = ["instructions_compare", "instructions_convert", "instructions_float", "instructions_integer", "instructions_matrix"]
TESTS = ["counters", "faults", "flow", "matrix", "text"]
# The test that detects most changes of a file runs first.
FIRST = {"access": "faults", "shared_memory": "faults", "global_atomics": "faults", "unwritten": "faults", "run": "faults", "warp": "flow", "flow": "flow",
         "instructions_async": "faults", "instructions_warp": "flow", "instructions_matrix": "matrix", "decode": "text", "body": "text", "lexer": "text",
         "parse": "text", "instructions_memory": "faults"}
FLAGS = ["-O1", "-std=gnu17", "-w", "-fno-strict-aliasing", "-ffp-contract=off", "-I" + FOLDER]

# For each file: text and replacement. Each text must occur; only its first occurrence changes.
MUTANTS = {
    "counters": [
        ('address >> 5; sector', 'address >> 6; sector'),
        ('if (!add_number(&places, address)) continue;', ''),
        ('add_number(&touched, sector)', '1'),
        ('(set->numbers[at] == number) return false', '(at == 64) return false'),
        ('addresses[l] >> 5', 'addresses[l] >> 6'),
        ('if (l && addresses[l] == addresses[l - 1]) continue;', ''),
        ('first < next ? next : first', 'first'),
        ('&& !(back >> 63)', ''),
        ('return mask == PTX_ALL && ', 'return '),
        ('bytes <= 4 ? 2 : bytes == 8 ? 3 : 4', '2'),
        ('if (at < PTX_LANES) continue;', ''),
        ('*least += part > 0', '*least += 1'),
        ('if (++depth[bank] > most) most = depth[bank];', '++depth[bank]; most = n;'),
    ],
    "access": [
        ('range->end - address >= bytes', 'range->end - address >= 1'),
        ('address <= range->end', 'true'),
        ('&& !(write && group->range.read_only)', ''),
        ('if (write && range->read_only) {', 'if (0) {'),
        ('if (write && range->read_only) return false;', ''),
        ('(address & (bytes - 1)) == 0', '(address & 3) == 0'),
        ('group->shared_bytes - offset < bytes', '0'),
        ('offset > size || size - offset < bytes', '0'),
        ('&& !(bits & (bytes - 1))', ''),
        ('beyond |= offset | (last - offset), bits |= addresses', 'beyond |= offset, bits |= addresses'),
        ('beyond |= offset | (last - offset), bits |= addresses', 'beyond |= last - offset, bits |= addresses'),
        ('beyond |= offset | (last - offset), bits |= address;', 'beyond |= offset, bits |= address;'),
        ('beyond |= offset | (last - offset), bits |= address;', 'beyond |= last - offset, bits |= address;'),
        ('use == PTX_STORE) ptx_record_writes', '0) ptx_record_writes'),
        ('use == PTX_LOAD) ptx_record_reads', '0) ptx_record_reads'),
        ('if (mask >> l & 1) ptx_record_atomic', 'if (0) ptx_record_atomic'),
        ('!atomic_load(warp->group->atomics));', '1);'),
        ('allowed &= ~(1u << l)', '(void)0'),
        ('return !(write && range.read_only);', 'return true;'),
        ('addresses[l] >> 56 != first', '0'),
        ('record_shared(warp, space, mask,', '(void)0; if (0) record_shared(warp, space, mask,'),
        ('record_shared(warp, space, allowed,', '(void)0; if (0) record_shared(warp, space, allowed,'),
        ('mask &= ~outside;', ''),
    ],
    "shared_memory": [
        ('warp->sync_time > barrier ? warp->sync_time : barrier', 'barrier'),
        ('other_warp == warp->first / PTX_LANES && ', ''),
        ('|| writer == item) return false', ') return false'),
        ('cell->reader == item) return false', '0) return false'),
        ('if (cell->reader == WARPS) return true;', 'if (cell->reader == WARPS) return false;'),
        ('reader == own ? SEVERAL | own : WARPS', 'SEVERAL | own'),
        ('cell->written < warp->group->begin)', '0)'),
        ('else if (cell->writer & IN_FLIGHT)', 'else if (0)'),
        ('cell->written >= group->begin && cell->writer & IN_FLIGHT', '0'),
        ('group->cells[c].writer = (uint16_t)(warp->first + lane);', ''),
        ('cell->writer = writer, cell->written = group->time;', 'cell->written = group->time;'),
        ('    cell->read = time;', ''),
        ('!(cell->writer & ATOMIC) && writes_unordered', 'writes_unordered'),
        ('if (!(cell->writer & ATOMIC) || !writes', 'if (1 || !writes'),
        ('(before / PTX_LANES == item / PTX_LANES ? 0 : ALL_WARPS)', '0'),
        ('(before / PTX_LANES == item / PTX_LANES ? 0 : ALL_WARPS)', 'ALL_WARPS'),
        ('||\n                 reads_unordered(warp, cell, item, group->barrier)', ''),
        ('cell->read == time && cell->reader == (SEVERAL | own)', 'cell->reader == (SEVERAL | own)'),
        ('>= since || cells[c].writer & IN_FLIGHT', '>= since'),
        ('.written - begin >= since', '.written < begin'),
    ],
    "global_atomics": [
        ('group->own_atomics[i].fenced = false;', ''),
        ('if (is_strong(warp->now)) return;', ''),
        ('&& fenced) continue;', ') continue;'),
        ('.fenced = true;', '.fenced = false;'),
        ('ptx_share_atomic(group->run', '(void)0; if (0) ptx_share_atomic(group->run'),
        ('(address + bytes - 1) / 4; ++word) {\n        bool', 'address / 4; ++word) {\n        bool'),
        ('group->own_atomics[at].word = word,', ''),
    ],
    "unwritten": [
        ('if (!missing) return;', 'return;'),
        ('mask & ~*written(warp, offset)', 'mask & (*written(warp, offset) ? 0 : ~0u)'),
        ('memset(warp->written, 0, ', 'memset(warp->written, 0, 0 * '),
        ('if (!carries(now))', 'if (1)'),
        ('known &= *written', 'known &= 0 * *written'),
        ('known &= *written', 'known |= *written'),
        ('check(warp, now->predicate, mask);', '(void)0;'),
        ('|= known;', '= known;'),
    ],
    "warp": [
        ('path->pc = meet;', 'path->pc = meet + 0*(path->mask = others);'),
        ('counters.divergent_branches++', 'counters.divergent_branches += 2'),
        ('if (mask != warp->live)', 'if (0)'),
        ('else if (warp->live != warp->begun)', 'else if (0)'),
        ('now->unless ? ~bits : bits', 'bits'),
        ('warp->live &= ~active, mask &= ~active', 'mask &= ~active'),
        ('counters->branches++;', ''),
        ('n_active = ptx_count_bits(active);', ''),
        ('? steps : DEFAULT_STEPS', '? 2 * steps : DEFAULT_STEPS'),
    ],
    "flow": [
        ('post[b] == PTX_NOWHERE || post[b] == n', '1'),
        ('common_post_dominator(post, rank, meet, next)', 'meet'),
    ],
    "run": [
        ('group.index = i,', ''),
        ('group.n_own_atomics = 0;', ''),
        ('atomic_load(&run->atomics[at].group) != group;', '1;'),
        ('backwards ? group->n_warps - 1 - k : k', 'group->time & 1 ? group->n_warps - 1 - k : k'),
        ('waiting && waiting->barrier != warp->barrier', '0'),
        ('if (waiting && ended)', 'if (0)'),
        ('check_copies(group);\n}', '}'),
        ('run->faults[i].at != at || run->faults[i].kind != kind', 'run->faults[i].at != at'),
        ('group->begin = group->barrier = ++group->time', 'group->begin = 0, group->barrier = ++group->time'),
        ('group->barrier = ++group->time;\n    } while', '++group->time;\n    } while'),
        ('kernel->shared_bytes + launch->dynamic_shared', 'kernel->shared_bytes'),
    ],
    "instructions_async": [
        ('all || copy.group + newest', 'all || copy.group + newest + 1'),
        ('mask >> copy.lane & 1 &&', '1 &&'),
        ('memset(to, 0, copy->bytes);', ''),
        ('if (copy->read) memcpy', 'if (0) memcpy'),
        ('copy->to % copy->bytes ||', '0 ||'),
        ('(copy->read && copy->from % copy->bytes)', '0'),
        ('bytes != 16 && (now->code == LARGE_ONLY', 'bytes != 16 && (0'),
        ('bytes != 4 && bytes != 8', '0'),
        ('group->shared_bytes - copy->to < copy->bytes', '0'),
        ('if (copy.read) reading', 'reading'),
    ],
    "instructions_warp": [
        ('(members & warp->live) != mask', '0'),
        ('members & warp->live', 'members'),
        ('!(mask >> source & 1)', '0'),
        ('*source >= last', '*source > last'),
        ('*source <= last;', '*source < last;'),
        ('(l & segments) | (distance & ~segments)', 'distance'),
        ('bits == mask : bits == 0', 'bits == mask : 1 || bits == 0'),
        ('bits == 0 || bits == mask', 'bits == mask'),
        ('warp->sync_time = ++warp->group->time;', ''),
    ],
    "instructions_matrix": [
        ('if (mask == PTX_ALL) return true;', 'return true;'),
        ('l / 4 + 8 * (r & 1)][2 * (l % 4) + 8 * (r >> 1)', 'l / 4 + 8 * (r >> 1)][2 * (l % 4) + 8 * (r & 1)'),
        ('(l & 1) + (r & 2) + (l < 16 ? 0 : 4)', '(l & 1) + (r & 2)'),
        ('now->code & A_BY_COLUMNS', '0'),
        ('now->code & B_BY_ROWS', '0'),
        ('now->n_to == 4 ? PTX_ALL : (1u << 8 * now->n_to) - 1', 'PTX_ALL'),
        ('to[l] = now->code ?', 'to[l] = 0 ?'),
        ('counters->shared_loads = before.shared_loads,', ''),
    ],
    "decode": [
        ('operand.width != asked', '0'),
        ('operand.width < 4', '0'),
        ('instruction->element == 1', '0'),
        ('instruction->element == 2 && kernel->cell_shift > 1', '0'),
        ('written && operand.base != PTX_REGISTERS', '0'),
        ("if (letter == 'n')", 'if (0)'),
    ],
    "body": [
        ('n_banks = scopes[--depth]', 'n_banks += 0*scopes[--depth]'),
    ],
    "lexer": [
        ('if (ptx_failed(lexer)) return;', ''),
    ],
    "parse": [
        ('depth > 0 && !ptx_failed(lexer)', 'depth > 0'),
    ],
    "instructions_memory": [
        ('mask = ptx_locate(warp, now, mask, addresses, (uint32_t)now->element * now->vector, PTX_STORE', 'ptx_locate(warp, now, mask, addresses, (uint32_t)now->element * now->vector, PTX_STORE'),
        ('from[l] + add', 'from[l]'),
    ],
    "instructions_atomic": [
        ('mask = ptx_locate', 'ptx_locate'),
    ],
}


def compile_file(source, target, name):
    variant = ["-DPTX_SUFFIX=plain"] if name in ARITHMETIC else []
    return subprocess.run([COMPILER, *FLAGS, *variant, "-c", source, "-o", target], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def killer(work, objects, suffix, first=None):
    """The first test that fails with these objects, or None."""
    for test in sorted(TESTS, key=lambda test: test != first):
        program = os.path.join(work, f"{test}{suffix}")
        subprocess.run([COMPILER, os.path.join(work, f"test_ptx_{test}.o"), os.path.join(work, "ptx_rig.o"), *objects, "-o", program,
                        "-lcmocka", "-lm", "-lpthread"], check=True)
        try:
            failed = subprocess.run([program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120).returncode != 0
        except subprocess.TimeoutExpired:
            failed = True
        os.remove(program)
        if failed:
            return test
    return None


def objects_of(work, changed=None, replacement=None):
    return [replacement if name == changed else os.path.join(work, name + ".o") for name in CORE + ARITHMETIC]


def try_mutant(work, number, name, old, new):
    """The problem, or None if the mutant died."""
    with open(os.path.join(FOLDER, name + ".c"), encoding="utf-8") as file:
        text = file.read()
    if old not in text:
        return f"{name}.c: not found: {old}"
    source, target = os.path.join(work, f"mutant{number}.c"), os.path.join(work, f"mutant{number}.o")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new, 1))
    if not compile_file(source, target, name):
        return f"{name}.c: does not compile: {old} -> {new}"
    return None if killer(work, objects_of(work, name, target), f"_{number}", FIRST.get(name)) else f"{name}.c: survived: {old} -> {new}"


def main():
    if not shutil.which(COMPILER):
        print("no compiler", COMPILER)
        return 77
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        names = CORE + ARITHMETIC + ["ptx_rig"] + ["test_ptx_" + test for test in TESTS]
        built = list(pool.map(lambda name: compile_file(os.path.join(FOLDER, name + ".c"), os.path.join(work, name + ".o"), name), names))
        if not all(built):
            print("not compiled:", *(name for name, good in zip(names, built) if not good))
            return 77 if sum(built) == len(CORE + ARITHMETIC) else 1  # CMocka is missing, or the interpreter is wrong
        if killer(work, objects_of(work), ""):
            print("a test fails without any change")
            return 1
        rows = [(name, old, new) for name, changes in MUTANTS.items() for old, new in changes]
        faults = [fault for fault in pool.map(lambda row: try_mutant(work, row[0], *row[1]), enumerate(rows)) if fault]
    for fault in faults:
        print(fault)
    print(f"{len(rows)} mutants, {len(rows) - len(faults)} died")
    return 1 if faults else 0


sys.exit(main())
