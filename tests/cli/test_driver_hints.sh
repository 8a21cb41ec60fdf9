#!/usr/bin/env bash
# tools/driver_hints.sh: the driver package that a card requires, on every distribution the same as in `cleat doctor`.
# The machines are folders (CLEAT_SYSTEM_ROOT).
#   test_driver_hints.sh CLEAT SOURCE
# ctest: quick
set -euo pipefail
cleat=$1 hints=$2/tools/driver_hints.sh
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
unset OCL_ICD_VENDORS OPENCL_VENDOR_PATH OCL_ICD_FILENAMES

# machine OS-RELEASE: makes an empty machine.
machine() {
    root=$scratch/machine
    rm -rf "$root"
    mkdir -p "$root/etc/OpenCL/vendors" "$root/dev/dri" "$root/usr/lib" "$root/sys/bus/pci/devices"
    printf '%b' "$1" >"$root/etc/os-release"
    export CLEAT_SYSTEM_ROOT=$root
}

# card ADDRESS CLASS VENDOR [KERNEL-DRIVER]
card() {
    local folder=$root/sys/bus/pci/devices/$1
    mkdir -p "$folder"
    echo "$2" >"$folder/class"
    echo "$3" >"$folder/vendor"
    echo 0x1234 >"$folder/device"
    [[ ! ${4:-} ]] || ln -s "../../../bus/pci/drivers/$4" "$folder/driver"
    if [[ ${4:-} == amdgpu || ${4:-} == i915 ]]; then # with its node, so only the OpenCL driver is missing
        mkdir -p "$folder/drm/renderD128"
        touch "$root/dev/dri/renderD128"
    fi
}

debian12='ID=debian\nVERSION_ID="12"\n'
debian13='ID=debian\nVERSION_ID="13"\n'
ubuntu22='ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\n'
ubuntu24='ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n'

# hints_for RELEASE VENDOR-NUMBER TEXT: checks the hint for a card on this release.
hints_for() {
    local -A kernel_drivers=([0x10de]="" [0x1002]=amdgpu [0x8086]=i915)
    machine "$1"
    card 0000:01:00.0 0x030000 "$2" "${kernel_drivers[$2]}"
    exits 0 "$hints"
    says out "card 0000:01:00.0 has no OpenCL driver"
    says out "$3"
}

test_packages() {
    hints_for "$debian12" 0x10de "apt-get install nvidia-driver nvidia-opencl-icd"
    hints_for "$ubuntu22" 0x10de "ubuntu-drivers install"
    hints_for "$debian12" 0x8086 "apt-get install intel-opencl-icd"
    hints_for "$debian13" 0x8086 "apt-get install mesa-opencl-icd && export RUSTICL_ENABLE=iris"
    hints_for "$ubuntu22" 0x8086 "apt-get install intel-opencl-icd"
    hints_for "$debian13" 0x1002 "apt-get install rocm-opencl-icd"
    hints_for "$ubuntu22" 0x1002 "rocm-opencl-runtime from AMD's repository"
    lacks out mesa-opencl-icd # from Ubuntu 22.04: without rusticl
    hints_for "$ubuntu24" 0x1002 "apt-get install mesa-opencl-icd && export RUSTICL_ENABLE=radeonsi"
    hints_for 'ID=debian\n' 0x1002 "rocm-opencl-icd" # Debian testing has no number
}

# The doctor names every package of the hint for this card and distribution.
compare_with_doctor() {
    local package
    hints_for "$1" "$2" ""
    grep -oE '[a-z0-9]+(-[a-z0-9]+)*-(icd|driver|runtime|opencl|nvidia)\b|ubuntu-drivers' "$scratch/out" | sort -u >"$scratch/packages"
    "$cleat" doctor --seconds 60 --out "$scratch/runs" >"$scratch/out" 2>"$scratch/err" </dev/null || true # the card is not usable
    checks=$((checks + 1))
    [[ -s $scratch/packages ]] || complain "no package in the hint"
    while read -r package; do says out "$package"; done <"$scratch/packages"
}

test_same_as_the_doctor() {
    local release
    for release in "$debian12" "$debian13" "$ubuntu22" "$ubuntu24" 'ID=fedora\n' 'ID=arch\n'; do
        compare_with_doctor_on_all_cards "$release"
    done
}

compare_with_doctor_on_all_cards() {
    local vendor
    for vendor in 0x10de 0x1002 0x8086; do
        compare_with_doctor "$1" "$vendor"
    done
}

test_nothing_to_say() {
    machine "$debian12"
    exits 0 "$hints"
    empty out
    card 0000:6a:00.0 0x030000 0x1a03 ast         # a server's management chip
    card 0000:6b:00.0 0x120000 0x8086 intel_vpu   # an NPU
    card 0000:04:00.0 0x030000 0x10de vfio-pci    # of a virtual machine
    card 0000:00:1f.3 0x040300 0x8086 snd_hda     # sound
    exits 0 "$hints"
    empty out
    card 0000:00:02.0 0x030000 0x8086 i915
    card 0000:01:00.0 0x030200 0x10de nvidia
    echo /usr/lib/x86_64-linux-gnu/intel-opencl/libigdrcl.so >"$root/etc/OpenCL/vendors/intel.icd"
    echo libnvidia-opencl.so.1 >"$root/etc/OpenCL/vendors/nvidia.icd"
    exits 0 "$hints"
    empty out
    empty err
}

test_containers() {
    machine "$ubuntu22"
    touch "$root/.dockerenv" "$root/dev/nvidia0"
    exits 0 "$hints"
    says out "NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    mkdir -p "$root/usr/lib64-nvidia" # Colab's folder
    touch "$root/usr/lib64-nvidia/libnvidia-opencl.so.1"
    exits 0 "$hints"
    says out "echo libnvidia-opencl.so.1 > /etc/OpenCL/vendors/nvidia.icd"
    machine "$ubuntu24"
    touch "$root/dev/dxg"
    exits 0 "$hints"
    says out "/dev/dxg"
    says out "apt-get install intel-opencl-icd"
    machine "$debian13"
    touch "$root/dev/dxg"
    exits 0 "$hints"
    says out "Debian 13 has none"
    lacks out "apt-get install intel-opencl-icd" # not in Debian 13
}

test_packages
test_same_as_the_doctor
test_nothing_to_say
test_containers
finish
