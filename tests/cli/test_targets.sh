#!/usr/bin/env bash
# Numbers and several labels from tables of real tweets: training, resuming, evaluation, prediction, and what is said about
# settings and tables that do not suit.
#   test_targets.sh CLEAT SOURCE_DIR
# ctest: device
set -euo pipefail
cleat=$1 source=$2
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
tweets=${CLEAT_SHARED:-$source/../shared}/data/tweets_sentiment/train.csv
[[ -f $tweets ]] || { echo "$tweets is missing"; exit 77; }
command -v python3 >/dev/null || exit 77

cd "$scratch"
python3 - "$tweets" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8")))[:300]
value = {"negative": -1, "neutral": 0, "positive": 1}
def table(name, header, lines, mark=","):
    with open(name, "w", newline="") as file:
        csv.writer(file, delimiter=mark).writerows([header, *lines])
table("ratings.csv", ["text", "stars", "length of it"],
      [[r["text"], str(3 + 2 * value[r["sentiment"]]).replace("3", "3,25"), len(r["text"])] for r in rows], ";")
table("lengths.csv", ["text", "long"], [[r["text"], len(r["text"])] for r in rows])
table("labels.csv", ["text", "label"],
      [[r["text"], "|".join(n for n, there in (("asks", "?" in r["text"]), ("shouts", "!" in r["text"])) if there)] for r in rows])
table("flags.csv", ["text", "asks", "shouts"], [[r["text"], "?" in r["text"], int("!" in r["text"])] for r in rows])
END

small=(--device "${CLEAT_TEST_DEVICE:-auto}" --set run.self_check=never --set loss.label_smoothing=0 --set train.schedule=constant --set train.warmup_steps=0
    --set train.epochs=2 --set model.d_model=32 --set model.heads=2 --set model.d_ff=32 --set model.layers=1 --set data.vocabulary_size=500)
numbers=(--set data.path=ratings.csv --set 'data.label_column=stars "length of it"' --set model.problem_type=regression --set run.metric=spearman)
labels=(--set data.path=labels.csv --set data.label_column=label --set model.problem_type=multi_label --set run.metric=macro_f1)
train() { "$cleat" train "$source/profiles/tweets_sentiment.ini" "${small[@]}" --quiet "$@"; }

# --- numbers

exits 0 "$cleat" train "$source/profiles/tweets_sentiment.ini" "${small[@]}" "${numbers[@]}" --out whole
says out spearman
says out "length of it_mae"
says err "deviation"
says err "fields are separated by ';'"
exits 0 train "${numbers[@]}" --out parts --set train.epochs=1
exits 0 train "${numbers[@]}" --out parts --resume
for file in model.safetensors optim.safetensors targets.json; do
    exits 0 cmp "whole/$(cat whole/last)/$file" "parts/$(cat parts/last)/$file"
done
exits 0 "$cleat" predict --checkpoint whole --data ratings.csv --out told --quiet
exits 0 python3 -c '
import csv
rows = list(csv.DictReader(open("told/predictions.csv")))
assert list(rows[0]) == ["id", "stars", "length of it"] and len(rows) == 300
assert 20 < sum(float(r["length of it"]) for r in rows) / 300 < 140, rows[:3]'
exits 0 "$cleat" report whole
exits 0 grep -q 'truth: stars ' whole/report.html

# --- folds, each with the scale of its training data

check=$source/tests/cli/members.py
exits 0 train "${numbers[@]}" --set data.path=lengths.csv --set data.label_column=long --folds 2 --out folds
for k in 1 2; do exits 0 "$cleat" predict --checkpoint "folds/fold-$k" --data lengths.csv --out "fold$k" --quiet; done
exits 0 python3 "$check" folded lengths.csv long folds fold1/predictions.csv fold2/predictions.csv
exits 0 "$cleat" predict --checkpoint folds --data lengths.csv --out both --quiet
exits 0 python3 "$check" numbers both/predictions.csv fold1/predictions.csv fold2/predictions.csv
exits 0 "$cleat" eval --checkpoint folds --data lengths.csv --split all --json --quiet

# --- labels: in a list, or in columns; thresholds of the validation data

exits 0 train "${labels[@]}" --out listed
exits 0 python3 -c '
import json
last = open("listed/best").read().strip()
state = json.load(open("listed/" + last + "/targets.json"))
assert [t["name"] for t in state["targets"]] == ["asks", "shouts"]
assert all(0 < t["threshold"] < 1 and t["threshold"] != 0.5 for t in state["targets"]), state
log = [json.loads(line) for line in open("listed/metrics.jsonl")]
print(max(r["macro_f1"] for r in log if "macro_f1" in r))'
logged=$(cat "$scratch/out")
exits 0 "$cleat" eval --checkpoint listed --split val --json --quiet
cp "$scratch/out" told.json
exits 0 python3 -c 'import json, sys; assert abs(json.load(open(sys.argv[1]))["macro_f1"] - float(sys.argv[2])) < 1e-6' told.json "$logged"
exits 0 "$cleat" predict --checkpoint listed --data labels.csv --out told_labels --quiet
exits 0 grep -q '^id,labels,asks,shouts$' told_labels/predictions.csv
exits 0 train "${labels[@]}" --set data.path=flags.csv --set "data.label_column=asks shouts" --out columns --set loss.class_weights=balanced
exits 0 "$cleat" export listed --format onnx --out listed.onnx
exits 0 grep -q '"asks","shouts"' listed.onnx

# --- without data, for several targets

exits 0 "$cleat" trace "$source/profiles/tweets_sentiment.ini" "${small[@]}" "${labels[@]}" --set data.path=synthetic --out traced --quiet \
    --schedule wait=0,warmup=0,active=1,repeat=1

# --- what does not suit

exits 1 train "${numbers[@]}" --set run.metric=accuracy --out bad
says err "its metrics are loss, mse, mae, r2, pearson, spearman"
exits 1 train "${numbers[@]}" --set loss.label_smoothing=0.1 --out bad
says err "set loss.label_smoothing=0"
exits 1 train "${numbers[@]}" --set loss.class_weights=balanced --out bad
says err "set loss.class_weights=none"
exits 1 train "${numbers[@]}" --set data.labels=a --out bad
says err "remove data.labels"
exits 1 train "${numbers[@]}" --set data.label_column=text --out bad
says err "not a number; correct it"
exits 1 train "${numbers[@]}" --set data.label_column=star --out bad
says err "no column 'star'; did you mean 'stars'?"
exits 1 train --set data.path=ratings.csv --set "data.label_column=length of it" --out bad
says err "model.problem_type=regression run.metric=spearman"
exits 1 "$cleat" eval --checkpoint listed --quiet --set data.path=flags.csv --set data.label_column=asks
says err "unknown label"
exits 1 "$cleat" train "$source/profiles/text_classify.ini" "${numbers[@]}" --init "$source/tests/published/distilbert_labels" --out bad
says err "contradicts"
says err "problem_type = multi_label"
finish
