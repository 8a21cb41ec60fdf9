#!/usr/bin/env bash
# Compiles everything with the compiler and the headers of the newest Debian, with warnings as errors. Nothing is run.
#   tests/roots/newest.sh WORK [SUITE]
#     WORK    folder for the packages and the system unpacked from them; kept, so a second call downloads nothing
#     SUITE   Debian's suite (default trixie)
# Needs root, for chroot, and apt-get; 120 MB of packages. Exit status 77: one of these is missing, or no network.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
[[ $# == 1 || $# == 2 ]] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
mkdir -p "$1"
work=$(cd "$1" && pwd) suite=${2:-trixie}
root=$work/$suite

skip() {
    echo "skipped: $*"
    exit 77
}

# The lists and archives of that release, separate from this machine's; no package counts as installed.
apt_of_suite() {
    apt-get -q -o Dir::State="$work/apt" -o Dir::Cache="$work/apt" -o Dir::State::status=/dev/null -o Dir::Etc::sourceparts=- \
        -o Dir::Etc::sourcelist="$work/apt/sources.list" -o APT::Sandbox::User=root "$@"
}

# Unpacked, not installed: no package scripts run, nothing is mounted.
make_system() {
    local packages package
    [[ ! -f $root.done ]] || return 0
    rm -rf --one-file-system "$root"
    mkdir -p "$work"/apt/{lists,archives}/partial "$root"/{dev,tmp}
    echo "deb http://deb.debian.org/debian $suite main" >"$work/apt/sources.list"
    mapfile -t packages < <("$top/tools/setup.sh" --print)
    apt_of_suite update || skip "the package lists of $suite cannot be downloaded"
    apt_of_suite -y --no-install-recommends --download-only install base-files bash dash coreutils findutils grep sed gawk libopenmpi-dev "${packages[@]}" ||
        skip "packages of $suite cannot be downloaded"
    # base-files first: /bin and /lib are links to folders of /usr
    for package in "$work"/apt/archives/base-files_*.deb "$work"/apt/archives/*.deb; do dpkg -x "$package" "$root"; done
    mknod -m 666 "$root/dev/null" c 1 3 || skip "device files cannot be created here"
    touch "$root.done"
}

((EUID == 0)) || skip "chroot requires root"
command -v apt-get >/dev/null || skip "this is not Debian or Ubuntu"
make_system
mkdir -p "$root/cleat"
find "$root/cleat" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git -C "$top" -c safe.directory="$top" ls-files -coz --exclude-standard |
    tar -C "$top" --null --files-from - --ignore-failed-read -c 2>/dev/null | tar -C "$root/cleat" -x
chroot "$root" env -i PATH=/usr/bin:/bin sh -c "gcc --version | head -n 1 && cd /cleat &&
    cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1 -DCLEAT_WERROR=ON -DCLEAT_VIRTUAL_CARDS=ON && ninja -k 0 -C build -j ${CLEAT_TEST_JOBS:-$(nproc)}"
