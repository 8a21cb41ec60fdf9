# Sourced by scripts that compare a run of several ranks with the run of one process in the folder `one`.

# close_to_one RUN LIMIT: checks that its parameters differ by at most LIMIT, relative to their norm.
close_to_one() {
    local difference
    checks=$((checks + 1))
    difference=$("$source/tests/ranks/compare_parameters.py" "$scratch/one/$(cat "$scratch/one/last")" "$scratch/$1/$(cat "$scratch/$1/last")" norm) || difference=1
    awk "BEGIN { exit !($difference <= $2) }" || complain "$1: parameters differ by $difference"
    echo "$1: parameters differ by $difference"
}
