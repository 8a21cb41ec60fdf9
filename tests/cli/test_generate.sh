#!/usr/bin/env bash
# `cleat generate`, and `eval --init`, with a small network that this test trains: sources of prompts, repeated drawing,
# ends of answers, errors, an interruption.
#   test_generate.sh CLEAT SOURCE_DIR
# ctest: device cost=20
set -euo pipefail
cleat=$1 source=$2
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
require_device
cd "$scratch"

device=${CLEAT_TEST_DEVICE:-auto}
small=(--device "$device" --set run.self_check=never)

# --- a model

mkdir folder
cp "$source/tests/data/chats/tokenizer.json" folder/
for ((i = 0; i < 40; ++i)); do
    printf '{"messages": [{"role": "user", "content": "say %d"}, {"role": "assistant", "content": "%d and %d"}]}\n' "$i" "$i" "$i"
done >chats.jsonl
exits 0 "$cleat" train "$source/profiles/text_lm.ini" "${small[@]}" model.d_model=32 model.heads=2 model.kv_heads=1 model.layers=2 model.d_ff=64 \
    model.max_positions=64 data.vocabulary=folder data.template=chatml data.path=chats.jsonl data.max_length=48 train.epochs=2 \
    train.learning_rate=1e-2 train.precision=f32 --out run

checks=$((checks + 1))
grep -q '^template = chatml$' run/resolved.ini || complain "resolved.ini does not name the template"

# completions FOLDER: the answers in its generated.jsonl, a line each
completions() { sed -n 's/, "truth": .*//; s/, "tokens": .*//; s/.*"completion": //p' "$1/generated.jsonl"; }
# same A B: checks that two files are equal; differ A B: that they are not
same() {
    checks=$((checks + 1))
    cmp "$1" "$2" >"$scratch/out" 2>&1 || complain "$1 and $2 differ"
}
differ() {
    checks=$((checks + 1))
    if cmp -s "$1" "$2"; then complain "$1 and $2 are equal"; fi
}
answer=("$cleat" generate --checkpoint run --max-tokens 12 "${small[@]}")

# --- prompts: an argument, lines, messages, pairs, a table, the standard input

exits 0 "${answer[@]}" --prompt "say 3" --out one
says err "1 answers: "
printf '%s\n' "say 3" "" "say 4" >two.txt
exits 0 "${answer[@]}" --data two.txt --out lines
printf '%s\n' '{"messages": [{"role": "user", "content": "say 3"}, {"role": "assistant", "content": "the truth"}]}' \
    '{"messages": [{"role": "user", "content": "say 4"}]}' >two.jsonl
exits 0 "${answer[@]}" --data two.jsonl --out messages
printf '%s\n' '{"prompt": "say 3"}' '{"prompt": "say 4", "completion": "4"}' >pairs.jsonl
exits 0 "${answer[@]}" --data pairs.jsonl --out pairs
printf 'prompt\nsay 3\nsay 4\n' >table.csv
exits 0 "${answer[@]}" --data table.csv --out table
for out in one lines messages pairs table; do completions $out >$out.txt; done
checks=$((checks + 1))
[[ $(wc -l <lines.txt) == 2 && $(wc -l <one.txt) == 1 ]] || complain "two prompts and one make $(wc -l <lines.txt) and $(wc -l <one.txt) rows"
for out in messages pairs table; do same lines.txt $out.txt; done
head -n 1 lines.txt >first.txt
same first.txt one.txt
# rows COUNT TEXT FOLDER: checks how many rows of generated.jsonl have the text
rows() {
    checks=$((checks + 1))
    [[ $(grep -cF -- "$2" "$3/generated.jsonl") == "$1" ]] || complain "not $1 rows of $3 have $2"
}
rows 1 '"truth": "the truth"' messages
rows 0 '"truth"' one
rows 1 '"id": "3"' lines # the number of its line

# streamed STATUS INPUT: --data - with this input
streamed() {
    local wanted=$1 status=0
    checks=$((checks + 1))
    shift
    printf '%b' "$1" | "${answer[@]}" --data - --out stream >"$scratch/out" 2>"$scratch/err" || status=$?
    ((status == wanted)) || complain "exit status $status instead of $wanted for the input '$1'"
}
streamed 0 'say 3\n\n{"messages": [{"role": "user", "content": "say 4"}]}\n'
completions stream >stream.txt
same lines.txt stream.txt
streamed 0 'say 3\r\n  say 4' # other line ends
checks=$((checks + 1))
[[ $(wc -l <stream/generated.jsonl) == 2 ]] || complain "two lines make $(wc -l <stream/generated.jsonl) answers"
streamed 1 '\n  \n'
says err "--data -: the standard input has no prompt"
streamed 1 'say 3\n{"role": 1}\n'
says err "line 2 of the standard input: "
completions stream >stream.txt
same first.txt stream.txt # the first answer is kept

# --- a prompt that is typed

