#!/usr/bin/env bash
# `cleat plan`: every shipped profile on absent cards (needs no device and no OpenCL platform); with a third
# argument on the available device.
#   test_plan.sh CLEAT SOURCE_DIR [device]
# ctest: quick cost=12
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

rna=$2/profiles/rna.ini
small=$2/profiles/rna_small.ini
cards=$2/profiles/devices
nowhere=(--set "data.path=$scratch/nowhere")

# check_members [INDEX]: checks that the last command printed a plan with all its members (the INDEX-th of an
# array).
check_members() {
    local name
    for name in card present device fits reason recompute stored recomputed micro_batch_asked effective_batch limit data_known buckets parameters trained_parameters full_bytes \
        bytes share_of_limit category_bytes activations_and_workspace fixed_bytes bytes_per_sample slabs largest_slab arena_bytes \
        lower_bound forward_peak training_peak stored_activations step_seconds samples_per_second \
        steps_per_epoch epoch_seconds run_seconds rates source precision f32_arena_bytes; do
        says out "\"$name\":"
    done
    json "$@" training_peak parts workspace
    json "$@" learning_rate by_effective_batch 5 sqrt
    json "$@" learning_rate points 0 rate
}

test_profiles() {
    local profile
    for profile in "$2"/profiles/*.ini; do
        exits 0 "$cleat" plan "$profile" "${nowhere[@]}" --card t4
        says out "  fits    "
        says out "$scratch/nowhere does not exist"
        says out "activations and workspace"
        says out "forward + backward"
        says out "estimate from: card file t4"
        says out "sqrt: base x sqrt(global batch / base batch)"
        says out "<- this profile"
        says out "the same on every card"
        exits 0 "$cleat" plan "$profile" "${nowhere[@]}" --card t4 --json
        check_members
        says out '"fits":true'
        says out '"card":"t4"'
        says out '"steps_per_epoch":null'
        cp "$scratch/out" "$scratch/once"
        exits 0 "$cleat" plan "$profile" "${nowhere[@]}" --card t4 --json
        cp "$scratch/out" "$scratch/twice"
        exits 0 cmp "$scratch/once" "$scratch/twice"
    done
}

test_frozen_parameters() {
    local tweets=$2/profiles/tweets_sentiment.ini
    exits 0 "$cleat" plan "$tweets" "${nowhere[@]}" --card t4
    lacks out "parameters are trained"
    for part in embeddings 2 backbone; do
        exits 0 "$cleat" plan "$tweets" "${nowhere[@]}" --card t4 --set "train.freeze=$part"
        says out "parameters are trained"
        says out "with all trained"
    done
    exits 0 "$cleat" plan "$tweets" "${nowhere[@]}" --card t4 --set train.lora_rank=8
    says out "parameters are trained"
    exits 1 "$cleat" plan "$tweets" "${nowhere[@]}" --card t4 --set train.lora_rank=8 --set train.lora_layers=most
    says err "some of qkv, out, f1, f2"
    exits 1 "$cleat" plan "$2/profiles/image_64.ini" "${nowhere[@]}" --card t4 --set train.lora_rank=8
    says err "use train.freeze instead"
    exits 0 "$cleat" plan "$tweets" "${nowhere[@]}" --card all --set train.freeze=backbone
    says out "parameters are trained"
    exits 1 "$cleat" plan "$tweets" "${nowhere[@]}" --card t4 --set train.freeze=most
    says err "choose none, embeddings, backbone"
    exits 1 "$cleat" plan "$tweets" "${nowhere[@]}" --card t4 --set train.freeze=99
    says err "freeze at most these"
}

# A folder with config.json alone suffices for a plan. 7.6 billion weights exceed the largest buffer of a card in any form, and its memory
# in 16 bits.
test_published_config() {
    local folder=$scratch/qwen lm=(plan "$1/profiles/chat.ini" "${nowhere[@]}" --init "$scratch/qwen")
    mkdir "$folder"
    cat >"$folder/config.json" <<'JSON'
{"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, "hidden_act": "silu",
 "num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": false, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "rope_theta": 1e6}
JSON
    exits 0 "$cleat" "${lm[@]}" --card rtx3080 --set train.frozen_weights=nf4
    says err "has no weights yet; its config.json suffices for a plan"
    says out "40370176 of 7655986688 parameters are trained"
    exits 3 "$cleat" "${lm[@]}" --card rtx3080
    says out "does not fit        a micro-batch of 1"
    says out "train.frozen_weights = nf4"
    exits 0 "$cleat" "${lm[@]}" --card a100_40
    exits 1 "$cleat" train "${lm[@]:1}" --out "$scratch/run"
    says err "model.init: $folder: has neither model.safetensors nor model.safetensors.index.json"
    rm "$folder/config.json"
    exits 1 "$cleat" "${lm[@]}" --card rtx3080
    says err "has neither model.safetensors"
}

test_all_cards() {
    local file name
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" --card all
    for file in "$cards"/*.ini; do
        name=$(basename "$file" .ini)
        says out "$name"
    done
    says out "estimates from the rates in the card files"
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" --card all --json
    check_members 0
    json 1 card
    # A model that fits no card: each card's row has that message.
    local none=(--batch 3400 --set train.gradient_checkpointing=false --set train.precision=f32)
    exits 3 "$cleat" plan "$rna" "${nowhere[@]}" --card all "${none[@]}"
    says out "does not fit"
    exits 3 "$cleat" plan "$rna" "${nowhere[@]}" --card all "${none[@]}" --json
    says out '"fits":false'
    lacks out '"fits":true'
    json 0 reason
    # Cards that are too small for a model are listed with those it fits.
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" --card all --batch 400 --set train.gradient_checkpointing=false
    says out "does not fit"
    says out "400 x 1"
}

test_data() {
    exits 0 "$cleat" data make rna --out "$scratch/data" --count 40
    exits 0 "$cleat" plan "$small" --set "data.path=$scratch/data" --set train.warmup_steps=1 --card t4
    says out "an epoch of"
    says out "end of warm-up"
    exits 0 "$cleat" plan "$small" --set "data.path=$scratch/data" --set train.warmup_steps=1 --card t4 --json
    says out '"data_known":true'
    lacks out '"epoch_seconds":null'
    # At most two optimizer steps per epoch. The plan cuts the warm-up as training does, and refuses the same schedules.
    exits 0 "$cleat" plan "$small" --set "data.path=$scratch/data" --set train.warmup_steps=1000 --card t4
    says out "the warm-up is cut to"
    exits 1 "$cleat" plan "$small" --set "data.path=$scratch/data" --set train.lr_scaling=linear --set train.base_batch_size=100000 \
        --set train.min_learning_rate=1e-4 --card t4
    says err "above the scaled learning rate"
    says out "  fits    "
    exits 0 "$cleat" plan "$small" --set "data.path=$scratch/data" --set train.warmup_steps=1 --card all
    says out epoch
}

test_learning_rate() {
    local scaled=(--set train.learning_rate=5e-4 --set train.base_batch_size=8 --set train.effective_batch_size=48
        --set train.lr_scaling=linear --set train.warmup_steps=0 --set train.warmup_epochs=2 --set train.warmup_start_lr=1e-6)
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" "${scaled[@]}" --card t4
    says out "               48       0.0005        0.003     0.001225  <- this profile"
    says out "  end of warm-up              2          -          0.003"
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" "${scaled[@]}" --card t4 --json
    says out '{"batch":48,"own":true,"none":0.0005,"linear":0.003,'
    says out '{"at":"end of warm-up","epoch":2,"step":null,"rate":0.003}'
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" "${scaled[@]}" --card all --json
    says out '{"batch":48,"own":true,"none":0.0005,"linear":0.003,'
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" "${scaled[@]}" --card t4 --set train.schedule=step --set train.step_epochs=50 \
        --set train.min_learning_rate=0
    says out "  50 % of the run            65          -         0.0003"
}

test_card_files() {
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" --card t4 --json
    grep -o '"bytes":[0-9]*' "$scratch/out" >"$scratch/bytes"
    cp "$cards/t4.ini" "$scratch/mine.ini"
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" --card "$scratch/mine.ini" --json
    grep -o '"bytes":[0-9]*' "$scratch/out" >"$scratch/bytes_of_mine"
    exits 0 cmp "$scratch/bytes" "$scratch/bytes_of_mine"
    sed 's/^memory = [0-9].*/memory = 430 MiB/; s/^max_allocation = [0-9].*/max_allocation = 100 MiB/' "$cards/t4.ini" >"$scratch/tiny.ini"
    exits 3 "$cleat" plan "$rna" "${nowhere[@]}" --card "$scratch/tiny.ini"
    says out "does not fit"
    exits 3 "$cleat" plan "$rna" "${nowhere[@]}" --card "$scratch/tiny.ini" --json
    says out "What would fit: data.max_length"
    sed 's/^memory = [0-9].*/memory = 0/' "$cards/t4.ini" >"$scratch/zero.ini"
    exits 1 "$cleat" plan "$rna" "${nowhere[@]}" --card "$scratch/zero.ini"
    says err zero.ini:
    printf '\nmemry = 1\n' >>"$scratch/mine.ini"
    exits 1 "$cleat" plan "$rna" "${nowhere[@]}" --card "$scratch/mine.ini"
    says err mine.ini:
    says err memry
    exits 1 "$cleat" plan "$rna" "${nowhere[@]}" --card t5
    says err t4
    exits 1 "$cleat" plan "$rna" "${nowhere[@]}" --card "$scratch/missing.ini"
    says err missing.ini
}

