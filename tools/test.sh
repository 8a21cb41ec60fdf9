#!/usr/bin/env bash
# Builds and tests cleat. The last line is `N passed, N failed, N skipped`; the exit status is 0 when nothing failed.
#   tools/test.sh [STEP ...]
#     quick      default build, tests that take seconds (ctest -L quick), format (default)
#     ci         what continuous integration runs for each change: format, clang, newest, default_short, sanitize_short, thread, package,
#                windows
#     all        what it runs each night: every step but default_short, sanitize_short and roots
#     default    gcc, warnings are errors, every test; default_short: without those labelled slow or long
#     newest     compiles everything in the newest Debian, unpacked into a folder; needs root and network
#     oclgrind   kernels under Oclgrind: one small row per op, data races
#     sanitize   AddressSanitizer and UndefinedBehaviorSanitizer: all tests but the slow ones and those that repeat host code of others;
#                sanitize_short: the quick ones
#     thread     ThreadSanitizer: every program that starts threads and needs no device but the virtual card
#     clang      the library and the program with clang, warnings are errors, and without the optional dygraphs
#     valgrind   the quick tests without a device under memcheck: values that were never set
#     fuzz       the parsers under libFuzzer (clang), 10 s each; CLEAT_FUZZ_SECONDS for more
#     package    install into a folder and use the package: pkg-config, CMake, shared, static, the program; the offline archive
#     windows    cross build, its tests and its archive under wine; the libraries stay in CLEAT_WINDOWS_LIBRARIES (default: the user's cache)
#     opencl     a few device tests on other implementations of OpenCL that are installed; in `all` if CLEAT_TEST_OPENCL is set
#     format     clang-format makes no changes; opening lines of source files; sizes and links of the READMEs; type names; words; mutants; commits
#     roots      not in `all`: quickstart and quick in bare systems of Debian 11, 12, 13, Ubuntu 22.04, 24.04; needs root, debootstrap, network;
#                two hours
# Environment: CLEAT_TEST_DEVICE (as --device; default auto), CLEAT_TEST_JOBS (default: number of
# CPUs; tests: one more), CLEAT_TEST_BUILD (default build-tests), CLEAT_TEST_OPENCL (pocl,intel,rusticl,oclgrind,virtual-t4,...; intel, and windows-intel
# in the step windows, are downloaded if they are named).
# Builds and caches of compiled kernels are kept in CLEAT_TEST_BUILD: a second call is faster.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
builds=${CLEAT_TEST_BUILD:-$top/build-tests}
jobs=${CLEAT_TEST_JOBS:-$(nproc)}
steps_of_a_change=(format clang newest default_short sanitize_short thread package windows)
every_step=(format default newest oclgrind valgrind sanitize thread clang fuzz package windows ${CLEAT_TEST_OPENCL:+opencl})
passed=0 failed=0 skipped=0
failures=()

usage() {
    sed -n '2,26s/^# \{0,1\}//p' "$0"
}

title() {
    printf '\n== %s (%d s)\n' "$*" "$SECONDS"
}

pass() {
    passed=$((passed + 1))
}

# flunk WHAT [LOG]: one failure, with the compiler's first errors or the end of its log.
flunk() {
    failed=$((failed + 1))
    failures+=("$1")
    [[ -z ${2:-} ]] || compiler_errors "$2" || tail -n 40 "$2"
    printf 'FAILED: %s\n' "$1"
}

# compiler_errors LOG: fails if there are none. Other files compile on after an error and fill the end of the log.
compiler_errors() {
    local errors
    errors=$(grep -m 10 -E -A 5 '(^|: )(fatal )?error: |^CMake Error|undefined reference to' "$1") || return 1
    printf '%s\nthe whole log: %s\n' "$errors" "$1"
}

# skip WHAT: one thing that was not tested, and why.
skip() {
    skipped=$((skipped + 1))
    printf 'skipped: %s\n' "$1"
}

# check WHAT COMMAND...: counts the command as a test; shows what it prints when it fails.
check() {
    local what=$1 log=$builds/check.log
    shift
    if "$@" >"$log" 2>&1 </dev/null; then pass; else flunk "$what" "$log" && return 1; fi
}

