#!/usr/bin/env bash
# Installs the build dependencies of cleat (Debian 12, Ubuntu 22.04 or later). Does nothing, without network, if all are installed.
#   tools/setup.sh            dependencies to build and run
#   tools/setup.sh --tests    also the dependencies of tools/test.sh
#   tools/setup.sh --print    print the packages that compiling needs, one per line, and install nothing
set -euo pipefail

build_packages=(gcc libc6-dev cmake ninja-build pkg-config ocl-icd-opencl-dev opencl-c-headers pocl-opencl-icd libclblast-dev libhwloc-dev
    libinih-dev libcmocka-dev libcjson-dev libutf8proc-dev libpcre2-dev libxxhash-dev libpng-dev
    libjpeg-dev libtiff-dev zlib1g-dev libprotobuf-c-dev protobuf-c-compiler librhash-dev)
test_packages=(clang clang-format binutils diffutils python3 python3-numpy patchelf groff-base)
# Not in every release. NAME:what is lost without it.
optional_packages=("libjs-dygraphs:the plots of reports do not zoom")
# For users, named only: training on several devices (cleat train --devices).
mpi_packages=(openmpi-bin libopenmpi-dev)
optional_test_packages=("openmpi-bin:training on several devices is not tested" "libopenmpi-dev:training on several devices is not tested"
    "oclgrind:kernels are not tested under Oclgrind" "chromium:reports are not tested in a browser"
    "valgrind:values that were never set are not looked for" "g++-mingw-w64-x86-64-posix:the build for Windows is not tested"
    "nasm:the build for Windows is not tested" "dpkg-dev:the build for Windows is not tested" "wine64:the build for Windows is not tested"
    "python3-pandas:DataFrames in Python are not tested" "python3-sklearn:DataFrames and estimators in Python are not tested"
    "jupyter-nbconvert:the notebooks are not tested" "python3-ipykernel:the notebooks are not tested")
least_cmake=3.22

exec 3>&2 # for `fail`: when it is called, stderr may go into a log

fail() {
    printf 'setup: %s\n' "$@" >&3
    exit 1
}

usage() {
    sed -n '2,5s/^# \{0,1\}//p' "$0"
}

# missing_packages NAME...: those that are not installed according to dpkg, one per line.
missing_packages() {
    local name
    for name in "$@"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || echo "$name"
    done
}

# Without dpkg nothing can be installed here, but everything may be present already.
check_by_hand() {
    local tool library libraries=(OpenCL clblast hwloc inih libcjson libutf8proc libpcre2-8 libxxhash libpng libjpeg libtiff-4 zlib libprotobuf-c librhash)
    $tests && libraries+=(cmocka)
    for tool in cc cmake ninja pkg-config protoc-c; do
        command -v "$tool" >/dev/null || fail "'$tool' is missing, and this is not Debian or Ubuntu (no dpkg-query and apt-get)" \
            "install the equivalents of: ${packages[*]}"
    done
    for library in "${libraries[@]}"; do
        pkg-config --exists "$library" || fail "library '$library' is missing (pkg-config does not find it)" \
            "this is not Debian or Ubuntu: install the equivalents of: ${packages[*]}"
    done
    echo "setup: not Debian or Ubuntu; all required tools and libraries were found"
}

# become_root PACKAGE...: whether as_root can work. sudo asks for its password on the terminal, whatever stdin and stderr are.
become_root() {
    local by_hand="run as root: apt-get install $*"
    ((EUID != 0)) || return 0
    command -v sudo >/dev/null || fail "these packages are missing: $*" "you are not root and sudo is not installed; $by_hand"
    ! sudo -n true 2>/dev/null || return 0
    { : </dev/tty; } 2>/dev/null || fail "these packages are missing: $*" "'sudo' requires a password, but no terminal is available; $by_hand"
    sudo -v || fail "these packages are missing: $*" "'sudo' was refused; $by_hand"
}

