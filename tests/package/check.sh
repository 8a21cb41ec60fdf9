#!/usr/bin/env bash
# Installs a build into a separate folder and uses it like an independent project: CMake and pkg-config, with the shared
# library, the static one and the engine only, and the program.
#   check.sh BUILD WORK      BUILD: a configured and built tree; WORK: a folder to be replaced
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$1 work=$2
prefix=$work/prefix

step() {
    printf -- '-- %s\n' "$*"
}

install_it() {
    rm -rf "$work"
    mkdir -p "$work"
    cmake --install "$build" --prefix "$prefix" >"$work/install.log"
    libraries=$(dirname "$(find "$prefix" -name libcleat.a)")
    export PKG_CONFIG_PATH=$libraries/pkgconfig
}

# Installed text files must not contain paths of the build tree: such a package would work on one machine
# only.
check_paths() {
    ! grep -rlIF -e "$build" -e "$(cd "$here/../.." && pwd)" "$libraries" "$prefix/include" "$prefix/share"
}

# Lists the declarations of the public headers as NAME STATE, one per line: "documented" if a comment stands
# after the declaration or before it, or before the declarations that it follows without an empty line.
list_declarations() {
    awk 'FNR == 1 { comment = declaration = inside = 0; name = "" }
        inside { if (/\*\//) inside = 0; comment = 1; next }
        /^ *\/\*/ && !name { if (!/\*\//) inside = 1; comment = 1; next }
        /^$/ && !name { comment = 0; next }
        /^CLEAT_API/ { name = $0 }
        name && !/^CLEAT_API/ { name = name " " $0 }
        name && /;/ {
            trailing = /\/\*/
            match(name, /cleat_[a-z0-9_]+\(/)
            print substr(name, RSTART, RLENGTH - 1), comment || trailing ? "documented" : "bare"
            name = ""
            if (trailing && !/\*\//) inside = 1
            next
        }
        !name && !/^ / && !/^enum {.*};$/ { comment = 0 }' "$prefix"/include/cleat/*.h
}

# The library exports exactly the functions that the headers declare, each with a comment. Names without the prefix
# cleat_ could collide with a user's.
check_exports() {
    local faults=0 header
    nm -D --defined-only "$libraries/libcleat.so" | awk '{ print $3 }' | sort >"$work/exported"
    list_declarations | sort >"$work/declared"
    [[ -s $work/declared ]]
    report() {
        sed "s/^/$1: /"
        faults=$((faults + 1))
    }
    cut -d' ' -f1 "$work/declared" | sort -u | comm -23 "$work/exported" - >"$work/undeclared"
    cut -d' ' -f1 "$work/declared" | sort -u | comm -13 "$work/exported" - >"$work/missing"
    grep ' bare$' "$work/declared" | cut -d' ' -f1 >"$work/bare" || true
    for header in "$prefix"/include/cleat/*.h; do
        if grep -qE '^typedef struct (cleat_[a-z_]+) \1;' "$header" && ! grep -q '[Tt]hread' "$header"; then
            echo "${header##*/}"
        fi
    done >"$work/threads"
    [[ ! -s $work/undeclared ]] || report 'exported, but in no public header' <"$work/undeclared"
    [[ ! -s $work/missing ]] || report 'declared, but not exported' <"$work/missing"
    [[ ! -s $work/bare ]] || report 'declared without a comment' <"$work/bare"
    [[ ! -s $work/threads ]] || report 'has a handle, but does not document thread safety' <"$work/threads"
    ((faults == 0))
}

use_cmake() {
    cmake -S "$here" -B "$work/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >"$work/cmake.log"
    cmake --build "$work/cmake" >>"$work/cmake.log"
    "$work/cmake/consumer_shared"
    "$work/cmake/consumer_static"
    "$work/cmake/consumer_engine"
}

use_pkg_config() {
    local flags=() libs=()
    read -ra flags <<<"$(pkg-config --cflags cleat)"
    flags+=("-DCONSUMER_WANTS=\"$(pkg-config --modversion cleat)\"")
    read -ra libs <<<"$(pkg-config --libs cleat)"
    cc "$here/consumer.c" "${flags[@]}" "${libs[@]}" -o "$work/consumer_shared"
    LD_LIBRARY_PATH=$libraries "$work/consumer_shared"
    read -ra libs <<<"$(pkg-config --static --libs cleat)"
    cc "$here/consumer.c" "${flags[@]}" "${libs[@]/#-lcleat/-l:libcleat.a}" -o "$work/consumer_static"
    "$work/consumer_static"
}

# Every program of include/cleat/README.md: the C text after a line "<!-- program: NAME.c -->".
extract_programs() {
    awk -v folder="$1" '/^<!-- program: / { name = $3; next }
        name && /^```c$/ { inside = 1; next }
        inside && /^```$/ { close(folder "/" name); inside = 0; name = ""; next }
        inside { print > (folder "/" name) }' "$here/../../include/cleat/README.md"
}

# run_readme_programs FLAG...: compiles the programs like a user, with more warnings, and links them with these flags only.
# Exit code 77: no device is available to run one.
run_readme_programs() {
    local source count=0 code
    for source in "$work"/readme/*.c; do
        cc -std=c17 -Wall -Wextra -Werror "$source" "-I$prefix/include" "-L$libraries" "$@" -lm -o "${source%.c}"
        code=0
        (cd "$work/readme" && LD_LIBRARY_PATH=$libraries "${source%.c}") || code=$?
        if ((code == 77)); then
            printf '%s: skipped, no device\n' "${source##*/}"
        elif ((code != 0)); then
            printf '%s: exit code %d\n' "${source##*/}" "$code" >&2
            return 1
        fi
        count=$((count + 1))
    done
    ((count == 2)) # both exist
}

# The whole engine links without the rest of the library and that part's dependencies, and contains none of their code.
check_engine() {
    local engine=$libraries/libcleat-engine.a room name
    cc -shared -Wl,-z,defs -Wl,--whole-archive "$engine" -Wl,--no-whole-archive -lclblast -lOpenCL -lhwloc -lm -o "$work/engine.so"
    nm -g --defined-only "$engine" | awk 'NF == 3 { print $3 }' | sort >"$work/engine"
    for room in "$build"/libcleat_*.a; do
        name=${room##*/libcleat_}
        [[ -d $here/../../src/engine/${name%.a} ]] || nm -g --defined-only "$room"
    done | awk 'NF == 3 { print $3 }' | sort >"$work/rest"
    [[ -s $work/engine && -s $work/rest ]]
    ! comm -12 "$work/engine" "$work/rest" | grep .
}

# Manual pages and completions are installed where man and the shells search.
check_texts() {
    local share=$prefix/share
    test -s "$share/man/man1/cleat-train.1"
    test -s "$share/man/man5/cleat-settings.5"
    bash -n "$share/bash-completion/completions/cleat"
    test -s "$share/zsh/site-functions/_cleat"
    test -s "$share/fish/vendor_completions.d/cleat.fish"
}

# Runs outside the source tree; the kernels are embedded in the program.
use_program() {
    local cleat=$prefix/bin/cleat
    cd "$work"
    unset CLEAT_KERNEL_DIR
    "$cleat" --version
    "$cleat" data make rna --out data --count 24
    "$cleat" train "$prefix/share/cleat/profiles/rna_small.ini" --set data.path=data --set model.d_model=32 --set model.heads=2 \
        --set model.layers=1 --set model.d_ff=64 --set train.warmup_steps=1 --set train.epochs=1 --out run
    test -s run/resolved.ini
}

step install
install_it
step "no paths of this machine"
check_paths
step "exported names and their documentation"
check_exports
step "a project with CMake"
use_cmake
step "a project with pkg-config"
use_pkg_config
step "the programs of include/cleat/README.md"
mkdir "$work/readme"
extract_programs "$work/readme"
run_readme_programs -lcleat
step "the same with the engine alone"
check_engine
run_readme_programs -lcleat-engine -lclblast -lOpenCL -lhwloc
step "manual pages and completions"
check_texts
step "the installed program"
use_program