# check_or_skip WHAT COMMAND...: as check; exit status 77 skips, for the reason in the last line.
check_or_skip() {
    local what=$1 log=$builds/check.log status=0
    shift
    "$@" >"$log" 2>&1 </dev/null || status=$?
    case $status in
    0) pass && return ;;
    77) skip "$what: $(tail -n 1 "$log")" ;;
    *) flunk "$what" "$log" ;;
    esac
    return 1
}

# build NAME TARGETS OPTION...: configures and builds $builds/NAME; counts only a failure.
build() {
    local name=$1 folder=$builds/$1 log=$builds/$1.log targets
    read -ra targets <<<"$2"
    shift 2
    if cmake -S "$top" -B "$folder" -G Ninja -DCLEAT_VIRTUAL_CARDS=ON -DCLEAT_TEST_CACHE="$builds/cache" "$@" >"$log" 2>&1 </dev/null &&
        cmake --build "$folder" --parallel "$jobs" --target "${targets[@]}" >>"$log" 2>&1 </dev/null; then
        return
    fi
    flunk "build '$name'" "$log"
    return 1
}

# attribute NAME FILE: of the first <testsuite> of a JUnit file.
attribute() {
    tr '\n\t' '  ' <"$2" | sed -E 's/.*<testsuite ([^>]*)>.*/\1/; s/(.*)<.*/\1/' | grep -oE "\b$1=\"[0-9]+\"" | head -n 1 | grep -oE '[0-9]+'
}

# run_tests NAME CTEST-OPTION...: runs tests of a build and adds them up.
run_tests() {
    local name=$1 report=$builds/$1.xml log=$builds/$1.ctest.log total bad not_run
    shift
    rm -f "$report"
    # One more than cores: some tests wait for most of their time, for a slow loader or a driver that hangs.
    ctest --test-dir "$builds/$name" --parallel "$((jobs + 1))" --output-on-failure --no-tests=error --output-junit "$report" "$@" \
        </dev/null 2>&1 | tee "$log" | grep -vE '^ *Start |^Test project|^Internal ctest' || true
    if [[ ! -f $report ]]; then
        flunk "ctest of build '$name'" "$log"
        return
    fi
    total=$(attribute tests "$report") bad=$(attribute failures "$report")
    not_run=$(($(attribute skipped "$report") + $(attribute disabled "$report")))
    passed=$((passed + total - bad - not_run)) failed=$((failed + bad)) skipped=$((skipped + not_run))
    ((not_run == 0)) || sed -nE 's/^[[:space:]]*[0-9]+ - ([^ ]+) \(Skipped\).*/skipped: \1/p' "$log"
    ((bad == 0)) || mapfile -t -O "${#failures[@]}" failures < <(sed -nE 's/^[[:space:]]*[0-9]+ - ([^ ]+) \((Failed|Timeout|SEGFAULT|.*[Ee]xception.*|.*aborted.*|Not Run)\).*/\1 ['"$name"']/p' "$log")
}

# --- steps

