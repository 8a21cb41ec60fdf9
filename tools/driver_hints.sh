#!/usr/bin/env bash
# Prints which package provides an OpenCL driver for each installed card without one. Prints nothing if nothing is missing; installs nothing.
#   tools/driver_hints.sh
# The packages are those of `cleat doctor` (src/inspect/doctor/faults.c); tests/cli/test_driver_hints.sh compares them.
set -euo pipefail

root=${CLEAT_SYSTEM_ROOT:-} # tests: a folder that replaces /

# field NAME: a value of /etc/os-release, without quotes.
field() {
    sed -n "s/^$1=//p" "$root/etc/os-release" 2>/dev/null | tr -d "\"'" | head -n 1
}

# distribution: debian, ubuntu, fedora, arch or other, as src/inspect/doctor/system.c decides. Derivatives of Ubuntu name Debian too.
distribution() {
    case " $(field ID) $(field ID_LIKE) " in
    *" ubuntu "*) echo ubuntu ;;
    *" debian "*) echo debian ;;
    *" fedora "* | *" rhel "*) echo fedora ;;
    *" arch "*) echo arch ;;
    *) echo other ;;
    esac
}

# older_than VERSION: whether this release has a lower number. A release without one (Debian testing) is new.
older_than() {
    local version
    version=$(field VERSION_ID)
    [[ $version && $version != "$1" && $(printf '%s\n%s\n' "$version" "$1" | sort -V | head -n 1) == "$version" ]]
}

is_container() {
    [[ -e $root/.dockerenv || -e $root/run/.containerenv ]]
}

package_for_nvidia() {
    local library
    library=$(find "$root/usr/lib/x86_64-linux-gnu" "$root/usr/lib64" "$root/usr/lib" "$root/usr/local/nvidia/lib64" "$root/usr/lib64-nvidia" \
        -maxdepth 1 -name libnvidia-opencl.so.1 2>/dev/null | head -n 1 || true)
    if [[ $library ]]; then
        echo "mkdir -p /etc/OpenCL/vendors && echo libnvidia-opencl.so.1 > /etc/OpenCL/vendors/nvidia.icd"
    elif is_container; then
        echo "start the container with --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    else
        case $(distribution) in
        debian) echo "apt-get install nvidia-driver nvidia-opencl-icd  # from the archive areas contrib and non-free" ;;
        ubuntu) echo "ubuntu-drivers install" ;;
        fedora) echo "dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda  # from RPM Fusion" ;;
        arch) echo "pacman -S nvidia opencl-nvidia" ;;
        other) echo "install NVIDIA's driver: https://www.nvidia.com/en-us/drivers/unix/" ;;
        esac
    fi
}

package_for_amd() {
    case $(distribution) in
    debian)
        if older_than 13; then
            echo "apt-get install mesa-opencl-icd && export RUSTICL_ENABLE=radeonsi"
        else
            echo "apt-get install rocm-opencl-icd; or: apt-get install mesa-opencl-icd && export RUSTICL_ENABLE=radeonsi"
        fi
        ;;
    ubuntu)
        if older_than 24.04; then
            echo "install rocm-opencl-runtime from AMD's repository: https://rocm.docs.amd.com"
        else
            echo "apt-get install mesa-opencl-icd && export RUSTICL_ENABLE=radeonsi; or rocm-opencl-runtime from AMD's repository"
        fi
        ;;
    fedora) echo "dnf install rocm-opencl" ;;
    arch) echo "pacman -S rocm-opencl-runtime" ;;
    other) echo "install AMD's OpenCL runtime: https://rocm.docs.amd.com" ;;
    esac
}

package_for_intel() {
    case $(distribution) in
    debian)
        if older_than 13; then
            echo "apt-get install intel-opencl-icd"
        else
            echo "apt-get install mesa-opencl-icd && export RUSTICL_ENABLE=iris"
        fi
        ;;
    ubuntu) echo "apt-get install intel-opencl-icd" ;;
    fedora) echo "dnf install intel-compute-runtime" ;;
    arch) echo "pacman -S intel-compute-runtime" ;;
    other) echo "install Intel's runtime: https://github.com/intel/compute-runtime/releases" ;;
    esac
}

# The package for /dev/dxg of WSL, where Mesa's driver does not see the card.
package_for_wsl() {
    if [[ $(distribution) == debian ]] && ! older_than 13; then
        echo "Debian 13 has none: use Debian 12 or Ubuntu, or https://github.com/intel/compute-runtime/releases"
    else
        package_for_intel
    fi
}

# has_driver WORD...: whether an .icd file names a library with one of these words.
has_driver() {
    local words
    words=$(printf '%s\n' "$@")
    grep -qsF -- "$words" "$root"/etc/OpenCL/vendors/*.icd
}

# hint VENDOR CARD
hint() {
    local command
    case $1 in
    NVIDIA) ! has_driver nvidia-opencl || return 0 ;;
    AMD) ! has_driver amdocl RusticlOpenCL || return 0 ;;
    Intel) ! has_driver igdrcl RusticlOpenCL || return 0 ;;
    esac
    case $1 in
    NVIDIA) command=$(package_for_nvidia) ;;
    AMD) command=$(package_for_amd) ;;
    Intel) command=$(package_for_intel) ;;
    esac
    echo "setup: $1 card $2 has no OpenCL driver: cleat would train on the CPU. The driver:"
    echo "setup:   $command"
}

# read_file FILE: its only line; empty if it cannot be read.
read_file() {
    { cat "$1" 2>/dev/null || true; } | head -n 1
}

# The cards of /sys as lines "VENDOR ADDRESS"; class 03 is display, 12 an accelerator (Intel's of this class are NPUs). Cards that
# are reserved for a virtual machine are skipped.
list_cards() {
    local folder class vendor driver
    for folder in "$root"/sys/bus/pci/devices/*; do
        class=$(read_file "$folder/class") vendor=$(read_file "$folder/vendor")
        driver=$(readlink "$folder/driver" 2>/dev/null || true)
        [[ ${driver##*/} != vfio-pci && ${driver##*/} != pci-stub ]] || continue
        case $vendor:$class in
        0x10de:0x03* | 0x10de:0x12*) echo "NVIDIA ${folder##*/}" ;;
        0x1002:0x03* | 0x1002:0x12*) echo "AMD ${folder##*/}" ;;
        0x8086:0x03*) echo "Intel ${folder##*/}" ;;
        esac
    done
}

# Containers may hide /sys, but not NVIDIA's nodes.
driver_hints() {
    local vendor card cards
    cards=$(list_cards)
    if [[ -e $root/dev/nvidia0 && $cards != *NVIDIA* ]]; then cards+=$'\n'"NVIDIA /dev/nvidia0"; fi
    while read -r vendor card; do
        [[ ! $vendor ]] || hint "$vendor" "$card"
    done <<<"$cards"
    if [[ -e $root/dev/dxg ]] && ! has_driver igdrcl; then
        echo "setup: WSL shows the card as /dev/dxg, for which only Intel has an OpenCL driver: $(package_for_wsl)"
    fi
}

driver_hints
