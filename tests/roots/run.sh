#!/usr/bin/env bash
# Runs tools/quickstart.sh and tools/test.sh quick in a bare system of another release, as right after its installation.
#   tests/roots/run.sh WORK SUITE root|user
#     WORK      folder for the systems and their packages; kept, so a second call downloads nothing (1 GB per suite)
#     SUITE     bullseye, bookworm, trixie (Debian 11, 12, 13), jammy, noble (Ubuntu 22.04, 24.04)
#     root|user who runs the two commands; the user has sudo without a password
# Requires root, debootstrap and network; takes 7 to 10 minutes on 2 cores. Logs: WORK/SUITE-WHO.log.
# Debian 11 has CMake 3.18: tools/setup.sh must refuse it before installing anything, and accept pip's cmake.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
[[ $# == 3 && $3 =~ ^(root|user)$ ]] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
mkdir -p "$1"
work=$(cd "$1" && pwd) suite=$2 who=$3
root=$work/$suite-$who
log=$work/$suite-$who.log

fail() {
    printf 'roots: %s\n' "$@" >&2
    exit 1
}

# The essential packages, and those required to fetch cleat and to become root.
make_bare_system() {
    local bare=$work/$suite mirror=http://deb.debian.org/debian components=main script=/usr/share/debootstrap/scripts
    [[ ! -f $bare.done ]] || return 0
    if [[ $suite =~ ^(jammy|noble)$ ]]; then
        mirror=http://archive.ubuntu.com/ubuntu components=main,universe
        script+=/gutsy # debootstrap's script for all later releases of Ubuntu
    else
        script+=/sid
    fi
    rm -rf --one-file-system "$bare"
    mkdir -p "$work/packages"
    # Debian lacks Ubuntu's keys; the system is deleted after the test.
    debootstrap --no-check-gpg --variant=minbase --cache-dir="$work/packages" --components="$components" --include=ca-certificates,git,sudo \
        "$suite" "$bare" "$mirror" "$script" >"$log" 2>&1 || fail "debootstrap failed: its log is $log"
    touch "$bare.done"
}

# This machine's name server and certificates; a copy of the source without ignored files.
make_system() {
    rm -rf --one-file-system "$root"
    cp -a --reflink=auto "$work/$suite" "$root"
    cp -L /etc/resolv.conf "$root/etc/"
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    inside root "useradd --create-home --shell /bin/bash user && echo 'user ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/user"
    mkdir "$root/cleat"
    git -C "$top" -c safe.directory="$top" ls-files -coz --exclude-standard | tar -C "$top" --null --files-from - --ignore-failed-read -c 2>/dev/null | tar -C "$root/cleat" -x
    inside root "chown -R $who: /cleat"
}

# inside WHO COMMAND: runs it in the system, with separate mount and process namespaces, and an empty environment.
inside() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --pid --fork --kill-child bash -c '
        mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" && mount --rbind /dev "$1/dev" &&
            exec chroot "$1" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin su - "$2" -c "$3"' _ "$root" "$1" "$2" </dev/null
}

# run WHAT COMMAND: runs it as $who; shows the end of its output if it fails.
run() {
    local seconds=$SECONDS
    printf '\n== %s\n' "$2" >>"$log"
    inside "$who" "cd /cleat && $2" >>"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        fail "$suite as $who: $1 failed: the log is $log"
    }
    printf '%s as %s: %s (%d s)\n' "$suite" "$who" "$1" $((SECONDS - seconds))
}

# A refusal takes seconds, names a remedy and installs nothing; the remedy works.
use_cmake_of_pip() {
    ! inside "$who" "cd /cleat && tools/setup.sh" >>"$log" 2>&1 || fail "$suite as $who: tools/setup.sh accepts CMake 3.18"
    tail -n 3 "$log" | grep -q 'pip install cmake' || fail "$suite as $who: tools/setup.sh does not name pip: the log is $log"
    ! inside root "command -v gcc" >/dev/null || fail "$suite as $who: tools/setup.sh installs before it refuses"
    inside root "apt-get -qy --no-install-recommends install python3-pip && python3 -m pip install cmake" >>"$log" 2>&1 || fail "pip failed: the log is $log"
}

((EUID == 0)) || fail "debootstrap and chroot require root"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
make_bare_system
make_system
: >"$log"
[[ $suite != bullseye ]] || use_cmake_of_pip
run "tools/quickstart.sh" "tools/quickstart.sh"
run "tools/quickstart.sh again" "tools/quickstart.sh | grep -q 'already finished'"
run "tools/test.sh quick" "tools/test.sh quick"
tail -n 1 "$log"
rm -rf --one-file-system "$root"
