#!/usr/bin/env bash
# Packs a built tree into cleat-VERSION-linux-ARCH.tar.gz, which runs where it is unpacked: no root, no network, no packages.
#   tools/package/tarball.sh BUILD OUT [--pocl WHEEL]
# BUILD: a configured and built tree; OUT: the folder for the archive; WHEEL: pocl_binary_distribution-3.0-*.whl
# (`pip download --no-deps pocl-binary-distribution`), which adds a CPU driver and " -pocl" to the name.
# The archive runs on systems with the C library of the build machine or a later one. For anybody's machine, build on Ubuntu 22.04
# (glibc 2.35); a newer symbol is reported by exit code 3, after the archive was written.
# Needs patchelf, and unzip for --pocl.
set -euo pipefail

usage() {
    sed -n '2,8s/^# \{0,1\}//p' "$0"
}

fail() {
    printf 'tarball: %s\n' "$@" >&2
    exit 1
}

here=$(cd "$(dirname "$0")" && pwd)
newest_glibc=2.35
# Of the system: the C library, and the C++ library, which a driver may need in a later version than ours.
of_the_system='^(ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so\.[0-9]+$'
# Drivers and layers may ask for the loader by its name; any other library gets a private name, so that a driver still loads its own.
keeps_its_name='^(libOpenCL|libcleat)\.so'

# needed FILE: the names of the libraries it asks for.
needed() {
    readelf -d "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p'
}

# path_of LIBRARY FILE: where the loader finds a library that FILE asks for.
path_of() {
    LD_LIBRARY_PATH=${pocl_libraries:-} ldd "$2" | awk -v name="$1" '$1 == name { print $3 }'
}

# private_name LIBRARY
private_name() {
    if [[ $1 =~ $keeps_its_name ]]; then echo "$1"; else echo "libcleat-${1#lib}"; fi
}

