#!/usr/bin/env bash
# Builds the Debian packages cleat, cleat-mpi, libcleat0.2 and libcleat-dev for the release of Debian or Ubuntu it runs on.
#   tools/package/deb.sh OUT      OUT: the folder for the packages
# Needs build-essential, debhelper and the packages that tools/setup.sh installs. If lintian is installed, its errors
# and warnings are faults. Install with `apt-get install OUT/cleat_*.deb`.
set -euo pipefail

[[ $# == 1 ]] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

version=$(sed -nE 's/^project\(cleat VERSION ([0-9.]+).*/\1/p' "$top/CMakeLists.txt")
grep -q "^cleat ($version" "$here/debian/changelog" || { echo "deb: tools/package/debian/changelog has no entry of version $version" >&2 && exit 1; }
mkdir "$work/cleat"
for part in CMakeLists.txt LICENSE README.md src cl include profiles tools; do
    cp -r "$top/$part" "$work/cleat/"
done
cp -r "$here/debian" "$work/cleat/debian"
# The checkout's name is not part of the packages, nor are the compiler variables of the user's shell.
(cd "$work/cleat" && env -u CFLAGS -u LDFLAGS dpkg-buildpackage --build=binary --unsigned-changes --unsigned-buildinfo) >"$out/build.log" 2>&1 || {
    tail -n 20 "$out/build.log" >&2
    echo "deb: the packages could not be built; $out/build.log has all of it" >&2
    exit 1
}
cp "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$out/"
if command -v lintian >/dev/null; then
    (cd "$out" && lintian --allow-root --fail-on error,warning "cleat_${version}_$(dpkg --print-architecture).changes")
else
    echo "deb: lintian is not installed, the packages were not checked"
fi
ls "$out"/*.deb
