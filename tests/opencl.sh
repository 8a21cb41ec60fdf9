#!/usr/bin/env bash
# Finds an OpenCL implementation and prints the environment in which programs find only that one, one VARIABLE=VALUE per line.
#   opencl.sh NAME BUILD FOLDER
# NAME: pocl, intel (Intel's runtime for CPUs), rusticl (Mesa, on llvmpipe), virtual-CARD. BUILD: a build of cleat, for virtual cards with -DCLEAT_VIRTUAL_CARDS=ON.
# FOLDER: where this script writes lists of drivers, and installs Intel's runtime from PyPI if `CLEAT_TEST_OPENCL` names it.
# Exits with 77 and a reason on stderr if the implementation is not installed.
set -euo pipefail

name=$1 build=$2 folder=$3
vendors=/etc/OpenCL/vendors

missing() {
    printf '%s\n' "$*" >&2
    exit 77
}

# only PATH: makes the loader find only this driver. Every loader supports a folder with a single list.
only() {
    local list=$folder/$name.vendors
    mkdir -p "$list"
    printf '%s\n' "$1" >"$list/only.icd"
    printf 'OCL_ICD_VENDORS=%s/\n' "$list"
}

# driver_of PATTERN: prints the driver in the first of the system's lists whose name matches.
driver_of() {
    local file
    for file in "$vendors"/$1.icd; do
        [[ ! -s $file ]] || { head -n 1 "$file" && return; }
    done
    return 1
}

# Intel's runtime from PyPI, without its own loader: the tests use the system's.
install_intel() {
    local wheels=$folder/intel.wheels packages=(intel-opencl-rt intel-cmplr-lib-rt) library
    [[ ! -e $folder/intel/libintelocl.so ]] || return 0
    python3 -m pip --version >/dev/null 2>&1 || missing "Intel's runtime comes from PyPI, and there is no pip (python3-pip)"
    rm -rf "$wheels" "$folder/intel"
    mkdir -p "$wheels/unpacked" "$folder/intel.new"
    python3 -m pip download -q --disable-pip-version-check -d "$wheels" "${packages[@]}" >"$wheels/log" 2>&1 ||
        missing "Intel's runtime could not be downloaded: $(tail -n 1 "$wheels/log")"
    for library in "$wheels"/*.whl; do python3 -m zipfile -e "$library" "$wheels/unpacked"; done
    find "$wheels/unpacked" -path '*/data/lib/*' -type f ! -name 'libOpenCL*' -exec mv -t "$folder/intel.new" {} +
    rm -rf "$wheels"
    [[ -e $folder/intel.new/libintelocl.so ]] || missing "the packages ${packages[*]} have no libintelocl.so"
    mv "$folder/intel.new" "$folder/intel"
}

find_intel() {
    local driver
    if driver=$(driver_of 'intel*cpu*') && [[ -e $driver ]]; then
        only "$driver"
    elif [[ ,${CLEAT_TEST_OPENCL:-}, == *,intel,* ]]; then
        install_intel
        only "$folder/intel/libintelocl.so"
        printf 'LD_LIBRARY_PATH=%s\n' "$folder/intel"
    else
        missing "Intel's runtime is not installed; CLEAT_TEST_OPENCL=intel downloads it (260 MB)"
    fi
}

find_virtual() {
    grep -q '^VIRTUAL_CLANG:INTERNAL=.' "$build/CMakeCache.txt" || missing "no virtual cards (-DCLEAT_VIRTUAL_CARDS=ON), or no clang with libclc (tools/setup.sh --tests)"
    mkdir -p "$folder/virtual_card"
    printf '%s\n' "OCL_ICD_VENDORS=$build/virtual_card/" "CLEAT_VIRTUAL_CARD=${name#virtual-}" CLEAT_VIRTUAL_CARD_STRICT=1 \
        CLEAT_VIRTUAL_CARD_MAY_LEAK=program,context CLEAT_TEST_SHAPE=gpu "CLEAT_VIRTUAL_CARD_CACHE=$folder/virtual_card"
}

# environment: sets the implementation's variables. `pattern` occurs in the device's line of `cleat devices`.
environment() {
    local driver
    case $name in
    pocl)
        pattern="Portable Computing Language"
        driver=$(driver_of 'pocl*') || missing "PoCL is not installed (pocl-opencl-icd)"
        only "$driver"
        ;;
    rusticl)
        pattern=llvmpipe
        driver=$(driver_of 'rusticl*') || missing "rusticl is not installed (mesa-opencl-icd)"
        only "$driver"
        # The kernels of cards, because its compiler targets them.
        printf '%s\n' RUSTICL_ENABLE=llvmpipe CLEAT_DEVICE_SHAPE=gpu CLEAT_TEST_SHAPE=gpu
        ;;
    intel) pattern='Intel(R) OpenCL' && find_intel ;;
    virtual-t4) pattern='Tesla T4' && find_virtual ;;
    virtual-v100) pattern=V100 && find_virtual ;;
    virtual-a100) pattern=A100 && find_virtual ;;
    virtual-h100) pattern=H100 && find_virtual ;;
    *)
        echo "unknown implementation '$name'" >&2
        exit 2
        ;;
    esac
    printf 'CLEAT_CACHE_DIR=%s/cache.%s\n' "$folder" "$name"
}

mkdir -p "$folder"
environment >"$folder/$name.environment"
mapfile -t variables <"$folder/$name.environment"
if ! env "${variables[@]}" "$build/cleat" devices 2>&1 | tee "$folder/$name.devices" | grep -F "$pattern" >/dev/null; then # -q would close tee's pipe early
    echo "$name is installed, but \`cleat devices\` does not list its device ($pattern):" >&2
    cat "$folder/$name.devices" >&2
    exit 1
fi
cat "$folder/$name.environment"