# bundle FILE: copies what FILE needs into lib/, and what that needs in turn; all are found by $ORIGIN.
bundle() {
    local file=$1 library path target
    while read -r library; do
        [[ ! $library =~ $of_the_system && $library != libcleat-* ]] || continue
        target=$tree/lib/$(private_name "$library")
        if [[ ! -e $target ]]; then
            path=$(path_of "$library" "$file")
            [[ -f $path ]] || fail "${file##*/} needs $library, which is not installed here"
            bundled+=("$library $path")
            [[ ${target##*/} == "$library" ]] || changes+=("$library ${target##*/}")
            install -m 755 "$path" "$target"
            bundle "$target"
        fi
    done < <(needed "$file")
}

# rename_libraries: every file of the tree asks for the private names, and looks for them beside itself.
rename_libraries() {
    local file change options
    for file in "$tree"/bin/* "$tree"/lib/*; do
        options=()
        for change in "${changes[@]}"; do
            options+=(--replace-needed "${change% *}" "${change#* }")
        done
        patchelf "${options[@]}" "$file"
        [[ ${file##*/} != libcleat-* ]] || patchelf --set-soname "${file##*/}" "$file"
        # shellcheck disable=SC2016 # the loader's word, not the shell's
        if [[ $file == */bin/* ]]; then patchelf --set-rpath '$ORIGIN/../lib' "$file"; else patchelf --set-rpath '$ORIGIN' "$file"; fi
    done
}

# The licences of what is bundled, from the packages that own the files.
copy_licences() {
    local entry path package
    mkdir -p "$tree/share/doc/cleat/licences"
    cp "$here/../../LICENSE" "$tree/share/doc/cleat/LICENSE"
    for entry in "${bundled[@]}"; do
        path=${entry#* }
        # The file's own name and that of its package may differ in /usr before /lib.
        package=$(dpkg-query -S "$(realpath "$path")" "/usr$(realpath "$path")" "${path#/usr}" "*/$(basename "$(realpath "$path")")" 2>/dev/null |
            sed -n '1s/:.*//p' || true)
        [[ -n $package && -f /usr/share/doc/$package/copyright ]] || fail "no licence was found for $path" "(Debian and Ubuntu have it in /usr/share/doc)"
        cp "/usr/share/doc/$package/copyright" "$tree/share/doc/cleat/licences/$package"
    done
}

# add_pocl WHEEL: PoCL and its files, in the layout of the wheel, which its library expects. The library of cleat looks for lib/cleat/cpu_driver.
add_pocl() {
    local folder=$tree/lib/cleat library
    mkdir -p "$folder/pocl"
    unzip -q "$1" -d "$folder/pocl" || fail "'$1' cannot be unpacked: is it a wheel of pocl-binary-distribution?"
    library=$(cd "$folder" && ls pocl/pyopencl/.libs/libpocl*.so) || fail "'$1' holds no libpocl"
    rm "$folder/pocl/pyopencl/.libs/pocl.icd" # names the library without its folder
    cp -r "$folder/pocl/pocl_binary_distribution/.libs/share/pocl/licenses" "$tree/share/doc/cleat/licences/pocl"
    ln -s "$library" "$folder/cpu_driver"
}

# The symbol versions that the tree needs must not be newer than those of the oldest system it is for.
check_symbols() {
    local file newest fault=0
    while IFS= read -r -d '' file; do
        newest=$(objdump -T "$file" 2>/dev/null | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1 || true)
        newest=${newest#GLIBC_}
        if [[ -n $newest && $(printf '%s\n' "$newest" "$newest_glibc" | sort -V | tail -n 1) != "$newest_glibc" ]]; then
            printf 'tarball: %s needs GLIBC_%s\n' "${file#"$tree/"}" "$newest" >&2
            fault=3
        fi
    done < <(find "$tree/bin" "$tree/lib" -type f -print0)
    ((fault == 0)) || printf 'tarball: newer than GLIBC_%s; for older systems, build on Ubuntu 22.04\n' "$newest_glibc" >&2
    return "$fault"
}

# pack NAME ARCHIVE: the folder NAME of OUT. The same bytes from the same build.
pack() {
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" -C "$out" -c "$1" | "${compress[@]}" >"$2"
}

bundled=() changes=() compress=(gzip -6n)

main() {
    local wheel build version name archive library code
    [[ $# == 2 || ($# == 4 && $3 == --pocl) ]] || { usage >&2 && exit 2; }
    build=$(cd "$1" && pwd) out=$2 wheel=${4:-}
    [[ -x $build/cleat ]] || fail "there is no program in $build: build it first"
    command -v patchelf >/dev/null || fail "patchelf is missing: apt-get install patchelf"
    mkdir -p "$out"
    out=$(cd "$out" && pwd)
    [[ ! $wheel ]] || command -v unzip >/dev/null || fail "unzip is missing: apt-get install unzip"
    version=$("$build/cleat" --version | sed -n '1s/^cleat //p')
    name=cleat-$version-linux-$(uname -m)
    tree=$out/$name

    rm -rf "$tree"
    cmake --install "$build" --prefix "$tree" --component program --strip >/dev/null
    cmake --install "$build" --prefix "$tree" --component library --strip >/dev/null
    # One folder, whatever the library folder of the build is.
    if [[ ! -d $tree/lib || ! -e $tree/lib/libcleat.so.0.2 ]]; then
        library=$(find "$tree" -name libcleat.so.0.2 | head -n 1)
        mkdir -p "$tree/lib"
        mv "$(dirname "$library")"/libcleat.so.* "$tree/lib/"
        find "$tree" -type d -empty -delete
    fi
    mv "$(realpath "$tree/lib/libcleat.so.0.2")" "$tree/lib/libcleat.so" && rm -f "$tree"/lib/libcleat.so.* && mv "$tree/lib/libcleat.so" "$tree/lib/libcleat.so.0.2"
    bundle "$tree/bin/cleat"
    bundle "$tree/lib/libcleat.so.0.2"
    rename_libraries
    copy_licences
    if [[ $wheel ]]; then add_pocl "$wheel"; fi
    cp "$here/tarball.txt" "$tree/README"
    archive=$out/$name${wheel:+-pocl}.tar.gz
    pack "$name" "$archive"
    code=0
    check_symbols || code=$?
    printf '%s  %s\n' "$archive" "$(du -h "$archive" | cut -f1)"
    exit "$code"
}

# card_tests.sh has the functions only.
[[ ${BASH_SOURCE[0]} != "$0" ]] || main "$@"
