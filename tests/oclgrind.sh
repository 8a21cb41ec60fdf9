#!/usr/bin/env bash
# Runs an op test under Oclgrind and fails if Oclgrind reports anything (invalid accesses, data races,
# divergent barriers), because reports alone do not change the exit status.
#   oclgrind.sh OCLGRIND PROGRAM ROW[:STORAGE]
set -euo pipefail

oclgrind=$1 program=$2 row=$3
report=$(mktemp)
trap 'rm -f "$report"' EXIT

export CLEAT_TEST_ROW=${row%%:*}
if [[ $row == *:* ]]; then export CLEAT_TEST_STORAGE=${row#*:}; fi

status=0
"$oclgrind" --data-races --log "$report" "$program" || status=$?
if [[ -s $report ]]; then
    echo "Oclgrind reports:"
    head -n 60 "$report"
    exit 1
fi
exit "$status"
