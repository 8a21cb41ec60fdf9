#!/usr/bin/env bash
# `--init`: messages about weights that partly fit the profile.
#   test_init.sh CLEAT SOURCE_DIR
# ctest: device quick cost=10
set -euo pipefail
cleat=$1 source_dir=$2
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

bert=$scratch/bert
settings=(--set data.path="$scratch/texts.csv" --set data.max_length=16 --set train.epochs=1 --set train.precision=f32 --set run.self_check=never
    --device "${CLEAT_TEST_DEVICE:-auto}")

# A published BERT of two blocks and three classes, with a vocabulary; texts.
write_files() {
    cp -r "$source_dir/tests/published/bert_classifier" "$bert"
    {
        printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the day was late again thanks
        for i in $(seq 29); do echo "##$i"; done
    } >"$bert/vocab.txt"
    {
        echo text,label
        for i in $(seq 12); do printf 'the day was late,bad\nthanks again %s,good\nagain the day,so\n' "$i"; done
    } >"$scratch/texts.csv"
    grep -v "so\$" "$scratch/texts.csv" >"$scratch/two.csv"
    sed 's/"num_hidden_layers": 2/"num_hidden_layers": 1/' "$bert/config.json" >"$scratch/one_layer.json"
}

# train NAME OPTION...: trains a classifier into the run folder NAME.
train() {
    local name=$1
    shift
    "$cleat" train "$source_dir/profiles/text_classify.ini" "${settings[@]}" --out "$scratch/$name" "$@"
}

# A smaller model.layers loads the first blocks of a network, which is logged; a larger one is an error.
test_fewer_layers() {
    exits 0 train whole --init "$bert"
    lacks err "not used"
    exits 0 train first --init "$bert" --set model.layers=1
    says err "block 1 of the file is not used (16 tensors): --set model.layers=1"
    says err "left      1  bert.encoder.layer.*.output.dense.weight: block 1 of the file is not used"
    exits 0 grep -q "block 1 of the file is not used" "$scratch/first/resolved.ini"
    exits 1 train more --init "$bert" --set model.layers=3
    says err "model.layers=3 contradicts $bert/config.json: num_hidden_layers = 2"
    cp -r "$bert" "$scratch/claims_less"
    cp "$scratch/one_layer.json" "$scratch/claims_less/config.json"
    exits 0 train claims_less_run --init "$scratch/claims_less"
    says err "block 1 of the file is not used (16 tensors): $scratch/claims_less/config.json: num_hidden_layers = 1"
    exits 0 train again --init "$scratch/whole" --set model.layers=1
    says err "block 1 of the file is not used"
}

# Training has no config.json beside its tokenizer. An export writes one last, which must not change how tokenizer.json is
# read (in a BERT's, do_lower_case would override it).
test_exported_tokenizer() {
    mkdir "$scratch/own_tokenizer"
    python3 - "$scratch/own_tokenizer" <<'END'
import json, pathlib, sys
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "day", "was", "late", "again", "thanks"] + [f"##{i}" for i in range(29)]
folder = pathlib.Path(sys.argv[1])
(folder / "tokenizer.json").write_text(json.dumps({
    "version": "1.0",
    "added_tokens": [{"id": i, "content": w, "special": True} for i, w in enumerate(words[:5])],
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    "decoder": None,
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
              "vocab": {w: i for i, w in enumerate(words)}}}))
(folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
END
    exits 0 train own_tokenizer_run --init "$bert" --set data.vocabulary="$scratch/own_tokenizer"
    exits 0 "$cleat" export "$scratch/own_tokenizer_run" --format hf --out "$scratch/hf_cased"
    exits 0 grep -qE '"lowercase": *true' "$scratch/hf_cased/tokenizer.json"
    exits 0 test -e "$scratch/hf_cased/config.json"
}

