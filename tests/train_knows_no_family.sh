#!/usr/bin/env bash
# Checks that the training loop is independent of families: src/run/train contains no name of a model or data family, includes none
# of their headers, and names none of their fitted files.
#   tests/train_knows_no_family.sh [FOLDER]      FOLDER: another tree than this one
set -euo pipefail

cd "${1:-$(dirname "$0")/..}"
families=$(sed -n 's/^ *FAMILY(cleat_\([a-z_]*\)).*/\1/p' src/models/list.c | paste -sd '|')
data=$(cd src/data && printf '%s\n' */ | grep -vE '^(common|json)/$' | tr -d / | paste -sd '|')
[[ $families == *text_tagger* && $data == *tokenizer* ]]
found=0
grep -rnE "\b($families)\b|#include \"([a-z]+/)*($data|images|texts)(/[a-z_]+)?\.h\"|\b(pictures\.json|labels\.txt|vocab\.txt|tokenizer\.json)" src/run/train || found=$?
if ((found != 1)); then # 1: no line
    echo 'the training loop knows no family: what a family needs is a member of its cleat_model_class (src/models/model.h)'
    exit 1
fi
