"""Time series: arrays as CSV files, forecasts as arrays."""
import pathlib
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

import numpy as np

from ._tables import Get, cell, fail, need, read_csv, same_count, write_csv


class Forecast(NamedTuple):
    """Forecasts from every row that has enough rows before it, oldest first: [-1] of each array is the newest."""

    values: np.ndarray  # [N, horizon, targets]
    times: np.ndarray  # [N, horizon] datetime64: what time a value is for, on the clock of the inputs
    made_at: np.ndarray  # [N] datetime64: the last known row
    columns: List[str]  # [targets]


def _times(times: Any) -> np.ndarray:
    """Times as the reader takes them: texts, integers (Unix seconds), or datetime64 and datetime objects."""
    array = np.asarray(times)
    if array.dtype.kind == "O":
        array = array.astype("datetime64[s]")
    if array.dtype.kind == "M":
        return np.datetime_as_string(array.astype("datetime64[s]"))
    if array.dtype.kind not in "iuU":
        raise fail(f"times: {array.dtype}; expected datetime64, texts, or integers (Unix seconds)")
    return array


def _columns(data: Mapping, count: int, get: Get) -> List[str]:
    """The names of the columns: those given, those of the profile, or x0, x1, ..."""
    features = [name.strip() for name in get("data.features").split(",") if name.strip()]
    names = list(data.get("columns") or features or (f"x{i}" for i in range(count)))
    if len(names) != count:
        raise fail(f"values: {count} columns, but {len(names)} names: {', '.join(names)}; give their names as columns")
    return names


def _write(path: pathlib.Path, data: Mapping, get: Get) -> None:
    need(data, "data of a series", ["times", "values"], ["columns"])
    values = np.asarray(data["values"], dtype=np.float64)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2:
        raise fail(f"values: shape {values.shape}; expected [T, columns]")
    times = _times(data["times"])
    same_count("data of a series", times=len(times), values=len(values))
    header = [get("data.time_column") or "time", *_columns(data, values.shape[1], get)]
    write_csv(path, header, ([time, *map(cell, row)] for time, row in zip(times, values.tolist())))


def settings(path: pathlib.Path, validation: Any) -> Dict[str, str]:
    """Settings of a file that holds all of a series."""
    if validation is not None:
        raise fail("a series takes no separate validation data: its last rows are used, see data.val_fraction")
    rows = {f"data.{split}_rows": "none" for split in ("train", "val", "test")}  # of the profile's own data
    return {"data.path": str(path), **rows}


class Series:
    """The last rows are for validation and test, according to data.val_fraction and data.test_fraction."""

    @staticmethod
    def write_training(folder: pathlib.Path, data: Mapping, validation: Optional[Mapping], get: Get) -> Dict[str, str]:
        made = settings(folder / "series.csv", validation)
        _write(folder / "series.csv", data, get)
        return made

    @staticmethod
    def write_inputs(folder: pathlib.Path, inputs: Any, get: Get) -> pathlib.Path:
        if not isinstance(inputs, Mapping):
            raise fail("inputs of a series are a dict with the keys times, values, columns (optional)")
        _write(folder / "series.csv", inputs, get)
        return folder / "series.csv"

    @staticmethod
    def read(folder: pathlib.Path, inputs: Any, get: Get, probabilities: bool) -> Forecast:
        header, *rows = read_csv(folder / "predictions.csv")
        horizon = max((int(row[2]) for row in rows), default=1)
        values = np.array([row[3:] for row in rows], dtype=np.float64).reshape(-1, horizon, len(header) - 3)
        made_at, times = (np.array([row[i][:19] for row in rows], dtype="datetime64[s]") for i in (0, 1))
        return Forecast(values, times.reshape(-1, horizon), made_at.reshape(-1, horizon)[:, 0], header[3:])
