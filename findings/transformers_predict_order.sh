#!/usr/bin/env bash
# transformers 5.24.0: with train_sampling_strategy="group_by_length", a setting that by its name concerns training, the Trainer
# also evaluates and predicts in an order by length, which is drawn anew: row i of Trainer.predict is not the answer to sample i
# of the data set. label_ids are in that order too, so that metrics are right, and nothing warns. A script that writes the
# predictions beside the data set's ids, for a submission, writes most of them to the wrong row.
#
# cleat's batches are of similar lengths as well; `cleat predict` writes rows in the order of the file.
#
# Output seen, 27 November 2026 (transformers 5.24.0, torch 2.15.0, accelerate 1.15.0), 12 samples of five lengths:
#   random: samples 0 to 11 in order
#   group_by_length: [4, 7, 6, 1, 2, 11, 0, 10, 8, 9, 3, 5] (another order is possible)
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check transformers==5.24.0 torch==2.15.0 accelerate==1.15.0
cat >"$work/compare.py" <<'END'
import sys
import torch
from transformers import Trainer, TrainingArguments


class FirstToken(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, input_ids, labels=None):
        first = input_ids[:, :1].float() + 0 * self.weight
        return {"loss": first.sum() * 0, "logits": first}


def pad(batch):
    longest = max(len(sample["input_ids"]) for sample in batch)
    rows = [sample["input_ids"] + [0] * (longest - len(sample["input_ids"])) for sample in batch]
    return {"input_ids": torch.tensor(rows), "labels": torch.tensor([sample["labels"] for sample in batch])}


data = [{"input_ids": [i + 1] + [0] * (i % 5), "labels": i} for i in range(12)]
order = {}
for strategy in ("random", "group_by_length"):
    settings = TrainingArguments(sys.argv[1], per_device_eval_batch_size=4, train_sampling_strategy=strategy, use_cpu=True,
                                 report_to=[], disable_tqdm=True)
    found = Trainer(FirstToken(), settings, data_collator=pad).predict(data)
    order[strategy] = [int(x) - 1 for x in found.predictions[:, 0]]
    assert order[strategy] == found.label_ids.tolist()
    print(f"{strategy}: {order[strategy]}")
in_order = list(range(12))
as_seen = order["random"] == in_order and order["group_by_length"] != in_order and sorted(order["group_by_length"]) == in_order
sys.exit(0 if as_seen else "this has changed")
END
"$work/venv/bin/python" "$work/compare.py" "$work/out"