# With sanitizers gcc warns of cases that cannot occur. -g1 has the line numbers of their reports, and compiles a quarter faster than -g.
sanitizer_options=(-DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -g1")

# As gcc of Ubuntu compiles by default: checked sizes of buffers, and results that must be used.
fortified=(-DCMAKE_C_FLAGS="-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2")

# build_default [TARGETS [WERROR]]
build_default() {
    build default "${1:-all}" -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Release -DCLEAT_WERROR="${2:-ON}" "${fortified[@]}"
}

# Without -Werror, as users build: a newer compiler may warn of something that ours does not.
step_quick() {
    ! build_default all OFF || run_tests default -L quick
    step_format
}

# default_tests LABELS: those of the default build without these labels.
default_tests() {
    touch "$builds/default.started"
    if build_default; then
        run_tests default -LE "$1"
        check_local_memory
    fi
}

step_default() {
    default_tests 'oclgrind|valgrind'
}

step_default_short() {
    default_tests 'slow|long|oclgrind|valgrind'
}

# Checks the kernels that the tests of the step compiled: on PoCL no function may share local memory among groups.
check_local_memory() {
    if command -v python3 >/dev/null; then
        check_or_skip "local memory on PoCL" "$top/tests/pocl_local_memory.py" "$builds/cache/pocl" --since "$builds/default.started" || true
    else
        skip "local memory on PoCL: python3 is not installed"
    fi
}

step_oclgrind() {
    if ! command -v oclgrind >/dev/null; then
        skip "kernels under Oclgrind: oclgrind is not installed"
    else
        ! build_default || run_tests default -L oclgrind
    fi
}

step_valgrind() {
    if ! command -v valgrind >/dev/null; then
        skip "values that were never set: valgrind is not installed"
    else
        ! build_default || run_tests default -L valgrind
    fi
}

step_sanitize() {
    # Left out: scripts that run no code of ours, the pages of report.page again in a browser; and what repeats host code of
    # other tests with other kernels or through a notebook, since kernels are compiled without sanitizers.
    ! build sanitize all "${sanitizer_options[@]}" -DCLEAT_SANITIZE=address,undefined ||
        run_tests sanitize -LE slow -E '^(cl\.lint|cli\.(driver_hints|matrix|trained_on)|report\.browser|virtual_card\.(t4|v100|a100|h100)\..*|notebooks\.execute|ops\..*_mma\..*(bf16|dot))$'
}

step_sanitize_short() {
    ! build sanitize all "${sanitizer_options[@]}" -DCLEAT_SANITIZE=address,undefined || run_tests sanitize -L quick
}

step_thread() {
    ! build thread "core_span_log data_loader data_rna_dataset data_encode data_image_file data_images data_masks device_build_threads monitor_monitor ranks_worker ranks_shared tensorboard_tensorboard tokenizer_tokenizer tokenizer_train train_data_parallel virtual_card virtual_card_queue virtual_card_ptx_faults" "${sanitizer_options[@]}" -DCLEAT_SANITIZE=thread ||
        run_tests thread -R '^(core\.span_log|data\.(loader|rna_dataset|encode|image_file|images|masks)|monitor\.monitor|ranks\.shared|tensorboard\.tensorboard|tokenizer\.(tokenizer|train)|train\.data_parallel|virtual_card\.(queue|ptx_faults|t4\.build_threads))$'
}

# The warnings are of clang's front end: without optimization it gives the same ones in a quarter of the time.
step_clang() {
    if ! command -v clang >/dev/null; then
        skip "build with clang: clang is not installed"
    elif build clang all -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 -DCLEAT_TESTS=OFF -DCLEAT_WERROR=ON -DDYGRAPHS_FOLDER=OFF; then
        pass
        if command -v python3 >/dev/null; then
            check "reports without dygraphs" python3 "$top/tests/report/test_page.py" "$builds/clang/cleat" drawings || true
        else
            skip "reports without dygraphs: python3 is not installed"
        fi
    fi
}

step_newest() {
    local log=$builds/newest.log status=0
    CLEAT_TEST_JOBS=$jobs "$top/tests/roots/newest.sh" "$builds/newest" >"$log" 2>&1 </dev/null || status=$?
    case $status in
    0) pass ;;
    77) skip "the newest Debian: $(tail -n 1 "$log")" ;;
    *) flunk "build in the newest Debian" "$log" ;;
    esac
}

step_fuzz() {
    local log=$builds/fuzz.log status=0
    CLEAT_FUZZ_BUILD=$builds/fuzz CLEAT_FUZZ_SEED=1 CLEAT_TEST_JOBS=$jobs "$top/tests/fuzz/run.sh" "${CLEAT_FUZZ_SECONDS:-10}" >"$log" 2>&1 </dev/null || status=$?
    case $status in
    0) passed=$((passed + $(grep -c ' inputs ' "$log"))) ;;
    77) skip "fuzzing: $(tail -n 1 "$log")" ;;
    *) flunk "fuzzing" "$log" ;;
    esac
}

step_package() {
    # Both train: with the compiled kernels of the tests, and without the user's caches.
    local cache caches
    cache=$(realpath -m "$builds/cache")
    caches=(env CLEAT_CACHE_DIR="$cache/cleat" POCL_CACHE_DIR="$cache/pocl")
    if build_default; then
        check "package" "${caches[@]}" "$top/tests/package/check.sh" "$builds/default" "$builds/package" || true
        if command -v patchelf >/dev/null; then
            check "offline archive" "${caches[@]}" "$top/tests/package/check_tarball.sh" "$builds/default" "$builds/tarball" || true
        else
            skip "offline archive: patchelf is not installed"
        fi
    fi
}

