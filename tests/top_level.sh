#!/usr/bin/env bash
# Checks that the top level of the repository has only the files and folders that belong there: packages that were
# downloaded, or logs, are not committed.
#   tests/top_level.sh [FOLDER]      FOLDER: another git checkout than this one
set -euo pipefail

cd "${1:-$(dirname "$0")/..}"
known='CMakeLists.txt|src|cl|include|profiles|tests|tools|README.md|LICENSE|findings|\.ci|\.clang-format|\.gitignore|\.git[a-z]*'
git rev-parse --git-dir >/dev/null 2>&1 || exit 0 # an archive
others=$(git ls-files | cut -d/ -f1 | sort -u | grep -vxE "$known" || true)
[[ -z $others ]] || {
    printf 'does not belong at the top:\n%s\n' "$others"
    exit 1
}
