#!/usr/bin/env bash
# profiles/series_auto.ini: what it takes from a monthly series, where the numbers go, baselines, dates of forecasts.
#   test_series_auto.sh CLEAT SOURCE_DIR
# ctest: device
set -euo pipefail
cleat=$1 source=$2
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

small=(--device "${CLEAT_TEST_DEVICE:-auto}" --set run.self_check=never)
auto=$source/profiles/series_auto.ini

# 120 ends of months with a trend, a season and noise; a second file continues it by 60 months.
make_data() {
    python3 - <<'END'
import calendar, math, random
random.seed(3)
for name, months in ("sales.csv", 120), ("longer.csv", 180):
    random.seed(3)
    with open(name, "w") as out:
        print("month,sold", file=out)
        for m in range(months):
            year, month = 2010 + m // 12, 1 + m % 12
            day = calendar.monthrange(year, month)[1]
            print("%d-%02d-%02d,%.3f" % (year, month, day, 100 + m + 30 * math.sin(m * math.pi / 6) + random.gauss(0, 2)), file=out)
END
}

# Compares the baselines of the last evaluation with those computed here, from the numbers of resolved.ini.
check_baselines() {
    exits 0 python3 - "$1" <<'END'
import csv, json, sys
values = [float(row["sold"]) for row in csv.DictReader(open("sales.csv"))]
train, val, horizon, season = 84, 18, 12, 12
mean = sum(values[:train]) / train
variance = sum((v - mean) ** 2 for v in values[:train]) / train
errors = {"persistence": 0, "seasonal": 0, "blend": 0}
count = 0
for last in range(train - 1, train + val - horizon):
    for h in range(horizon):
        truth, repeated, year_ago = values[last + 1 + h], values[last], values[last + 1 + h - season]
        count += 1
        for name, guess in ("persistence", repeated), ("seasonal", year_ago), ("blend", (repeated + year_ago) / 2):
            errors[name] += (guess - truth) ** 2 / variance
found = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
found = [record for record in found if "blend_mse" in str(record)][-1]
found = found.get("metrics", found)
for name, error in errors.items():
    assert abs(found[name + "_mse"] - error / count) < 1e-4 * error / count, (name, found[name + "_mse"], error / count)
best = min(errors.values()) / count
baseline = json.load(open(sys.argv[1] + "/examples.json"))["baseline"]
assert abs(baseline["value"] - best) < 1e-4 * best, (baseline, best)
END
}

cd "$scratch"
require_device
require_python
make_data

exits 0 "$cleat" train "$auto" data.path=sales.csv train.epochs=2 --out run "${small[@]}"
says err "data.season = 12: of the calendar's periods in steps of 1 month, the differences"
says err "data.horizon = 12: as usual in steps of 1 month"
says err "data.lookback = 36: half of the training rows"
says err "data.anchor = season: the season has 0."
says err "37 training, 7 validation and 7 test windows"
for file in run/resolved.ini run/ckpt-*/profile.ini; do
    for line in "lookback = 36" "horizon = 12" "season = 12" "anchor = season" "step = auto"; do
        exits 0 grep -qx "$line" "$file"
    done
done
check_baselines run

# The checkpoint needs no profile: forecasts of another file, with the ends of its months.
exits 0 "$cleat" predict --checkpoint run --data longer.csv --out next --device "${CLEAT_TEST_DEVICE:-auto}"
exits 0 test "$(tail -n 12 next/predictions.csv | cut -d , -f 2 | cut -c 1-10 | paste -s -d ' ')" = "2025-01-31 2025-02-28 \
2025-03-31 2025-04-30 2025-05-31 2025-06-30 2025-07-31 2025-08-31 2025-09-30 2025-10-31 2025-11-30 2025-12-31"
exits 0 "$cleat" eval --checkpoint run --data longer.csv --split all --device "${CLEAT_TEST_DEVICE:-auto}"
says out "blend_mse"

# Resuming takes the same numbers from the same file; another file is refused.
exits 0 "$cleat" train "$auto" data.path=sales.csv train.schedule=constant train.epochs=1 --out two "${small[@]}"
exits 0 "$cleat" train "$auto" data.path=sales.csv train.schedule=constant train.epochs=2 --out two --resume "${small[@]}"
says err "resumed from"
exits 1 "$cleat" train "$auto" data.path=longer.csv train.schedule=constant train.epochs=3 --out two --resume "${small[@]}"
says err "other data"