# With the compiled kernels of the other builds: wine's OpenCL is that of this machine.
step_windows() {
    local tool caches wine=/usr/lib/wine
    export CLEAT_WINDOWS_LIBRARIES=${CLEAT_WINDOWS_LIBRARIES:-${XDG_CACHE_HOME:-$HOME/.cache}/cleat-windows-libraries}
    for tool in x86_64-w64-mingw32-g++-posix nasm dpkg-source $wine/wine64; do
        command -v "$tool" >/dev/null || { skip "the build for Windows: $tool is not installed" && return; }
    done
    [[ $(uname -m) == x86_64 && $(</etc/os-release) == *$'\nID=debian'* ]] || { skip "the build for Windows: it is made on Debian, x86-64" && return; }
    check_or_skip "libraries for Windows" "$top/tools/package/windows_libraries.sh" "$CLEAT_WINDOWS_LIBRARIES" || return 0
    if build windows all -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$CLEAT_WINDOWS_LIBRARIES/toolchain.cmake" -DCLEAT_VIRTUAL_CARDS=OFF; then
        run_tests windows -LE 'slow|long' -E '^ops\..*_(mma\.|[0-9]+_cores)' # these differ from others in kernels alone
        WINEPREFIX=$builds/windows/wine $wine/wineserver64 -k || true
        build_default "cleat virtual_card" || return 0
        caches=$(realpath -m "$builds/cache")
        check "archive for Windows" env CLEAT_CACHE_DIR="$caches/cleat" POCL_CACHE_DIR="$caches/pocl" CLEAT_WINDOWS_BUILD="$builds/windows" \
            "$top/tests/package/check_windows.sh" "$builds/default" "$builds/windows-archive" || true
        check_or_skip "Intel's driver for Windows" "$top/tests/package/check_windows_driver.sh" "$builds/default" "$builds/windows/cleat.exe" \
            "$builds/windows-driver" || true
    fi
}

# Ops of the step `opencl`, one of each kind: OP:ROW[:STORAGE].
opencl_ops=(gelu:2 layer_norm:1 softmax:0 linear:5:f16 attention:1:f32 conv:0:f32 embedding:1 lstm:0:f32 dropout:1 adamw:0)

# run_opencl WHAT COMMAND...: one test of an implementation.
run_opencl() {
    local what=$1 log=$builds/opencl.log status=0 begin=$SECONDS
    shift
    timeout -k 10 900 "$@" >"$log" 2>&1 </dev/null || status=$?
    case $status in
    0) pass && printf 'passed: %s (%d s)\n' "$what" $((SECONDS - begin)) ;;
    77) skip "$what" ;;
    124 | 137) flunk "$what (longer than 900 s)" "$log" ;;
    *) flunk "$what" "$log" ;;
    esac
}

# opencl_with NAME: a trajectory in two precisions, the device's own test and the ops on an implementation, if it is installed; on the
# quicker ones also training runs.
opencl_with() {
    local name=$1 folder=$builds/default cases=(device_device "${opencl_ops[@]/#/ops_}") variables status=0 precision program row storage case
    "$top/tests/opencl.sh" "$name" "$folder" "$builds/opencl" >"$builds/opencl.env" 2>"$builds/opencl.log" || status=$?
    case $status in
    0) ;;
    77) skip "$name: $(<"$builds/opencl.log")" && return ;;
    *) flunk "$name" "$builds/opencl.log" && return ;;
    esac
    mapfile -t variables <"$builds/opencl.env"
    for precision in f32 f16; do
        run_opencl "$name: trajectory in $precision" env "${variables[@]}" "$folder/cleat" verify --quiet --precision "$precision" \
            "$top/tests/golden/text.safetensors"
    done
    [[ $name != pocl && $name != intel ]] || cases+=(train_half)
    for case in "${cases[@]}"; do
        IFS=: read -r program row storage <<<"$case"
        run_opencl "$name: $case" env "${variables[@]}" ${row:+CLEAT_TEST_ROW="$row"} ${storage:+CLEAT_TEST_STORAGE="$storage"} \
            "$folder/tests/$program"
    done
}

