#!/usr/bin/env python3
"""Searches PoCL's cache for functions that name the local memory of a kernel.

PoCL 3.1 gives each group its own local memory in kernels only. If a helper function is not inlined, and clang finds that all
callers pass the same array, the function uses one array for all groups, which run at the same time: results are occasionally
wrong. Such an array needs HIDDEN_LOCAL (cl/lib/mma.clh), or the function must be inlined.

  pocl_local_memory.py CACHE [--since FILE]   CACHE: POCL_CACHE_DIR; programs used since FILE was written
  pocl_local_memory.py --self-test
Exit status: 0 no such function, 1 some, 77 no programs, or no clang that reads PoCL's programs.
"""
import argparse
import glob
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

top = pathlib.Path(__file__).resolve().parent.parent

SELF_TEST = """\
@k.tile = internal global [8 x i16] undef, align 16
@k_tile.rows = internal unnamed_addr addrspace(3) global [4 x float] undef, align 4
@table = internal unnamed_addr constant [1 x i16] zeroinitializer
define internal void @load(ptr %p) {
  store i16 0, ptr @k.tile
}
define spir_kernel void @k() #0 {
  store i16 1, ptr @k.tile
}
define spir_kernel void @k_tile(ptr %q) {
  %x = load float, ptr addrspace(3) getelementptr ([4 x float], ptr addrspace(3) @k_tile.rows, i64 0, i64 1)
  %y = load i16, ptr @table
}
"""


def shared_arrays(text):
    """(function, array) pairs in LLVM's assembly: local arrays of another function, which are named FUNCTION.ARRAY."""
    arrays = set(re.findall(r'^@([\w.]+) = internal (?:unnamed_addr )?(?:addrspace\(\d+\) )?global [^\n]* undef', text, re.M))
    found = set()
    for name, body in re.findall(r'^define [^\n]*?@([\w.]+)\([^\n]*\{\n(.*?)^\}', text, re.M | re.S):
        found |= {(name, array) for array in arrays & set(re.findall(r'@([\w.]+)', body)) if not array.startswith(name + '.')}
    return found


def helper_names():
    """Functions of cl/ that take a pointer to local memory; one that was not inlined has its name in the program."""
    names = set()
    for path in top.glob('cl/**/*.cl*'):
        names |= set(re.findall(r'(\w+)\([^()]*(?:__local|MATRIX_SCRATCH_ARG)[^()]*\)\s*\{', path.read_text()))
    return sorted(name.encode() for name in names)


def disassemble(path):
    """LLVM's assembly of a program, by the newest clang that reads it; None if none does."""
    for clang in sorted(glob.glob('/usr/lib/llvm-*/bin/clang'), reverse=True):
        done = subprocess.run([clang, '-cc1', '-emit-llvm', '-disable-llvm-passes', '-x', 'ir', path, '-o', '-'],
                              capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout
    return None


def used_programs(cache, since):
    newest = os.stat(since).st_mtime if since else 0
    for folder, _, files in os.walk(cache):
        if 'program.bc' in files and os.stat(os.path.join(folder, 'last_accessed')).st_mtime >= newest:
            yield os.path.join(folder, 'program.bc')


def self_test():
    assert shared_arrays(SELF_TEST) == {('load', 'k.tile')}, shared_arrays(SELF_TEST)
    assert b'load_rows_a' in helper_names()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('cache', nargs='?')
    parser.add_argument('--since')
    parser.add_argument('--self-test', action='store_true')
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    helpers = helper_names()
    programs = list(used_programs(options.cache, options.since))
    suspects = [path for path in programs if any(name in pathlib.Path(path).read_bytes() for name in helpers)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = list(pool.map(disassemble, suspects))
    if not programs or None in texts:
        print(f'{len(programs)} programs of PoCL; {texts.count(None)} that no clang here reads')
        return 77
    found = {(pair, path) for path, text in zip(suspects, texts) for pair in shared_arrays(text)}
    for (function, array), path in sorted(found):
        print(f"{function} names the local memory '{array}': all groups share it on PoCL ({path})")
    print(f'{len(programs)} programs, {len(suspects)} with helper functions, {len(found)} of them wrong')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