test_batches() {
    local batch
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" --card t4 --batch 2 --json
    says out '"micro_batch":2,'
    for batch in 0 -3 1.5 many; do
        exits 2 "$cleat" plan "$rna" "${nowhere[@]}" --card t4 --batch "$batch"
        says err --batch
    done
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" --card v100_32 --batch 48
    says out "train.effective_batch_size = 48"
    exits 3 "$cleat" plan "$rna" "${nowhere[@]}" --card t4 --batch 100000
    says out "does not fit"
    exits 3 "$cleat" plan "$rna" "${nowhere[@]}" --card t4 --batch 3400
    says out "does not fit"
    exits 3 "$cleat" plan "$rna" "${nowhere[@]}" --card t4 --batch 3400 --json
    says out "What would fit"
    says out '"fits":false'
    says out '"bytes":null'
}

test_wrong_lines() {
    exits 0 "$cleat" plan --help
    says out "usage: cleat plan"
    exits 2 "$cleat" plan
    exits 2 "$cleat" plan "$rna" "$small"
    exits 2 "$cleat" plan "$rna" --card t4 --device cpu
    says err "--device"
    exits 1 "$cleat" plan "$scratch/missing.ini" --card t4
}

test_without_opencl() {
    exits 0 env OCL_ICD_VENDORS=/nonexistent "$cleat" plan "$rna" "${nowhere[@]}" --card t4
    exits 0 env OCL_ICD_VENDORS=/nonexistent "$cleat" plan "$rna" "${nowhere[@]}" --card all
    exits 4 env OCL_ICD_VENDORS=/nonexistent "$cleat" plan "$rna" "${nowhere[@]}"
}

test_device() {
    require_device
    exits 0 "$cleat" plan "$small" "${nowhere[@]}" --device "${CLEAT_TEST_DEVICE:-auto}"
    says out "estimate from: "
    exits 0 "$cleat" plan "$small" "${nowhere[@]}" --device "${CLEAT_TEST_DEVICE:-auto}" --json
    check_members
    says out '"present":true'
    exits 3 env CLEAT_DEVICE_MEMORY_LIMIT=100000 "$cleat" plan "$small" "${nowhere[@]}" --device "${CLEAT_TEST_DEVICE:-auto}"
    says out "does not fit"
    exits 4 "$cleat" plan "$small" "${nowhere[@]}" --device no_such_device
}

if [[ ${3-} == device ]]; then
    test_device
else
    test_profiles "$@"
    test_frozen_parameters "$@"
    test_published_config "$2"
    test_all_cards
    test_data
    test_learning_rate
    test_card_files
    test_batches
    test_wrong_lines
    test_without_opencl
fi
finish
