#!/usr/bin/env bash
# tools/setup.sh on machines with made-up packages: what it would install, and what it reports as omitted.
#   test_setup.sh CLEAT SOURCE_DIR
# ctest: quick
set -euo pipefail
setup=$2/tools/setup.sh
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
mkdir "$scratch/bin"

# program NAME: writes stdin as a program.
program() {
    { echo '#!/usr/bin/env bash' && cat; } >"$scratch/bin/$1"
    chmod +x "$scratch/bin/$1"
}

# Like dpkg: a name or pattern without a package is an error.
program dpkg-query <<END
status=1
for name in "\${@:3}"; do
    while read -r package; do
        [[ \$package == \$name ]] || continue
        if [[ \$* == *'{Package}'* ]]; then echo "installed \$package"; else printf installed; fi
        status=0
    done <"$scratch/installed"
done
exit \$status
END
program apt-cache <<END
if grep -qxF "\$2" "$scratch/release"; then echo "\$2 | 1"; fi
END
program apt-get <<END
[[ "\$*" != *update* ]] || exit 0
for word; do [[ \$word == -* || \$word == install ]] || echo "\$word" >>"$scratch/installed"; done
END
program sudo <<'END'
while [[ $1 == -* ]]; do shift; done
exec "$@"
END

# machine PACKAGE...: nothing is installed; the release has these packages and those that a build and its tests need.
machine() {
    : >"$scratch/installed"
    (
        eval "$(sed -n '/^build_packages=(/,/)$/p; /^test_packages=(/p' "$setup")"
        # shellcheck disable=SC2154 # set by the line before
        printf '%s\n' "${build_packages[@]}" "${test_packages[@]}" "$@"
    ) >"$scratch/release"
}

# installs STATUS ARGUMENT...: runs setup.sh on that machine.
installs() {
    local status=$1
    shift
    exits "$status" env PATH="$scratch/bin:$PATH" CLEAT_SYSTEM_ROOT="$scratch" "$setup" "$@"
}

# has|has_not PACKAGE: check whether it was installed.
has() {
    checks=$((checks + 1))
    grep -qxF "$1" "$scratch/installed" || complain "$1 was not installed"
}
has_not() {
    checks=$((checks + 1))
    if grep -qxF "$1" "$scratch/installed"; then complain "$1 was installed"; fi
}

# No package is named libclc-N yet, so dpkg finds none.
machine clang-19 libclc-19 clang-15 libclc-15 rocm-device-libs valgrind
installs 0 --tests
for name in gcc libcmocka-dev clang-19 libclc-19 rocm-device-libs valgrind; do has "$name"; done
has_not libclc-15
lacks out "virtual"
says out "without oclgrind, which this release does not have"

# The packages libclc-N exclude each other: an installed one is kept.
machine clang-19 libclc-19 clang-15 libclc-15
echo libclc-15 >"$scratch/installed"
installs 0 --tests
has clang-15
has_not libclc-19
says out "without rocm-device-libs"

# A release without them: their tests are skipped, which is reported.
machine
installs 0 --tests
says out "without libclc, which this release does not have or which is not installed: the tests of the virtual card are skipped"

# A user needs neither.
machine clang-19 libclc-19
installs 0
has libcmocka-dev
for name in libclc-19 clang valgrind; do has_not "$name"; done
lacks out libclc
finish