# Without the data, a plan has the sizes of the family; with them, those of the data.
exits 0 "$cleat" plan "$auto" data.path=nowhere.csv --card t4
exits 0 "$cleat" plan "$auto" data.path=sales.csv --card t4
says err "data.lookback = 36"
exits 1 "$cleat" train "$auto" data.path=nowhere.csv "${small[@]}"
says err "nowhere.csv: no such file or folder (data.path)"

# Settings that are given stay; a wrong word is answered.
exits 0 "$cleat" train "$auto" data.path=sales.csv data.horizon=3 data.season=none train.epochs=1 --out three "${small[@]}"
says err "data.lookback = 12: four horizons"
says err "data.anchor = last: there is no season"
exits 0 grep -qx "season = none" three/resolved.ini
exits 1 "$cleat" config "$auto" data.season=automatic
says err "auto"

# A file whose rows follow no rule: the dates of forecasts past its end stay empty, with a warning.
python3 -c '
import datetime, random
random.seed(1)
day = datetime.date(2020, 1, 1)
print("day,value")
for row in range(150):
    print("%s,%d" % (day, random.randrange(100)))
    day += datetime.timedelta(days=random.randrange(1, 40))' >odd.csv
exits 0 "$cleat" train "$auto" data.path=odd.csv data.gaps=rows train.epochs=1 --out odd "${small[@]}"
exits 0 "$cleat" predict --checkpoint odd --data odd.csv --out odd_next --device "${CLEAT_TEST_DEVICE:-auto}"
says err "times past the end of the data are empty"
exits 0 test -z "$(tail -n 1 odd_next/predictions.csv | cut -d , -f 2)"

# Times with an offset keep it, and a quote of names and files in UTF-8.
sed -e 1s/sold/Müller/ -e 's/,/T00:00:00+05:30,/' -e 1s/T00:00:00+05:30// sales.csv >"zön.csv"
exits 0 "$cleat" train "$auto" "data.path=zön.csv" train.epochs=1 --out zone "${small[@]}"
exits 0 "$cleat" predict --checkpoint zone --data "zön.csv" --out zone_next --device "${CLEAT_TEST_DEVICE:-auto}"
exits 0 test "$(tail -n 1 zone_next/predictions.csv | cut -d , -f 1-3)" = "2019-12-31T00:00:00+05:30,2020-12-31T00:00:00+05:30,12"
sed 's/+05:30,.*/+05:30,Müller/' "zön.csv" >text.csv
exits 1 "$cleat" train "$auto" data.path=text.csv --out none "${small[@]}"
says err "'Müller' is 'Müller', not a finite number; if it names the series of the row, set data.series_column"

# Many shops in one file, of which one is new when the forecast is made, and one too short to be trained on.
python3 - <<'END'
import csv, math
rows = list(csv.reader(open("sales.csv")))[1:]
shops = {"north": rows, "south": [(t, "%.3f" % (1000 - 5 * float(v))) for t, v in rows[30:]], "new": rows[-9:]}
def write(name, shops):
    with open(name, "w", newline="") as out:
        table = csv.writer(out)
        table.writerow(["shop", "month", "sold"])
        table.writerows(sorted(([shop, t, v] for shop, lines in shops.items() for t, v in lines), key=lambda row: row[1]))
write("shops.csv", shops)
write("later.csv", {"north": rows, "west": rows})
END
exits 0 "$cleat" train "$auto" data.path=shops.csv data.series_column=shop data.lookback=24 train.epochs=2 --out shops "${small[@]}"
says err "shops.csv: 3 series, one model for the 2 with training windows"
says err "1 of 3 series are shorter than a window (36 rows) and are left out"
exits 0 grep -q '^series,south,,$' shops/ckpt-E002-*/series.csv
exits 0 grep -q '"column":"[a-z]*: sold"' <(tr -d ' ' <shops/examples.json | sed 's/:sold/: sold/')
exits 0 "$cleat" predict --checkpoint shops --data later.csv --out later --device "${CLEAT_TEST_DEVICE:-auto}"
says err "1 of 2 series are not in the training; they are standardised by their own rows"
exits 0 test "$(head -n 1 later/predictions.csv)" = "series,made_at,time,step,sold"
exits 0 test "$(grep -c '^west,2019-12-31T00:00:00,' later/predictions.csv)" = 12
exits 0 grep -q '^north,2019-12-31T00:00:00,2020-02-29T00:00:00,2,' later/predictions.csv
exits 0 "$cleat" eval --checkpoint shops --data shops.csv --split test --device "${CLEAT_TEST_DEVICE:-auto}"
says out "blend_mse"
exits 1 "$cleat" train "$auto" data.path=shops.csv data.features=sold --out none "${small[@]}"
says err "data.series_column"
finish
