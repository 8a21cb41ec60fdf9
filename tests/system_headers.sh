#!/usr/bin/env bash
# Checks that headers of an operating system, and its macros, appear in src/engine/platform alone.
#   tests/system_headers.sh [FOLDER]      FOLDER: another source tree than this one
# Elsewhere <...> names a header of ISO C, of a library that CMakeLists.txt finds, or of cleat. What Windows has otherwise than ISO C
# (names of files and texts are not in UTF-8, ends of lines change) needs platform/files.h. Nor do functions of <math.h> for float
# appear that C libraries round differently: results of those for double, rounded to float, are the same bits everywhere.
set -euo pipefail

cd "${1:-$(dirname "$0")/..}"
iso='assert|ctype|errno|float|inttypes|limits|math|setjmp|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|time'
libraries='CL/[a-z_]+|cjson/cJSON|clblast_c|cleat/[a-z_]+|hwloc(/[a-z]+)?|ini|jerror|jpeglib|mpi|pcre2|png|protobuf-c/[a-z-]+|rhash|tiffio|utf8proc|xxhash|zlib'
faults=$(grep -rnE '^ *# *(include <|(if|ifdef|ifndef|elif).*\b(_WIN32|_WIN64|__MINGW32__|__MINGW64__|__linux__|__unix__|__APPLE__)\b)' \
    --include='*.[ch]' src tools include | grep -v '^src/engine/platform/' | grep -vE "#include <($iso|$libraries)\.h>" || true)
[[ -z $faults ]] || printf '%s\n' "$faults" 'use a header of src/engine/platform'
rounded=$(grep -rnE '\b(exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan|sinh|cosh|tanh|asin|acos|atan|atan2|erf|cbrt|hypot|lgamma)f\(' \
    --include='*.[ch]' src tools include || true)
[[ -z $rounded ]] || printf '%s\n' "$rounded" 'use the function for double, and round its result'
bare=$(grep -rlE '\b(fopen|freopen|getenv|strerror|remove|rename)\(' --include='*.[ch]' src tools | grep -v '^src/engine/platform/' | xargs -r grep -L '"platform/files.h"' || true)
[[ -z $bare ]] || printf '%s: include platform/files.h\n' $bare
[[ -d src/engine/platform && -z $faults && -z $rounded && -z $bare ]]
