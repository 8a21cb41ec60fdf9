#!/usr/bin/env bash
# Uses the wheel for Windows with a Python for Windows, under wine: trains, stops, and starts the program.
#   check_windows_python.sh WHEEL WORK [all]      WORK: a folder to be replaced; all: also tests/python/test_module.py, some minutes
# That Python is CPython's own DLL, which Panda3D's wheel on PyPI carries for programs made with it, and the standard library of python3.
# Exit code 77: that wheel cannot be downloaded.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
wheel=$1 work=$2
wine=/usr/lib/wine/wine64
rm -rf "$work"
mkdir -p "$work/python/Lib"
version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
dll=python${version/./}.dll

# download PACKAGE...: their wheels for this Python on Windows.
download() {
    python3 -m pip download --quiet --no-deps --only-binary=:all: --platform win_amd64 --python-version "$version" --dest "$work/wheels" "$@"
}

download panda3d >"$work/pip.log" 2>&1 || { echo "skipped: Python, without a download of panda3d by pip: $(tail -n 1 "$work/pip.log")" && exit 77; }
python3 -m zipfile -e "$work"/wheels/panda3d-*.whl "$work/panda3d"
cp "$work/panda3d/deploy_libs/"{*.pyd,python*.dll,lib*.dll,vcruntime*.dll,VCRUNTIME*.dll} "$work/python/" 2>/dev/null || true
rm -rf "$work/panda3d"
(cd "$(python3 -c 'import os; print(os.path.dirname(os.__file__))')" && tar -c --exclude='*-packages' --exclude='config-*' --exclude=test --exclude='__pycache__' \
    --exclude='*.so' .) | tar -x -C "$work/python/Lib"
printf '%s\n' . Lib site >"$work/python/${dll%.dll}._pth"
cat >"$work/python.c" <<END
#include <windows.h>
int wmain(int argc, wchar_t **argv) {
    int (*run)(int, wchar_t **) = (int (*)(int, wchar_t **))(void *)GetProcAddress(LoadLibraryA("$dll"), "Py_Main");
    return run ? run(argc, argv) : 99;
}
END
x86_64-w64-mingw32-gcc-posix -municode "$work/python.c" -o "$work/python/python.exe"
python3 -m zipfile -e "$wheel" "$work/python/site"
python3 "$here/../python/check_record.py" "$wheel"

# python ARGUMENT...: its streams are pipes, as wine's files without a name have no information that Python asks for.
python() {
    "$wine" "$work/python/python.exe" "$@" </dev/null 2>&1 | cat
}

cd "$work"
cat >use.py <<'END'
import pathlib, signal, sys
import cleat
assert sys.platform == "win32"
small = {"model.d_model": 16, "model.heads": 2, "model.layers": 1, "model.d_ff": 16, "run.self_check": "never", "train.warmup_steps": 0}
run = cleat.train("rna_small", "data", out="Läufe 1", settings={**small, "train.epochs": 1}, progress=False)
assert run.history()["loss"][0] > 0 and run.checkpoint.is_dir() and run.settings["model.d_model"] == "16"
assert cleat.evaluate(run, "test")["rmsd"] > 0
assert cleat.plan("rna_small", card="t4")["fits"]
try:
    cleat.train("rna_smal", "data")
except cleat.Error as error:
    assert error.status == cleat.Status.NOT_FOUND, error
else:
    raise AssertionError("no error")
send = lambda record: signal.raise_signal(signal.SIGINT) if record["kind"] == "train" and record["step"] == 2 else None
try:
    cleat.train("rna_small", "data", out="run 2", on_step=send, settings={**small, "train.epochs": 100000}, progress=False)
except KeyboardInterrupt:
    print("interrupted at", cleat.Run("run 2").checkpoint.name)
END
python -m cleat data make rna --out data --count 24 >make.log
python use.py >use.log || true
grep -q '^interrupted at ckpt-' use.log || { tail -n 5 use.log && exit 1; }
python -m cleat --version >version.log || true
grep -q '^cleat [0-9]' version.log || { tail -n 5 version.log && exit 1; }
[[ ${3-} == all ]] || exit 0
download 'numpy<2'
python3 -m zipfile -e wheels/numpy-*.whl python/site
python "Z:$here/../python/test_module.py" "Z:$PWD/python/site/cleat/_native/bin/cleat.exe" \
    "Z:$here/../../tools/python/README.md" "Z:$here/../../README.md" >module.log || true
tail -n 4 module.log
grep -q '^OK' module.log
