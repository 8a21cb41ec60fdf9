#!/usr/bin/env bash
# Trains with a real OpenCL driver for Windows, Intel's for CPUs, and Khronos' OpenCL.dll, both from PyPI, under wine: the checkpoints must have
# the bits of Intel's driver for Linux. (Otherwise wine passes all calls to the driver of Linux.)
#   check_windows_driver.sh BUILD EXE WORK      BUILD: a built tree for Linux; EXE: cleat.exe; WORK: a folder to be replaced
# Exit code 77: CLEAT_TEST_OPENCL does not name windows-intel (380 MB are downloaded), or wine or the packages cannot be had.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
linux=$(cd "$1" && pwd) program=$(realpath "$2") work=$3
[[ ,${CLEAT_TEST_OPENCL:-}, == *,windows-intel,* ]] || { echo "skipped: CLEAT_TEST_OPENCL=windows-intel downloads Intel's driver for Windows" && exit 77; }
[[ -x /usr/lib/wine/wine64 ]] || { echo "skipped: wine64 is not installed" && exit 77; }
rm -rf "$work"
mkdir -p "$work"/{wheels,driver}
cd "$work"
python3 -m pip download -q --disable-pip-version-check --platform win_amd64 --only-binary=:all: -d wheels intel-opencl-rt >log 2>&1 ||
    { echo "skipped: Intel's driver could not be downloaded: $(tail -n 1 log)" && exit 77; }
for wheel in wheels/*.whl; do python3 -m zipfile -e "$wheel" unpacked; done
find unpacked -path '*/Library/bin/*' -type f -exec mv -t driver {} +
cp "$program" driver/

export WINEPREFIX=$PWD/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=;opencl=n' LC_ALL=C.UTF-8
trap '/usr/lib/wine/wineserver64 -k || true' EXIT
cleat=(/usr/lib/wine/wine64 "$PWD/driver/cleat.exe")
# The loader reads the registry; a process that runs as administrator, as all do under wine, has no OCL_ICD_FILENAMES.
/usr/lib/wine/wine64 reg add 'HKLM\SOFTWARE\Khronos\OpenCL\Vendors' /v "Z:${PWD//\//\\}\\driver\\intelocl64.dll" /t REG_DWORD /d 0 /f >log 2>&1
"${cleat[@]}" devices >devices.log 2>&1 || { tail -n 20 devices.log && exit 1; }
grep 'Intel(R) OpenCL, driver' devices.log

mapfile -t of_linux < <(CLEAT_TEST_OPENCL=intel "$here/../opencl.sh" intel "$linux" "$PWD/linux")
run=(train "$here/../../profiles/rna_small.ini" --set data.path=data --set model.d_model=32 --set model.heads=2 --set model.layers=1
    --set model.d_ff=64 --set train.epochs=2 --set train.warmup_steps=1)
"${cleat[@]}" data make rna --out data --count 24 >make.log 2>&1
"${cleat[@]}" "${run[@]}" --out run >run.log 2>&1 || { tail -n 20 run.log && exit 1; }
env "${of_linux[@]}" "$linux/cleat" "${run[@]}" --out run_linux >linux.log 2>&1 || { tail -n 20 linux.log && exit 1; }
for file in model optim; do cmp "run_linux/$(<run_linux/last)/$file.safetensors" "run/$(<run_linux/last)/$file.safetensors"; done
for precision in f32 f16; do
    "${cleat[@]}" verify --quiet --precision "$precision" "$here/../golden/text.safetensors" >verify.log 2>&1 || { tail -n 20 verify.log && exit 1; }
done
