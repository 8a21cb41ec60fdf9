#!/usr/bin/env bash
# `cleat runs`: values, order and settings of runs that tests/report/make_runs.py makes, against a table that Python
# computes from their files; folders that are no runs, damaged runs, a run that trains.
#   test_runs.sh CLEAT SOURCE_DIR
# ctest: quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
require_python

runs=$scratch/runs
mkdir -p "$runs/group" "$scratch/empty"
python3 "$2/tests/report/make_runs.py" "$runs" healthy overfit killed diverged one_eval interrupted
python3 "$2/tests/report/make_runs.py" "$runs/group" rna old resumed

cat >"$scratch/compare.py" <<'PYTHON'
import json, math, pathlib, sys

root, order = pathlib.Path(sys.argv[1]), sys.argv[2]
got = json.loads(pathlib.Path(sys.argv[3]).read_text())
states = {"killed": "stopped", "interrupted": "stopped", "diverged": "failed"}
wanted, settings = {}, {}
for log in root.rglob("metrics.jsonl"):
    name = str(log.parent.relative_to(root))
    if log.stat().st_size == 0:
        continue
    lines, section = {}, ""
    for line in (log.parent / "resolved.ini").read_text().splitlines():
        if line.startswith("["):
            section = line[1 : line.index("]")]
        elif "=" in line and line[0] not in "#;":
            key, value = line.split("=", 1)
            lines[f"{section}.{key.strip()}"] = value.strip()
    settings[name] = lines
    metric = order if order not in ("time", "name") else lines["run.metric"]
    evals = {}
    for line in log.read_text().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # cut off
        if record.get("kind") == "eval":
            value = record.get("values", record).get(metric)
            if value is not None and math.isfinite(value):
                evals[record["step"]] = (value, record["epoch"])  # a repeated step replaces the earlier one
    sign = -1 if metric in ("accuracy", "lddt") else 1
    best = min(evals.values(), key=lambda pair: (sign * pair[0], pair[1]), default=(None, None))
    wanted[name] = (metric, *best, states.get(name, "finished"), sign)
assert len(got["runs"]) == len(wanted) == 9, got["runs"]
for run in got["runs"]:
    metric, best, epoch, state, sign = wanted[run["name"]]
    assert (run["metric"], run["best_epoch"], run["state"]) == (metric, epoch, state), run
    assert best is None or run["ascends"] == (sign < 0), run
    assert best == run["best"] or abs(best - run["best"]) <= 1e-9 * abs(best), (run, best)
    assert run["model"] == settings[run["name"]]["model.type"], run
names = {key for one in settings.values() for key in one} - {"run.out", "model.type"}
differ = {key for key in names if len({one[key] for one in settings.values() if key in one}) > 1}
assert differ and all(set(run["settings"]) == differ for run in got["runs"]), (differ, got["runs"][0])
assert all(run["settings"][key] == settings[run["name"]].get(key) for run in got["runs"] for key in differ)
listed = [run["name"] for run in got["runs"]]
if order == "name":
    assert listed == sorted(listed), listed
elif order == "time":
    times = [run["seconds"] for run in got["runs"] if run["seconds"] is not None]
    assert times == sorted(times) and all(run["seconds"] is None for run in got["runs"][len(times):]), times
else:
    values = [wanted[name][4] * wanted[name][1] for name in listed if wanted[name][1] is not None]
    assert values == sorted(values) and all(wanted[name][1] is None for name in listed[len(values):]), values
PYTHON

# same_as_files ORDER: compares the JSON of the last command with the files of the runs. ORDER: a metric, time, name.
same_as_files() {
    cp "$scratch/out" "$scratch/table.json"
    exits 0 python3 "$scratch/compare.py" "$runs" "$1" "$scratch/table.json"
}

test_orders() {
    exits 0 "$cleat" runs "$runs" --json
    empty err
    same_as_files name
    exits 0 "$cleat" runs "$runs/" --json --sort time
    same_as_files time
    exits 0 "$cleat" runs "$runs" --json --sort accuracy
    same_as_files accuracy
    exits 0 "$cleat" runs "$runs" --json --metric lddt --sort lddt # its family says that larger is better
    same_as_files lddt
    exits 0 "$cleat" runs "$runs" --json --sort loss --metric loss
    same_as_files loss
}

test_table() {
    exits 0 "$cleat" runs "$runs" --sort accuracy
    says out "train.learning_rate"
    lacks out "model.type"
    lacks out "run.out"
    checks=$((checks + 1))
    [[ $(sed -n 2p "$scratch/out") == healthy* && $(wc -l <"$scratch/out") == 10 ]] || complain "healthy is not the first"
    exits 0 env --chdir="$scratch" "$cleat" runs
    says out group/rna
    exits 0 "$cleat" runs "$runs/healthy" # a run itself
    says out "50/50"
    # characters, not bytes, count; the predictions of a cross-validation are no folder without a run
    mkdir -p "$scratch/folds/out-of-fold"
    cp -r "$runs/healthy" "$scratch/folds/größer"
    cp -r "$runs/healthy" "$scratch/folds/larger"
    exits 0 "$cleat" runs "$scratch/folds"
    empty err
    says out "größer  resnet"
    says out "larger  resnet"
}

# Folders without a run count once each, damaged runs are named, links are not followed.
test_skipped() {
    mkdir -p "$runs/nothing/below/it" "$runs/group/notes" "$runs/damaged" "$runs/cut"
    : >"$runs/damaged/metrics.jsonl"
    printf '[train\nepochs' >"$runs/cut/resolved.ini"
    ln -s .. "$runs/group/up"
    exits 0 "$cleat" runs "$runs" --json
    says err "folders without a run: 2; the first: $runs/group/notes"
    says err "damaged runs: 2; the first: $runs/cut"
    same_as_files name
    exits 0 "$cleat" --quiet runs "$runs/group"
    says err "folders without a run: 1"
    rm -r "$runs/nothing" "$runs/group/notes" "$runs/damaged" "$runs/cut" "$runs/group/up"
}

test_control_characters() {
    cp -r "$runs/healthy" "$scratch/evil"
    mv "$scratch/evil" "$runs/"$'evil\e[31m'
    exits 0 "$cleat" runs "$runs"
    says out 'evil?[31m'
    lacks out $'\e'
    rm -r "$runs/"$'evil\e[31m'
}

# The lock of a run that trains.
test_running() {
    exits 0 flock "$runs/killed/.train.lock" "$cleat" runs "$runs/killed"
    says out running
    exits 0 "$cleat" runs "$runs/killed"
    says out stopped
}

test_refusals() {
    exits 1 "$cleat" runs "$scratch/nowhere"
    says err "no such folder"
    exits 1 "$cleat" runs "$scratch/empty"
    says err "there is no run in or below"
    exits 1 "$cleat" runs "$runs" --sort no_such_metric
    says err no_such_metric
    exits 2 "$cleat" runs "$runs" --sort loss --metric accuracy
    exits 2 "$cleat" runs "$runs" "$runs"
}

test_orders
test_table
test_skipped
test_control_characters
test_running
test_refusals
finish
