#!/usr/bin/env bash
# Makes OUT/cleat-VERSION-windows-x86_64.zip, which runs where it is unpacked, beside any driver: the program with its profiles, the library
# for C, licences; and of it the wheel for Windows.
#   tools/package/windows.sh OUT [LIBRARIES [BUILD]]
# LIBRARIES: the folder of windows_libraries.sh, which fills it (default: OUT/libraries). BUILD: a build with them (default: OUT/build).
# Needs what that script needs.
set -euo pipefail

(($# >= 1 && $# <= 3)) || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..
mkdir -p "$1" && out=$(cd "$1" && pwd)
libraries=${2:-$out/libraries} build=${3:-$out/build}
"$here/windows_libraries.sh" "$libraries"
libraries=$(cd "$libraries" && pwd)
[[ $# == 3 ]] ||
    cmake -S "$top" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$libraries/toolchain.cmake" -DCLEAT_TESTS=OFF >"$out/build.log"
ninja -C "$build" cleat libcleat_shared >>"$out/build.log" || { tail -n 20 "$out/build.log" >&2 && exit 1; }

version=$(sed -n 's/^project(cleat VERSION \([0-9.]*\).*/\1/p' "$top/CMakeLists.txt")
name=cleat-$version-windows-x86_64
rm -rf "${out:?}/$name" "$out/$name.zip"
mkdir -p "$out/$name"/{profiles,lib}
for file in cleat.exe libcleat.dll; do x86_64-w64-mingw32-strip -o "$out/$name/$file" "$build/$file"; done
x86_64-w64-mingw32-dlltool -d "$build/libcleat.def" -l "$out/$name/lib/cleat.lib" # also for MinGW's -lcleat
cp "$top"/profiles/*.ini "$out/$name/profiles/"
cp "$top/LICENSE" "$out/$name/LICENSE.txt"
cp -r "$libraries/licences" "$top/include" "$out/$name/"
sed 's/$/\r/' "$here/quickstart.bat" >"$out/$name/quickstart.bat"
sed 's/$/\r/' >"$out/$name/README.txt" <<END
cleat $version

The graphics driver brings OpenCL; nothing else is needed. A double click on quickstart.bat trains a first model and
shows it in the browser (if Windows warns of a program that it does not know: More info, Run anyway). In a terminal
in this folder (type cmd or powershell into the Explorer's address bar):

    .\cleat doctor
    .\cleat data make rna --out data
    .\cleat train rna_small --set data.path=data

Where cleat proposes a command, type .\cleat instead of cleat, or add this folder to Path. Write "my data" without a
backslash before the last quote. In PowerShell, lists need quotes: "train.epochs=1,2". Shells change letters in | and >:
use --data FILE and --out FOLDER.

For C: include\cleat\, libcleat.dll, and lib\cleat.lib to link with. For Python: the wheel cleat-$version-py3-none-win_amd64.whl.
END
(cd "$out" && cmake -E tar cf "$name.zip" --format=zip "$name")
echo "$out/$name.zip: $(stat -c %s "$out/$name.zip") bytes"
python3 "$top/tools/python/make_wheel.py" "$out/$name" --out "$out"
