#!/usr/bin/env bash
# Cross-compiles the libraries that cleat needs for 64-bit Windows into PREFIX, from Debian's source packages; does nothing if they are there.
#   tools/package/windows_libraries.sh PREFIX
#   cmake -B build-win -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE=PREFIX/toolchain.cmake
# PREFIX/licences has a file for each library, PREFIX/versions.txt the versions; remove PREFIX to get later ones. A package comes from this
# release, or, if the mirror lacks its files, from a later one. apt checks the signature of the lists, and by these each file.
# Needs g++-mingw-w64-x86-64-posix, nasm, dpkg-dev, wine64, and the packages of tools/setup.sh.
set -euo pipefail

packages=(clblast hwloc libinih cjson utf8proc pcre2 xxhash libpng1.6 libjpeg-turbo tiff zlib protobuf-c rhash cmocka)
later_releases=(trixie sid)

fail() {
    printf 'windows: %s\n' "$@" >&2
    exit "${status:-1}"
}

# apt TOOL ARGUMENT...: with separate sources; those of the system stay as they are.
apt() {
    "$1" -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$work/lists" \
        -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root -o APT::Update::Error-Mode=any "${@:2}"
}

# update LINE...: the lists of source packages of these mirrors and releases.
update() {
    printf 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s main\n' "$@" >"$work/sources.list"
    apt apt-get update
}

