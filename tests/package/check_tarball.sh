#!/usr/bin/env bash
# Packs a build into the offline archive, moves it, and trains from it, unmodified and without network.
#   check_tarball.sh BUILD WORK      WORK: a folder to be replaced
# Exit code 77: patchelf is not installed. Symbols newer than glibc 2.35 are reported, but are not a fault on a newer system.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$1 work=$2

command -v patchelf >/dev/null || { echo "skipped: patchelf is not installed" && exit 77; }
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd)
code=0
"$here/../../tools/package/tarball.sh" "$build" "$work/out" || code=$?
# 3: this system's glibc is newer than that of the target systems.
newest=$(ldd --version | sed -n '1s/.* //p')
if ((code != 0)) && ! ((code == 3)); then exit "$code"; fi
if ((code == 3)) && [[ $(printf '%s\n2.35\n' "$newest" | sort -V | tail -n 1) == 2.35 ]]; then exit 1; fi
rm -rf "${work:?}"/out/cleat-*/ # only the archive is used
mkdir "$work/moved"
tar -xzf "$work"/out/cleat-*.tar.gz -C "$work/moved" --strip-components=1
cleat=$work/moved/bin/cleat

# Only the C and C++ libraries come from outside.
for file in "$cleat" "$work"/moved/lib/*.so*; do
    if ldd "$file" | grep -vE "$work/moved/|linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so"; then
        echo "${file##*/}: these are not from the archive" && exit 1
    fi
done
for file in LICENSE licences; do test -s "$work/moved/share/doc/cleat/$file"; done

offline=(unshare -r -n)
"${offline[@]}" true 2>/dev/null || { echo "unshare is not permitted: trained with the network" && offline=(); }
cd "$work"
"$cleat" data make rna --out data --count 24
"${offline[@]}" "$cleat" train "$work/moved/share/cleat/profiles/rna_small.ini" --set data.path=data --set model.d_model=32 \
    --set model.heads=2 --set model.layers=1 --set model.d_ff=64 --set train.warmup_steps=1 --set train.epochs=1 --out run
test -s run/last