checks=$((checks + 1))
mkfifo typed
# shellcheck disable=SC2094 # written and read by two processes
TERM=xterm timeout 60 script -qec "$(printf '%q ' "${answer[@]}" --data - --out typing)" /dev/null <typed >"$scratch/out" 2>&1 &
exec 3>typed
for ((i = 0; i < 300; ++i)); do ! grep -qF "> " "$scratch/out" || break && sleep 0.1; done
printf 'say ä 3\r' >&3
for ((i = 0; i < 300; ++i)); do [[ ! -s typing/generated.jsonl ]] || break && sleep 0.1; done
printf '\003' >&3
exec 3>&-
wait $! || true
grep -qF "say ä 3" typing/generated.jsonl || complain "the prompt that was typed"

# --- an interruption while it waits for a prompt: nothing is left behind

mkdir waits
for signal in $(by_wine || echo INT TERM); do # wine passes no signals on
    checks=$((checks + 1))
    status=0
    { echo "say 3" && sleep 7; } | TMPDIR=$scratch/waits timeout --preserve-status -s $signal 5 "${answer[@]}" --data - --out waited >"$scratch/out" 2>"$scratch/err" || status=$?
    wanted=$([[ $signal == INT ]] && echo 130 || echo 143)
    [[ $status == "$wanted" && -z $(ls waits) ]] || complain "SIG$signal: exit status $status, and in TMPDIR: $(ls waits)"
done

# --- drawing

for seed in 1 1 2; do
    exits 0 "${answer[@]}" --data two.txt --temperature 1.5 --top-k 50 --top-p 0.95 --seed $seed --out drawn_$seed
    completions drawn_$seed >>drawn_$seed.txt
done
head -n 2 drawn_1.txt >a.txt
tail -n 2 drawn_1.txt >b.txt
same a.txt b.txt
differ a.txt drawn_2.txt
exits 0 "${answer[@]}" --data two.txt --temperature 3 --top-k 1 --seed 7 --out top
completions top >top.txt
same lines.txt top.txt # the likeliest

# --- the context, and ends

exits 0 "$cleat" generate --checkpoint run "${small[@]}" --prompt "say 3" --context 20 --max-tokens 40 --temperature 9 --seed 1
says err "answers ended because prompt and answer have 20 tokens (model.max_positions, --context)"
exits 1 "${answer[@]}" --prompt "say 3" --context 4
says err "leaves no room for an answer: the context is 4 tokens, model.max_positions 64"
exits 1 "${answer[@]}" --prompt "$(printf 'say 3 %.0s' {1..60})"
says err "1 to 64 are possible"

# --- weights without a run

exits 0 "$cleat" export run --format hf --out exported
exits 1 "$cleat" export run --format timm --out timm
says err "timm has no such network; --format hf or gguf exports it"
cp chats.jsonl others.jsonl
exits 0 "$cleat" eval --checkpoint run --data others.jsonl "${small[@]}"
mv out of_run.txt
exits 0 "$cleat" eval "$source/profiles/chat.ini" --init exported --data others.jsonl "${small[@]}" --set data.template=chatml --set data.max_length=48 --set train.precision=f32
mv out of_weights.txt
same of_run.txt of_weights.txt
exits 2 "$cleat" eval "$source/profiles/chat.ini" --init exported
says err "give --checkpoint, or --init with --data"
exits 2 "$cleat" eval "$source/profiles/chat.ini" --init exported --checkpoint run --data chats.jsonl

# --- errors

exits 2 "$cleat" generate --prompt x
says err "--checkpoint is required"
exits 2 "$cleat" generate --checkpoint run
says err "give the prompts: --data PATH, --data - or --prompt TEXT"
exits 2 "$cleat" generate "$source/profiles/chat.ini" --checkpoint run --init exported --prompt x
exits 2 "${answer[@]}" --prompt x --max-tokens 0
exits 2 "${answer[@]}" --prompt x --top-p 0
says err "top-p: above 0"
exits 2 "${answer[@]}" --prompt x --temperature -1
says err "temperature: at least 0"
exits 1 "$cleat" generate --checkpoint nothing --prompt x
says err "nothing"
exits 1 "${answer[@]}" --data missing.txt
says err "missing.txt"
: >empty.jsonl
exits 1 "${answer[@]}" --data empty.jsonl
says err "empty.jsonl:1: the file is empty"
printf '{"messages": [{"role": "robot", "content": "x"}]}\n' >robot.jsonl
exits 1 "${answer[@]}" --data robot.jsonl
says err "robot.jsonl:1: message 1: the role 'robot' is not system, user or assistant"
printf 'text,label\na b,x\nb a,y\n' >labels.csv
for ((i = 0; i < 10; ++i)); do printf 'a b %d,x\nb a %d,y\n' $i $i; done >>labels.csv
exits 0 "$cleat" train "$source/profiles/tweets_sentiment.ini" labels.csv "${small[@]}" data.label_column=label model.d_model=16 model.heads=2 model.layers=1 \
    model.d_ff=16 train.epochs=1 train.warmup_steps=0 --out labels
exits 1 "$cleat" generate --checkpoint labels --prompt x
says err "only causal_lm generates texts; model.type is text_classifier"

finish