# as_root COMMAND...
as_root() {
    if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

# available PACKAGE: whether the package lists of this machine have it.
available() {
    [[ $(apt-cache madison "$1" 2>/dev/null) ]]
}

update_lists() {
    local log=$1
    shift
    become_root "$@"
    if ! as_root apt-get -q update >"$log" 2>&1 </dev/null; then
        tail -n 5 "$log" >&2
        echo "setup: the package list could not be updated (no network?); continuing with the existing one" >&2
    fi
}

# apt_install LOG PACKAGE...
apt_install() {
    local log=$1
    shift
    echo "setup: installing $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qy --no-install-recommends install "$@" >"$log" 2>&1 </dev/null
}

# install_packages LOG PACKAGE...: if that fails because of an optional one, the required ones are installed alone.
install_packages() {
    local log=$1 required
    shift
    if apt_install "$log" "$@"; then return; fi
    mapfile -t required < <(missing_required)
    if ((${#required[@]} == 0)); then return; fi # say_what_is_left_out names the others
    if ((${#required[@]} < $#)) && apt_install "$log" "${required[@]}"; then return; fi
    tail -n 15 "$log" >&2
    fail "apt-get could not install: ${required[*]}" "its last lines are shown above; check the network and the mirror in /etc/apt"
}

# check_cmake: the cmake that a build would use, or else the one that would be installed. Before anything is installed: that takes a minute.
check_cmake() {
    local version whose
    if command -v cmake >/dev/null; then
        version=$(cmake --version | sed -n '1s/.* //p')
        whose="the installed cmake ($(command -v cmake))"
    else
        version=$(LC_ALL=C apt-cache policy cmake 2>/dev/null | sed -nE 's/^ *Candidate: ([0-9]+:)?([0-9.]+).*/\2/p')
        whose="the cmake of this release"
        [[ $version ]] || return 0
    fi
    [[ $(printf '%s\n%s\n' "$least_cmake" "$version" | sort -V | head -n 1) == "$least_cmake" ]] ||
        fail "$whose is $version, but cleat needs $least_cmake or later (Debian 12, Ubuntu 22.04)" \
            "a later one without an upgrade of the system: python3 -m pip install cmake" \
            "(with pip from the package python3-pip; as a user it goes to ~/.local/bin, which must be in PATH); then run this again"
}

# A cmake from another source, pip for example, is as good as the package.
without_cmake() {
    if command -v cmake >/dev/null; then sed '/^cmake$/d'; else cat; fi
}

missing_required() {
    missing_packages "${packages[@]}" | without_cmake
}

# virtual_card_packages: the newest clang of which this release also has libclc, as optional packages, one per line. The packages libclc-N
# exclude each other, so an installed one decides.
virtual_card_packages() {
    local version installed loss="the tests of the virtual card are skipped"
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'libclc-[0-9][0-9]' 2>/dev/null | sed -n 's/^installed libclc-//p' | tail -n 1) || true
    for version in ${installed:-19 18 17 16 15 14}; do
        if available "libclc-$version" && available "clang-$version"; then
            printf '%s\n' "clang-$version:$loss" "libclc-$version:$loss"
            return
        fi
    done
    echo "libclc:$loss"
}

# all_optional: those of the tests depend on the package lists.
all_optional() {
    printf '%s\n' "${optional[@]}"
    if $tests; then
        virtual_card_packages
        echo "rocm-device-libs:the tests of the virtual AMD cards are skipped"
    fi
}

# missing_of_all: the packages to install, one per line; optional ones only if this release has them.
missing_of_all() {
    local word
    missing_required
    while read -r word; do
        ! available "${word%%:*}" || missing_packages "${word%%:*}"
    done < <(all_optional)
}

is_root_without_asking() {
    ((EUID == 0)) || sudo -n true 2>/dev/null
}

install_missing() {
    local missing log
    mapfile -t missing < <(missing_of_all)
    ((${#missing[@]})) || return 0
    # Optional packages are not worth a password prompt.
    [[ $(missing_required) ]] || is_root_without_asking || return 0
    log=$(mktemp)
    # shellcheck disable=SC2064 # the present name
    trap "rm -f '$log'" EXIT
    update_lists "$log" "${missing[@]}"
    check_cmake
    mapfile -t missing < <(missing_of_all)
    install_packages "$log" "${missing[@]}"
}

say_what_is_left_out() {
    local word
    while read -r word; do
        [[ ! $(missing_packages "${word%%:*}") ]] || echo "setup: without ${word%%:*}, which this release does not have or which is not installed: ${word#*:}"
    done < <(all_optional)
}

packages=("${build_packages[@]}")
optional=("${optional_packages[@]}")
tests=false
case ${1:-} in
"") ;;
--tests)
    packages+=("${test_packages[@]}")
    optional+=("${optional_test_packages[@]}")
    tests=true
    ;;
--print)
    printf '%s\n' "${build_packages[@]}" | grep -v '^pocl-'
    exit 0
    ;;
--help | -h)
    usage
    exit 0
    ;;
*)
    usage >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    check_by_hand
    check_cmake
else
    if command -v cmake >/dev/null; then check_cmake; fi
    install_missing
    say_what_is_left_out
    echo "setup: all required packages are installed"
fi

# say_what_several_devices_need: MPI is not a dependency; users with several devices learn of it here.
say_what_several_devices_need() {
    command -v dpkg-query >/dev/null && [[ $(missing_packages "${mpi_packages[@]}") ]] || return 0
    echo "setup: to train on several devices (cleat train --devices): apt-get install ${mpi_packages[*]}, then build again"
}
say_what_several_devices_need
"$(dirname "$0")/driver_hints.sh"
