#!/usr/bin/env bash
# cleat devices: unusable devices and the causes; the warning of a run that uses the CPU although a card is installed.
# The machines are folders (CLEAT_SYSTEM_ROOT).
#   test_devices.sh CLEAT SOURCE STUB_DRIVER
# ctest: device quick
set -euo pipefail
cleat=$1 source=$2 stub=$3
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

require_device
if "$cleat" devices --json | grep -q '"kind": "GPU"'; then
    echo "skipped, this machine has a GPU"
    exit 77
fi

vendors=${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}
if [[ ! -d $vendors ]]; then
    echo "skipped, OCL_ICD_VENDORS names no folder"
    exit 77
fi

# machine: makes an empty machine with this machine's OpenCL drivers.
machine() {
    root=$scratch/machine
    rm -rf "$root"
    mkdir -p "$root/etc/OpenCL/vendors" "$root/usr/lib" "$root/proc" "$root/dev"
    printf 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n' >"$root/etc/os-release"
    cp "$vendors"/*.icd "$root/etc/OpenCL/vendors"
    export CLEAT_SYSTEM_ROOT=$root OCL_ICD_VENDORS=$root/etc/OpenCL/vendors
}

# card CLASS VENDOR DEVICE [KERNEL-DRIVER]
card() {
    local folder=$root/sys/bus/pci/devices/0000:01:00.0
    mkdir -p "$folder"
    echo "$1" >"$folder/class"
    echo "$2" >"$folder/vendor"
    echo "$3" >"$folder/device"
    [[ ! ${4:-} ]] || ln -s "../../../bus/pci/drivers/$4" "$folder/driver"
}

test_nothing_wrong() {
    machine
    exits 0 "$cleat" devices
    lacks out "not usable"
    card 0x030000 0x1a03 0x2000 ast # display of a server's management chip
    exits 0 "$cleat" devices
    lacks out "not usable"
    exits 0 "$cleat" devices --json
    json 0 index
    lacks out '"index": null'
}

test_card_without_driver() {
    machine
    card 0x030000 0x10de 0x1eb8 nouveau
    exits 0 "$cleat" devices
    says out "not usable:"
    says out "card 0000:01:00.0: NVIDIA"
    says out "nouveau-bound: kernel driver nouveau"
    says out "apt-get install nvidia-driver nvidia-opencl-icd"
    exits 0 "$cleat" devices --json
    json 1 name
    json 1 commands 0
    says out '"code": "nouveau-bound"'
}

test_broken_drivers() {
    machine
    echo /usr/lib/libgone.so.1 >"$root/etc/OpenCL/vendors/gone.icd"
    cp "$stub" "$root/usr/lib/libMesaOpenCL.so.1"
    echo "platform=Clover" >"$root/usr/lib/libMesaOpenCL.so.1.conf"
    echo "$root/usr/lib/libMesaOpenCL.so.1" >"$root/etc/OpenCL/vendors/mesa.icd"
    exits 0 "$cleat" devices
    says out "icd-library-missing: /usr/lib/libgone.so.1: cannot open shared object file"
    says out "driver-without-card: platform 'Clover' lists no device"
}

# Listing the devices in this process would also end it.
test_driver_crashes() {
    machine
    cp "$stub" "$root/usr/lib/libother.so"
    printf 'device=x\nfault=crash-list\n' >"$root/usr/lib/libother.so.conf"
    echo "$root/usr/lib/libother.so" >"$root/etc/OpenCL/vendors/other.icd"
    exits 4 "$cleat" devices
    says out "driver-crashes"
    says out "other.icd.off"
}

test_no_device() {
    machine
    card 0x030000 0x1002 0x744c amdgpu
    exits 4 env OCL_ICD_VENDORS=/nonexistent "$cleat" devices
    says out "card 0000:01:00.0: AMD"
    says out "icd-folder-missing: OCL_ICD_VENDORS=/nonexistent does not exist"
    says err "no usable OpenCL device"
    exits 4 env OCL_ICD_VENDORS=/nonexistent "$cleat" devices --json
    json 0 code
    exits 4 env OCL_ICD_VENDORS=/nonexistent "$cleat" train "$source/profiles/rna_small.ini" --out "$scratch/run"
    says err "AMD"
    says err "is installed, but cannot be used"
}

# The device is opened before the data are read, so missing data end the run here.
starts_run() {
    exits 1 "$cleat" train "$source/profiles/rna_small.ini" --set "data.path=$scratch/missing" --out "$scratch/run" "$@"
}

test_run_on_the_cpu() {
    machine
    card 0x030000 0x10de 0x1eb8 nouveau
    starts_run
    says err "device = auto chose the CPU. NVIDIA"
    says err "kernel driver nouveau"
    # shellcheck disable=SC2016 # the quotes of the message
    says err '`cleat doctor`'
    starts_run --device cpu
    lacks err nouveau
    machine
    starts_run
    lacks err "device = auto"
}

# A benchmark opens the device several times, including in child processes.
test_one_warning() {
    machine
    card 0x030000 0x10de 0x1eb8 nouveau
    exits 0 "$cleat" bench 'sgemm_256*' W4 --steps 1
    checks=$((checks + 1))
    (($(grep -c "device = auto" "$scratch/err") == 1)) || complain "the warning is not logged once"
}

# A PoCL whose compiler does not support the processor: the run's message and the remedy.
test_unknown_processor() {
    local folder=$scratch/old_pocl
    mkdir -p "$folder"
    cp "$stub" "$folder/libpocl.so.2"
    echo "$folder/libpocl.so.2" >"$folder/pocl.icd"
    cat >"$folder/libpocl.so.2.conf" <<'END'
platform=Portable Computing Language
vendor=AuthenticAMD
device=pthread-AMD Ryzen 7 5700G
type=cpu
version=OpenCL 1.2 pocl 1.8  Linux, None+Asserts, RELOC, LLVM 11.1.0, SLEEF, DISTRO, POCL_DEBUG
fault=build-fails
log=error: unknown target CPU 'generic'
END
    machine
    exits 4 env OCL_ICD_VENDORS="$folder" CLEAT_CACHE_DIR="$scratch/cache" "$cleat" bench W4
    says err "PoCL 1.8 is built with LLVM 11.1.0, which does not support this processor (pthread-AMD Ryzen 7 5700G)"
    exits 4 env OCL_ICD_VENDORS="$folder" "$cleat" doctor --seconds 120
    says out pocl-processor-unknown
    says out "pip install intel-opencl-rt"
}

test_nothing_wrong
test_card_without_driver
test_broken_drivers
test_driver_crashes
test_no_device
test_run_on_the_cpu
test_one_warning
test_unknown_processor
finish
