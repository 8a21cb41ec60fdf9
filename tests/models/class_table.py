"""Prints the numbers of test_class_table.c: python3 class_table.py, with scikit-learn and seqeval."""
import numpy as np
import seqeval.metrics
import sklearn.metrics

TRUTH = "012301230123001122330011223300001111222233330000111122224444"
SAID = "012301230123101202330110203301001211022235330030111102224"  # the last three are not said: class 0
SAID += "000"
TAGS = [
    ("B-per I-per O B-loc O", "B-per I-per O B-loc O"),
    ("B-per O B-loc I-loc O O", "B-per I-per O I-loc O B-loc"),
    ("O B-loc B-loc I-loc", "O B-loc I-loc I-loc"),
    ("I-per I-per B-per", "B-per I-per I-loc"),
]
LABELS = [[1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 0], [0, 1, 0]]
PROBABILITIES = [[0.9, 0.2, 0.1], [0.8, 0.6, 0.3], [0.35, 0.7, 0.2], [0.4, 0.1, 0.05], [0.1, 0.65, 0.4], [0.3, 0.6, 0.3]]


def show(name, report, names, extra=None):
    print(name)
    for i, label in enumerate(names):
        row = report[label]
        more = f", {extra[i]:.16g}" if extra is not None else ""
        print(f'    {{"{label}", {row["precision"]:.16g}, {row["recall"]:.16g}, {row["f1-score"]:.16g}, {row["support"]:.0f}{more}}},')


truth, said = np.array(list(TRUTH)), np.array(list(SAID))
classes = list("012345")
show("classes", sklearn.metrics.classification_report(truth, said, labels=classes, output_dict=True, zero_division=0), classes,
     sklearn.metrics.jaccard_score(truth, said, labels=classes, average=None, zero_division=0))
print(sklearn.metrics.confusion_matrix(truth, said, labels=classes).tolist())
show("tags", seqeval.metrics.classification_report([a.split() for a, _ in TAGS], [b.split() for _, b in TAGS], output_dict=True), ["loc", "per"])
show("labels", sklearn.metrics.classification_report(LABELS, np.array(PROBABILITIES) >= 0.5, target_names=["size", "age", "third"], output_dict=True, zero_division=0),
     ["size", "age", "third"])
print("-log p:", [float(-np.mean(np.log(np.where(np.array(t) == 1, p, 1 - np.array(p))))) for t, p in zip(LABELS, PROBABILITIES)])
