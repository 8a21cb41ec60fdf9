#!/usr/bin/env bash
# scikit-learn 1.9.1: for an estimator whose tags say that it takes no matrix of numbers (input_tags.two_d_array = False, as
# classifiers of texts must say), check_estimator runs one check, that clone works, and passes. A classifier whose fit returns
# None, changes its own parameters and whose predict answers before fit is accepted as conforming; with two_d_array = True the
# same class fails. Nothing says that the other checks were left out: a project that shows "passes check_estimator" for a
# text model has shown nothing.
#
# cleat's estimators take texts and pictures; tests/python/test_sklearn.py therefore runs each check that applies by its name.
#
# Output seen, 28 November 2026 (scikit-learn 1.9.1, numpy 2.4.6):
#   two_d_array=False: checks 1, failed 0: check_estimator_cloneable
#   two_d_array=True: checks 55, failed 27
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check scikit-learn==1.9.1 numpy==2.4.6
cat >"$work/checks.py" <<'END'
import sys
import warnings

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.estimator_checks import check_estimator


class Wrong(ClassifierMixin, BaseEstimator):
    matrices = False

    def __init__(self, rate=0.1):
        self.rate = rate

    def fit(self, X, y):
        self.rate = self.rate / 2

    def predict(self, X):
        return [0 for _ in X]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string = self.matrices, not self.matrices
        return tags


class WrongWithMatrices(Wrong):
    matrices = True


warnings.simplefilter("ignore")
count, failed = {}, {}
for kind in (Wrong, WrongWithMatrices):
    results = check_estimator(kind(), on_fail=None)
    count[kind] = len(results)
    failed[kind] = [r["check_name"] for r in results if r["status"] == "failed"]
    names = ": " + results[0]["check_name"] if len(results) == 1 else ""
    print(f"two_d_array={kind.matrices}: checks {count[kind]}, failed {len(failed[kind])}{names}")
as_seen = count[Wrong] == 1 and not failed[Wrong] and count[WrongWithMatrices] > 40 and len(failed[WrongWithMatrices]) > 3
sys.exit(0 if as_seen else "this has changed")
END
"$work/venv/bin/python" "$work/checks.py"
