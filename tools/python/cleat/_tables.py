"""Shared by the writers of arrays: CSV files, and checks of a caller's arguments."""
import csv
import os
import pathlib
import re
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from ._library import Error, Status

Get = Callable[[str], str]  # the text of a setting, "section.key"


def fail(text: str) -> Error:
    """The error of an argument that cannot be written as a file."""
    return Error(Status.ARGUMENT, text)


def need(data: Mapping[str, Any], what: str, names: Sequence[str], optional: Sequence[str] = ()) -> None:
    """Checks that `data` has these keys, and no others than the optional ones."""
    missing = [name for name in names if name not in data]
    other = [str(name) for name in data if name not in (*names, *optional)]
    if missing or other:
        expected = ", ".join([*names, *(f"{name} (optional)" for name in optional)])
        found = ", ".join(str(name) for name in data) or "none"
        raise fail(f"{what}: expected a dict with the keys {expected}; found {found}")


def same_count(what: str, **counts: int) -> int:
    """The number of samples, after a check that all parts of the data have it, and that there are any."""
    if len(set(counts.values())) != 1 or 0 in counts.values():
        found = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise fail(f"{what}: {found}; there must be as many of each, and at least one")
    return next(iter(counts.values()))


def splits(data: Any, validation: Any) -> Dict[str, Any]:
    """The parts of the data by the names that the readers of cleat know."""
    return {"train": data} if validation is None else {"train": data, "val": validation}


def checked(data: Any, validation: Any, what: str, *keys: str) -> Iterator[Tuple[str, Any, int]]:
    """Name, content and number of samples of each part of the data, after a check of its keys."""
    for name, part in splits(data, validation).items():
        need(part, f"{name} data of {what}", keys)
        yield name, part, same_count(f"{name} data", **{key: len(part[key]) for key in keys})


def fractions(validation: Optional[Mapping[str, Any]], get: Get) -> Dict[str, str]:
    """Settings that cut a validation part off the data where neither caller nor profile has one."""
    if validation is not None or float(get("data.val_fraction")) > 0:
        return {}
    return {"data.val_fraction": "0.1"}


def cell(value: Any) -> str:
    """A value as the text of a table: several labels are separated by |, and what is missing is empty."""
    if getattr(value, "ndim", 0):
        if value.dtype.kind in "biuf":
            raise fail("labels: rows of numbers; give lists of labels, or a DataFrame with a column for each number or label")
        value = value.tolist()
    if isinstance(value, (list, tuple, set, frozenset)):
        if divided := [label for label in map(str, value) if re.search("[|;,]", label)]:
            raise fail(f"the label '{divided[0]}': rename it, since | ; and , separate labels (data.label_separator)")
        return "|".join(map(str, value))
    text = str(value)
    return "" if text in ("None", "nan", "<NA>", "NaT") and not isinstance(value, str) else text


def write_csv(path: pathlib.Path, header: Sequence[str], rows: Iterable[Sequence[Any]], **format: Any) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n", **format)
        writer.writerow(header)
        writer.writerows(rows)


def read_csv(path: pathlib.Path) -> List[List[str]]:
    """The rows of a CSV file, its header first."""
    csv.field_size_limit(1 << 30)
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def as_written(names: Sequence[str]) -> Sequence[Any]:
    """Labels as a caller gave them: integers if every name is one as Python prints it, else texts."""
    if all(re.fullmatch("0|-?[1-9][0-9]*", name) for name in names):
        return [int(name) for name in names]
    return list(names)


def problem(get: Get) -> str:
    """model.problem_type; of a family without it, single_label."""
    try:
        return get("model.problem_type")
    except Error:
        return "single_label"


def read_classes(folder: pathlib.Path, inputs: Any, get: Get, probabilities: bool) -> Any:
    """predictions.csv with id, label, probability and a column for each class: the labels as an array [N], or
    (classes [C], probabilities [N, C]). Of several labels lists of them; numbers as an array [N], or [N, numbers]."""
    import numpy as np

    header, *rows = read_csv(folder / "predictions.csv")
    if problem(get) == "regression":
        numbers = np.array([row[1:] for row in rows], dtype=np.float64)
        return numbers if len(header) > 2 else numbers.reshape(-1)
    if problem(get) == "multi_label":
        values = np.array([row[2:] for row in rows], dtype=np.float64)
        return (np.asarray(header[2:]), values) if probabilities else [row[1].split("|") if row[1] else [] for row in rows]
    classes = as_written(header[3:])
    if probabilities:
        values = np.array([row[3:] for row in rows], dtype=np.float64).reshape(len(rows), len(classes))
        return np.asarray(classes), values
    labels = dict(zip(header[3:], classes))
    return np.asarray([labels[row[1]] for row in rows])


def is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def is_frame(value: Any) -> bool:
    """Whether the value is a DataFrame of pandas, which is not imported for this."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)