# The same ops, with the rows of the step `oclgrind`: it interprets kernels, and a trajectory would take hours.
opencl_with_oclgrind() {
    local ops
    if command -v oclgrind >/dev/null; then
        printf -v ops '|%s' "${opencl_ops[@]%%:*}"
        run_tests default -L oclgrind -R "^oclgrind\\.(${ops#|})\\."
    else
        skip "oclgrind: it is not installed"
    fi
}

step_opencl() {
    local names name programs=("${opencl_ops[@]%%:*}")
    IFS=, read -ra names <<<"${CLEAT_TEST_OPENCL:-pocl,intel,rusticl,oclgrind,virtual-t4,virtual-a100}"
    build_default "cleat virtual_card device_device train_half ${programs[*]/#/ops_}" || return 0
    for name in "${names[@]}"; do
        [[ $name != windows-intel ]] || continue # in the step windows
        printf -- '-- %s (%d s)\n' "$name" "$SECONDS"
        if [[ $name == oclgrind ]]; then opencl_with_oclgrind; else opencl_with "$name"; fi
    done
}

step_roots() {
    local suite who
    for suite in bullseye bookworm trixie jammy noble; do
        for who in root user; do
            check "bare $suite as $who" "$top/tests/roots/run.sh" "$builds/roots" "$suite" "$who" || true
        done
    done
}

# Subjects, bodies and sizes of commits.
check_history() {
    check_or_skip "commits" "$top/tests/history.sh" || true
    check "commits, self-test" "$top/tests/history.sh" --self-test || true
}

# Releases of clang-format format differently: the one of Debian 12 decides.
step_format() {
    local program
    check "opening lines of source files" "$top/tests/opening_lines.sh" || true
    check "READMEs" "$top/tests/readmes.sh" || true
    check "files at the top" "$top/tests/top_level.sh" || true
    check_history
    check "the training loop knows no family" "$top/tests/train_knows_no_family.sh" || true
    check "numbers that kernels and the host share" "$top/tests/shared_numbers.sh" || true
    check "system headers" "$top/tests/system_headers.sh" || true
    if command -v python3 >/dev/null; then
        check "names of types" "$top/tests/type_names.py" || true
        check "names of types, self-test" "$top/tests/type_names.py" --self-test || true
        check "words" "$top/tests/words.py" || true
        check "words, self-test" "$top/tests/words.py" --self-test || true
        check "lists of mutants" "$top/tests/mutants/rows.py" || true
        check "local memory on PoCL, self-test" "$top/tests/pocl_local_memory.py" --self-test || true
    else
        skip "names of types, words, lists of mutants: python3 is not installed"
    fi
    program=$(command -v clang-format-14 || command -v clang-format || true)
    if [[ -z $program || $("$program" --version) != *" 14."* ]]; then
        skip "format: clang-format 14 is not installed"
        return
    fi
    mapfile -t files < <(
        find "$top"/include "$top"/src "$top"/tools "$top"/tests -name '*.[ch]'
        find "$top"/cl -name '*.cl' -o -name '*.clh'
    )
    check "format (clang-format -i mends it)" "$program" --dry-run -Werror --ferror-limit=5 "${files[@]}" || true
}

# --- all of it

choose_steps() {
    local word
    steps=()
    for word in "${@:-quick}"; do
        case $word in
        ci) steps+=("${steps_of_a_change[@]}") ;;
        all) steps+=("${every_step[@]}") ;;
        --help | -h) usage && exit 0 ;;
        *)
            declare -F "step_$word" >/dev/null || { usage >&2 && exit 2; }
            steps+=("$word")
            ;;
        esac
    done
}

main() {
    local step
    choose_steps "$@"
    [[ ${steps[*]} == format ]] || "$top/tools/setup.sh"
    mkdir -p "$builds"
    for step in "${steps[@]}"; do
        title "$step"
        "step_$step"
    done
    title "done"
    ((${#failures[@]} == 0)) || printf 'failed: %s\n' "${failures[@]}"
    ((skipped == 0)) || echo "skipped tests lack a package: tools/setup.sh --tests installs those of Debian and Ubuntu; PyPI has others (tests/README.md)"
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    ((failed == 0 && passed > 0))
}

main "$@"
