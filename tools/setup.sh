#!/usr/bin/env bash
# Installs the build dependencies of cleat (Debian 12 or later, Ubuntu 24.04 or later). Does nothing, without network, if all are installed.
#   tools/setup.sh            dependencies to build and run
#   tools/setup.sh --tests    also the dependencies of tools/test.sh
set -euo pipefail

build_packages=(gcc libc6-dev cmake ninja-build pkg-config ocl-icd-opencl-dev opencl-c-headers pocl-opencl-icd libclblast-dev libhwloc-dev
    libinih-dev libcmocka-dev libcjson-dev libutf8proc-dev libxxhash-dev libpng-dev
    libjpeg-dev zlib1g-dev libprotobuf-c-dev protobuf-c-compiler librhash-dev libjs-dygraphs)
test_packages=(clang oclgrind clang-format binutils diffutils python3 groff-base)
# Ubuntu has Chromium as a snap only: there the browser test of reports is skipped.
grep -qs '^ID=ubuntu' /etc/os-release || test_packages+=(chromium)
least_cmake=3.25

exec 3>&2 # for `fail`: where it is called, stderr may go into a log

fail() {
    printf 'setup: %s\n' "$@" >&3
    exit 1
}

usage() {
    sed -n '2,4s/^# \{0,1\}//p' "$0"
}

# missing_packages NAME...: those that dpkg does not know as installed, one a line.
missing_packages() {
    local name
    for name in "$@"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || echo "$name"
    done
}

# Without dpkg nothing can be installed here; what is needed may be there all the same.
check_by_hand() {
    local tool library libraries=(OpenCL clblast hwloc inih libcjson libutf8proc libxxhash libpng libjpeg zlib libprotobuf-c librhash)
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

install_packages() {
    local log
    become_root "$@"
    log=$(mktemp)
    # shellcheck disable=SC2064 # the name of this moment
    trap "rm -f '$log'" EXIT
    echo "setup: installing $*"
    if ! as_root apt-get -q update >"$log" 2>&1 </dev/null; then
        tail -n 5 "$log" >&2
        echo "setup: the package list could not be updated (no network?); continuing with the existing one" >&2
    fi
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -qy --no-install-recommends install "$@" >"$log" 2>&1 </dev/null; then
        tail -n 15 "$log" >&2
        fail "apt-get could not install: $*" "its last lines are shown above; check the network and the mirror in /etc/apt"
    fi
}

check_cmake() {
    local version
    version=$(cmake --version | sed -n '1s/.* //p')
    [[ $(printf '%s\n%s\n' "$least_cmake" "$version" | sort -V | head -n 1) == "$least_cmake" ]] ||
        fail "cmake is $version, but $least_cmake or later is required (Debian 12, Ubuntu 24.04)"
}

packages=("${build_packages[@]}")
tests=false
case ${1:-} in
"") ;;
--tests)
    packages+=("${test_packages[@]}")
    tests=true
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
else
    mapfile -t missing <<<"$(missing_packages "${packages[@]}")"
    if [[ ${missing[0]} ]]; then install_packages "${missing[@]}"; else echo "setup: all packages are installed"; fi
fi
check_cmake
"$(dirname "$0")/driver_hints.sh"