# write_sources: the system's mirror, as a source of sources; fills `releases`. Exit status 77: there is no network.
write_sources() {
    local lines mirror release
    # shellcheck disable=SC2016 # apt's variables
    mapfile -t lines < <(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Component: main' 'Origin: Debian' | sort -u)
    mapfile -t releases < <(printf '%s\n' "${lines[@]#* }" | sort -r)
    mirror=$(printf '%s\n' "${lines[@]}" | grep -v -- - | head -n 1 | cut -d' ' -f1)
    [[ $mirror ]] || fail "apt has no package list of Debian: apt-get update (on Ubuntu, build in a container of Debian)"
    mkdir -p "$work"/{lists,cache/archives}/partial
    update "${lines[@]}" || status=77 fail "the lists of source packages could not be read (see above)"
    for release in "${later_releases[@]}"; do
        [[ " ${releases[*]} " != *" $release "* ]] || continue
        if update "${lines[@]}" "$mirror $release"; then lines+=("$mirror $release") && releases+=("$release"); fi
    done
}

# fetch PACKAGE: unpacks it into sources/PACKAGE. Where no release has all files, the upstream archive alone, without Debian's patches.
fetch() {
    local folder=$work/download/$1 release part
    for part in --dsc --tar-only; do
        for release in "${releases[@]}"; do
            rm -rf "$folder" && mkdir -p "$folder" "$work/sources/$1"
            (cd "$folder" && apt apt-get source --download-only --only-source ${part#--dsc} "$1/$release") >"$work/log" 2>&1 || continue
            if [[ $part == --dsc ]]; then
                dpkg-source --no-check -x "$folder"/*.dsc "$work/unpacked" >/dev/null 2>&1 && mv -T "$work/unpacked" "$work/sources/$1"
            else
                tar -xf "$folder"/*.orig.tar.?z* --strip-components=1 -C "$work/sources/$1"
                echo "windows: $1 without Debian's patches: the mirror lacks them"
            fi
            { printf '%s, %s: ' "$1" "$release" && ls -m -w 0 "$folder"; } >>"$prefix/versions.txt"
            return
        done
    done
    cat "$work/log" >&2
    fail "the source of $1 could not be downloaded (see above)"
}

# mend_sources: of CLBlast's interface only what cleat calls, the rest would bring 60 more routines; the case of a header's name.
mend_sources() {
    sed -i 's/BaseTsd.h/basetsd.h/' "$work/sources/hwloc/contrib/windows/hwloc_config.h"
    cd "$work/sources/clblast/src"
    sed -i '/^template StatusCode PUBLIC_API/{:a;/;/!{N;ba};/ Gemm\(TempBufferSize\)\?<float>/!d}' clblast.cpp
    sed -i '/^CLBlastStatusCode /{:a;/\n}/!{N;ba};/ CLBlast\(SgemmWithTempBuffer\|SGemmTempBufferSize\|ClearCache\|OverrideParameters\)(/!d}' clblast_c.cpp
    sed -i '/^template <typename Real/,/^}/d;/^StatusCode FillCache/,/^}/d' api_common.cpp
}

# opencl: the headers, and the import library of the driver's OpenCL.dll, loaded at the first call: cleat starts without a driver and says so.
# Only OpenCL 1.2: a driver may have no more.
opencl() {
    cp -r /usr/include/CL "$prefix/include/"
    {
        printf 'LIBRARY OpenCL.dll\nEXPORTS\n'
        echo '#include <CL/cl.h>' | x86_64-w64-mingw32-gcc-posix -E -P -DCL_TARGET_OPENCL_VERSION=120 -I"$prefix/include" - | grep -oE '\bcl[A-Z][A-Za-z]+\(' | tr -d '(' | sort -u
    } >"$prefix/lib/OpenCL.def"
    x86_64-w64-mingw32-dlltool -d "$prefix/lib/OpenCL.def" -y "$prefix/lib/libOpenCL.a"
}

# licences: of each library, of the compiler's runtime and of the threads that are linked into every program.
licences() {
    local name found
    mkdir -p "$prefix/licences"
    cp /usr/share/doc/gcc-mingw-w64-base/copyright "$prefix/licences/gcc"
    cp /usr/share/doc/mingw-w64-common/copyright "$prefix/licences/mingw-w64"
    for name in "${packages[@]}"; do
        found=$(find "$work/sources/$name" -maxdepth 2 \( -path '*/debian/copyright' -o -name 'LICENSE*' -o -name 'COPYING*' \) | sort -r | grep -m 1 .) ||
            fail "the source of $name has no licence"
        cp "$found" "$prefix/licences/$name"
    done
}

[[ $# == 1 ]] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && prefix=$(cd "$1" && pwd)
for tool in x86_64-w64-mingw32-g++-posix nasm dpkg-source ninja /usr/lib/wine/wine64; do
    command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install g++-mingw-w64-x86-64-posix nasm dpkg-dev ninja-build wine64"
done
state=$(cat "$here/windows_libraries.sh" "$here"/windows/* <(x86_64-w64-mingw32-gcc-posix --version) | sha256sum)
[[ $(cat "$prefix/made_by" 2>/dev/null) != "$state" ]] || exit 0
[[ ! $(ls -A "$prefix") || -e $prefix/versions.txt ]] || fail "$prefix has other files: give an empty folder"
[[ $prefix != *[[:space:]]* ]] || fail "pkg-config needs a folder without blanks in its name, not '$prefix'"
rm -rf "${prefix:?}"/*
mkdir -p "$prefix"/{include,lib/pkgconfig}
touch "$prefix/versions.txt" # now these files are ours
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
write_sources
for package in "${packages[@]}"; do fetch "$package"; done
licences
(mend_sources)
opencl
cp "$here/windows/toolchain.cmake" "$prefix/"
{
    cmake -S "$here/windows" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$prefix/toolchain.cmake" \
        -DCMAKE_INSTALL_PREFIX="$prefix" -DSOURCES="$work/sources" && ninja -C "$work/build" install
} >"$prefix/build.log" 2>&1 || { tail -n 20 "$prefix/build.log" >&2 && fail "the libraries could not be built: $prefix/build.log has all of it"; }
# shellcheck disable=SC2046 # words of pkg-config
x86_64-w64-mingw32-gcc-posix "$here/windows/check.c" -o "$work/check.exe" -static $(PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig pkg-config --static --cflags --libs \
    hwloc inih libcjson libutf8proc libpcre2-8 libpng libjpeg libtiff-4 zlib libprotobuf-c librhash) -lclblast || fail "no program can be linked"
export WINEPREFIX=$work/wine WINEDEBUG=-all WINEDLLOVERRIDES="mscoree=;mshtml="
/usr/lib/wine/wine64 "$work/check.exe" 2>"$work/log" || fail "the libraries do not work with /usr/lib/wine/wine64"
/usr/lib/wine/wineserver64 -k
echo "$state" >"$prefix/made_by"
