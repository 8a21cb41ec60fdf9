"""pandas DataFrames: tables of texts, images and series as the CSV files that cleat reads, and predictions as DataFrames.
Settings name the columns. Only callers import pandas."""
import csv
import os
import pathlib
import sys
from typing import Any, Dict, Tuple

from . import _series, _texts
from ._tables import Get, as_written, cell, fail, fractions, problem, read_csv, splits


def _write(path: pathlib.Path, frame: Any) -> pathlib.Path:
    """Booleans and whole floats, which pandas makes of integers where some are missing, are written as integers."""
    for name, column in frame.items():
        known = column.dropna().astype("float64") if column.dtype.kind in "bf" else column
        if column.dtype == object:
            frame = frame.assign(**{name: column.map(cell)})
        elif known is not column and ((known % 1 == 0) & known.between(-1e15, 1e15)).all():
            frame = frame.assign(**{name: column.astype("Int64")})
    frame.to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    return path


def _with_times(frame: Any, get: Get) -> Tuple[Any, str, Any]:
    """`frame`, a copy, with a column of times: data.time_column, or else the index, or the only such column; its name ("":
    the first column); their zone. Times that are all at one time of day are written without it."""
    name, times = get("data.time_column"), [name for name, dtype in frame.dtypes.items() if dtype.kind == "M"]
    index = frame.index.to_timestamp() if hasattr(frame.index, "to_timestamp") else frame.index
    if name not in frame and getattr(index.dtype, "kind", "") == "M":
        name = name or str(index.name or "time")
        frame.insert(0, name, index)  # an error if another column is called so
    elif name not in frame and len(times) == 1:
        name = times[0]
    if name not in frame or frame[name].dtype.kind != "M" or frame[name].dt.tz is None:
        return frame, name, None
    local, zone = frame[name].dt.tz_localize(None), frame[name].dt.tz
    by_day = (local - local.dt.normalize()).nunique() <= 1
    return (frame.assign(**{name: local}) if by_day else frame), name, zone


class Frames:
    """Writes and reads the tables of a family, the first word of model.type."""

    def __init__(self, family: str):
        self._family = family

    def _table(self, frame: Any, get: Get) -> Any:
        frame = frame.rename(columns=str)
        if frame.columns.has_duplicates:
            raise fail(f"two columns are called '{frame.columns[frame.columns.duplicated()][0]}'; rename one of them")
        if self._family == "series":
            return _with_times(frame, get)[0]
        if self._family == "image":  # files relative to data.image_folder, or the current folder
            column, folder = get("data.image_column"), get("data.image_folder") or "."
            if column not in frame:
                raise fail(f"data.image_column = '{column}': not a column of the DataFrame; set it to that of the files")
            names = map(cell, frame[column])
            frame[column] = [os.path.relpath(name, folder) if os.path.isabs(name) else name for name in names]
        return frame

    def write_training(self, folder: pathlib.Path, data: Any, validation: Any, get: Get) -> Dict[str, str]:
        for split, part in splits(data, validation).items():
            _write(folder / f"{split}.csv", self._table(part, get))
        if self._family == "series":
            name = _with_times(data.rename(columns=str), get)[1]
            return {**_series.settings(folder / "train.csv", validation), "data.time_column": name}
        if self._family == "image":
            images = os.path.abspath(get("data.image_folder") or ".")
            return {"data.path": str(folder), "data.image_folder": images, **fractions(validation, get)}
        return {"data.id_column": "", **_texts.settings(folder, validation, get)}

    def write_inputs(self, folder: pathlib.Path, inputs: Any, get: Get) -> pathlib.Path:
        return _write(folder / "inputs.csv", self._table(inputs, get))

    def read(self, folder: pathlib.Path, inputs: Any, get: Get, probabilities: bool) -> Any:
        """predictions.csv: times in the zone of the inputs, or else the index of the inputs in place of ids."""
        pandas, (header, *rows) = sys.modules["pandas"], read_csv(folder / "predictions.csv")
        frame, numbers = pandas.DataFrame(rows), problem(get)  # columns are numbered: a class may be called "label"
        first = header.index("step") + 1 if self._family == "series" else 1 if numbers == "regression" else 2
        for at in range(first, len(header)):
            frame[at] = frame[at].astype("float64")
        if self._family == "series":
            zone = _with_times(inputs.rename(columns=str), get)[2]
            frame[first - 1] = frame[first - 1].astype("int64")
            for at in (first - 3, first - 2):
                marked = zone is not None and frame[at].str.contains(r"(?:Z|[+-]\d\d:\d\d)$").all()
                times = pandas.DatetimeIndex(pandas.to_datetime(frame[at] if marked else frame[at].str.rstrip("Z"), utc=marked))
                if zone is not None and not marked:  # of two equal local times the first
                    times = times.tz_localize(zone, ambiguous=[True] * len(times), nonexistent="shift_forward")
                frame[at] = times if zone is None else times.tz_convert(zone)
            return frame.set_axis(header, axis=1)
        if numbers == "single_label":
            frame[1] = frame[1].map(dict(zip(header[3:], as_written(header[3:]))))
        return frame.set_axis(header, axis=1).set_axis(inputs.index).iloc[:, 1:]