# Labels with other names get a new output layer, even if their number is the same; the rest of the head is loaded.
test_other_labels() {
    sed 's/bad/cat/; s/good/dog/; s/,so/,eel/' "$scratch/texts.csv" >"$scratch/animals.csv"
    sed 's/bad/BAD/' "$scratch/texts.csv" >"$scratch/shouted.csv"
    exits 0 train same_labels --init "$scratch/whole" --set data.path="$scratch/shouted.csv"
    says err "33 tensors loaded, 0 skipped, 0 of the network initialised"
    exits 0 train other_labels --init "$scratch/whole" --set data.path="$scratch/animals.csv"
    says err "31 tensors loaded, 2 skipped, 2 of the network initialised"
    says err "new       1  head.out.weight: its labels are others: label 1 is 'bad' there, 'cat' in the data"
    says err "left      1  head.out.weight: initialised here"
    says err "taken     1  head.dense.weight"
    exits 0 grep -q "head.out.bias: its labels are others: label 1 is 'bad' there" "$scratch/other_labels/resolved.ini"
    exits 0 train other_order --init "$scratch/whole" --set data.labels="bad so good"
    says err "new       1  head.out.weight: its labels are others: label 2 is 'good' there, 'so' in the data"
    exits 0 train fewer_labels --init "$scratch/whole" --set data.path="$scratch/two.csv"
    says err "new       1  head.out.weight: [2, 16] here, [3, 16] in the file"
    says err "left      1  head.out.weight: initialised here"
}

# Text families start from each other's runs; for others, the message names what they can start from.
test_other_families() {
    local common=(--set data.path="$scratch/texts.txt" --set train.epochs=1 --set run.self_check=never --set data.max_length=16
        --device "${CLEAT_TEST_DEVICE:-auto}")
    tail -n +2 "$scratch/texts.csv" | cut -d, -f1 >"$scratch/texts.txt"
    exits 0 "$cleat" train "$source_dir/profiles/text_pretrain.ini" --init "$scratch/whole" --out "$scratch/pretrained" \
        --set model.d_model=16 --set model.heads=2 --set model.d_ff=24 --set model.max_positions=16 "${common[@]}"
    says err "new       1  mlm.dense.weight"
    exits 0 train from_pretrained --init "$scratch/pretrained"
    says err "left      1  mlm.dense.weight"
    exits 1 "$cleat" train "$source_dir/profiles/image_finetune.ini" --init "$scratch/whole" --out "$scratch/image" \
        --set model.type=image_vit
    says err "is a run of model.type = text_classifier; model.type = image_vit can start from: runs of type image_vit; published"
    says err "vit (torchvision)"
    exits 1 "$cleat" train "$source_dir/profiles/emberformer.ini" --init "$scratch/whole" --out "$scratch/ember"
    says err "model.type = emberformer can start from: runs of type emberformer, mask_segformer; published weights of type segformer"
}

# A cased tokenizer that differs from the default of data.lowercase is not reported; one that differs from the user's setting is.
test_lowercase() {
    cp -r "$bert" "$scratch/cased"
    echo '{"do_lower_case": false, "tokenizer_class": "BertTokenizer"}' >"$scratch/cased/tokenizer_config.json"
    exits 0 train cased_run --init "$scratch/cased"
    lacks err "has no effect"
    exits 0 train lower_run --init "$scratch/cased" --set data.lowercase=true
    says err "data.lowercase=true: has no effect: the file of the tokenizer says false"
    exits 0 train from_cased --init "$scratch/cased_run"
    lacks err "has no effect"
}

# same_bits FILE FILE: prints how many tensors of the embeddings and the first block have the same bits in both files.
same_bits() {
    python3 - "$@" <<'END'
import json, struct, sys
def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: data[8 + size + at["data_offsets"][0]:8 + size + at["data_offsets"][1]] for name, at in header.items()}
one, other = read(sys.argv[1]), read(sys.argv[2])
print(sum(one[name] == other[name] for name in one if name in other and ("embeddings" in name or "layer.0." in name)))
END
}

