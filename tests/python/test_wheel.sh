#!/usr/bin/env bash
# The Python wheel: built from an installed build, its tag and its RECORD, installed by pip; then test_layout.py and test_module.py.
#   test_wheel.sh BUILD SOURCE_DIR CC
# ctest: device cost=38
set -euo pipefail
build=$1 source=$2 compiler=$3
# shellcheck source=tests/cli/checks.sh
source "$source/tests/cli/checks.sh"
here=$source/tests/python

# The first Python that has NumPy.
python=
for candidate in python3 /usr/bin/python3; do
    [[ -n $python ]] || ! "$candidate" -c 'import numpy' 2>/dev/null || python=$candidate
done
if [[ -z $python ]] || ! command -v objdump >/dev/null; then
    echo "skipped, no python3 with numpy, or no objdump"
    exit 77
fi

# A wheel that uses this machine's libraries must not be tagged manylinux; one that contains all of them may be.
test_wheel() {
    exits 0 cmake --install "$build" --prefix "$scratch/prefix" --strip
    local status=0
    "$python" "$source/tools/python/make_wheel.py" "$scratch/prefix" --out "$scratch" >"$scratch/out" 2>"$scratch/err" || status=$?
    if ((status == 0)); then
        says out "-py3-none-manylinux_2_"
    else
        says err "which is not in the wheel, and which not every system has"
        says err "reasons against the tag manylinux_2_"
        exits 0 "$python" "$source/tools/python/make_wheel.py" "$scratch/prefix" --out "$scratch" --local
        says out "-py3-none-linux_"
    fi
    wheel=$(tail -n 1 "$scratch/out")
    exits 0 test -s "$wheel"
    cp "$wheel" "$scratch/first.whl"
    exits 0 "$python" "$source/tools/python/make_wheel.py" "$scratch/prefix" --out "$scratch" --local
    exits 0 cmp "$wheel" "$scratch/first.whl"
}

test_record() {
    exits 0 "$python" "$here/check_record.py" "$wheel"
}

# Debian's python3 has no pip; a wheel is a zip file.
install_wheel() {
    if "$python" -m pip --version >/dev/null 2>&1; then
        exits 0 "$python" -m pip install --quiet --no-index --no-deps --no-cache-dir --target "$scratch/site" "$wheel"
        exits 0 env PYTHONPATH="$scratch/site" "$scratch/site/bin/cleat" --version
    else
        exits 0 "$python" -m zipfile -e "$wheel" "$scratch/site"
        chmod +x "$scratch/site/cleat/_native/bin/cleat"
    fi
    exits 0 env PYTHONPATH="$scratch/site" "$python" -m cleat --version
    says out "cleat 0."
    exits 4 env PYTHONPATH="$scratch/site" "$python" -m cleat plan rna --device no_such_device
}

# run_python SCRIPT ARGUMENT...: runs it with the installed module; shows the output if it fails.
run_python() {
    exits 0 env PYTHONPATH="$scratch/site" "$python" "$here/$1" "${@:2}"
}

test_wheel
test_record
install_wheel
run_python test_layout.py "$compiler" "$source/include"
cleat=$scratch/site/cleat/_native/bin/cleat
if ((failures == 0)); then
    require_device
    run_python test_module.py "$cleat" "$source/tools/python/README.md" "$source/README.md"
    tail -n 4 "$scratch/err"
fi
finish