# adapters FOLDER: prints the configuration, and each tensor with its shape.
adapters() {
    python3 - "$1" <<'END'
import json, struct, sys
config = json.load(open(sys.argv[1] + "/adapter_config.json"))
print(config["peft_type"], config["r"], float(config["lora_alpha"]), config["lora_dropout"], config["bias"], config["fan_in_fan_out"],
      config["use_rslora"], config["inference_mode"], end=": ")
print(*sorted(config["target_modules"]), end="; ")
print(*config["modules_to_save"])
data = open(sys.argv[1] + "/adapter_model.safetensors", "rb").read()
header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
header.pop("__metadata__", None)
print(*(f"{name} {tensor['shape']}" for name, tensor in sorted(header.items())), f"{len(header)} tensors", sep="\n")
END
}

# An export has the file's values of frozen parameters, although the device had only halves.
test_frozen() {
    local precision
    for precision in f16 bf16; do
        exits 0 train "frozen_$precision" --init "$bert" --set train.freeze=1 --set train.precision=$precision
        exits 0 "$cleat" export "$scratch/frozen_$precision" --format hf --out "$scratch/hf_$precision"
        says err "5 frozen tensors are exported as they are in model.init = $bert"
        exits 0 same_bits "$bert/model.safetensors" "$scratch/hf_$precision/model.safetensors"
        says out 15
    done
    exits 0 train frozen_f32 --init "$bert" --set train.freeze=1
    exits 0 "$cleat" export "$scratch/frozen_f32" --format hf --out "$scratch/hf_f32"
    lacks err "frozen tensors"
    exits 0 same_bits "$bert/model.safetensors" "$scratch/hf_f32/model.safetensors"
    says out 15
    mv "$bert" "$scratch/elsewhere"
    exits 0 "$cleat" export "$scratch/frozen_f16" --format hf --out "$scratch/hf_gone"
    says err "warning: frozen parameters are exported as the run has them, rounded by train.precision or train.frozen_weights: those of model.init = $bert cannot be used: "
    says err "no such folder or file of weights"
    cp -r "$scratch/hf_bf16" "$bert"
    python3 - "$bert/model.safetensors" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
at = len(data) // 2 & ~3
for i in range(0, len(data) - at, 4):
    data[at + i + 2] ^= 64
open(sys.argv[1], "wb").write(data)
END
    exits 0 "$cleat" export "$scratch/frozen_f16" --format hf --out "$scratch/hf_other"
    says err "has other values there"
    rm -r "$bert"
    mv "$scratch/elsewhere" "$bert"
}

# Layers with adapters are not rounded either. Then the files that PEFT requires for the same modules; peft.peft loads them.
test_frozen_below_adapters() {
    exits 0 train lora --init "$bert" --set train.lora_rank=2 --set train.lora_alpha=5 --set train.lora_dropout=0.25 --set train.precision=f16
    exits 0 "$cleat" export "$scratch/lora" --format hf --out "$scratch/hf_lora"
    says err "frozen tensors are exported as they are in model.init"
    exits 0 same_bits "$bert/model.safetensors" "$scratch/hf_lora/model.safetensors"
    says out 13 # all but query and value, which have adapters
    exits 0 "$cleat" export "$scratch/lora" --format peft --out "$scratch/adapters"
    exits 0 adapters "$scratch/adapters"
    says out "LORA 2 5.0 0.25 none False False True: bert.encoder.layer.0.attention.self.query bert.encoder.layer.0.attention.self.value bert."
    says out "value; bert.pooler.dense classifier"
    says out "base_model.model.bert.encoder.layer.1.attention.self.value.lora_B.weight [16, 2]"
    says out "12 tensors"
}

write_files
require_device
require_python
test_fewer_layers
test_exported_tokenizer
test_other_labels
test_other_families
test_lowercase
test_frozen
test_frozen_below_adapters
finish
