"""The shared library libcleat: where it is, its functions and structs, errors and log."""
import ctypes
import enum
import logging
import os
import pathlib
from typing import List, Mapping, Union

from ._words import in_python

logger = logging.getLogger("cleat")

NATIVE = pathlib.Path(__file__).resolve().parent / "_native"  # bin/, lib/ and share/ of a wheel
PATH_BYTES, ERROR_BYTES, TEXT_BYTES = 1280, 2048, 1024  # CLEAT_PATH, CLEAT_ERROR_TEXT, CLEAT_PROFILE_TEXT


# Why a call failed; the names and values of cleat_status without CLEAT_ and ERR_.
Status = enum.IntEnum("Status", "OK ARGUMENT PROFILE IO FORMAT SHAPE MEMORY DEVICE_MEMORY FIT DEVICE NO_DEVICE BUILD "
                      "NOT_FOUND NOT_SUPPORTED NAN TIME_UP INTERRUPTED RANK_LOST", start=0)  # fmt: skip


class Error(Exception):
    """A failed call of cleat: a sentence with cause, place and remedy, and its `status`."""

    __module__ = "cleat"

    def __init__(self, status: int, text: str):
        super().__init__(in_python(text))
        self.status = Status(status)

    def __reduce__(self) -> tuple:
        return Error, (self.status, str(self))


# --- structs; tests/python/test_layout.py compares them with the headers


class ErrorText(ctypes.Structure):
    c_name = "cleat_error"
    _fields_ = [("status", ctypes.c_int), ("cl_code", ctypes.c_int), ("text", ctypes.c_char * ERROR_BYTES)]


class Metric(ctypes.Structure):
    c_name = "cleat_metric"
    _fields_ = [("name", ctypes.c_char * 48), ("value", ctypes.c_double)]


class Metrics(ctypes.Structure):
    c_name = "cleat_metrics"
    _fields_ = [("count", ctypes.c_size_t), ("items", Metric * 48)]

    def as_dict(self) -> dict:
        return {item.name.decode(): item.value for item in self.items[: self.count]}


TextCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
BeganCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class TrainOptions(ctypes.Structure):
    c_name = "cleat_train_options"
    _fields_ = [
        ("out", ctypes.c_char_p),
        ("resume", ctypes.c_bool),
        ("resume_from", ctypes.c_char_p),
        ("stop", ctypes.POINTER(ctypes.c_int)),
        ("print", TextCallback),
        ("user", ctypes.c_void_p),
        ("terminal", ctypes.c_bool),
        ("width", ctypes.c_int),
        ("command", ctypes.c_char_p),
        ("profile_path", ctypes.c_char_p),
        ("trace_only", ctypes.c_bool),
        ("record", TextCallback),
        ("began", BeganCallback),
        ("ranks", ctypes.c_void_p),
        ("compile_helpers", ctypes.c_void_p),
        ("until_epoch", ctypes.c_int64),
    ]


class StartupStats(ctypes.Structure):
    c_name = "cleat_startup_stats"
    _fields_ = [(name, ctypes.c_double) for name in ("data", "device", "plan", "setup", "kernels", "step")] + [
        (name, ctypes.c_int64) for name in ("programs", "built", "loaded")
    ]


class MemoryStats(ctypes.Structure):
    c_name = "cleat_memory_stats"
    _fields_ = [(name, ctypes.c_int64) for name in ("planned", "allocated", "peak")] + [
        ("category_bytes", ctypes.c_int64 * 8)
    ]


class Baseline(ctypes.Structure):
    c_name = "cleat_baseline"
    _fields_ = [
        ("known", ctypes.c_bool),
        ("text", ctypes.c_char * 160),
        ("metric", ctypes.c_char * 48),
        ("value", ctypes.c_double),
        ("ascends", ctypes.c_bool),
    ]


class TrainReport(ctypes.Structure):
    c_name = "cleat_train_report"
    _fields_ = [
        ("folder", ctypes.c_char * PATH_BYTES),
        ("epochs", ctypes.c_int64),
        ("steps", ctypes.c_int64),
        ("skipped_steps", ctypes.c_int64),
        ("storage", ctypes.c_int),
        ("best_step", ctypes.c_int64),
        ("best_metric", ctypes.c_double),
        ("seconds", ctypes.c_double),
        ("seconds_first_step", ctypes.c_double),
        ("start", StartupStats),
        ("memory", MemoryStats),
        ("last", Metrics),
        ("best", Metrics),
        ("stopped_early", ctypes.c_bool),
        ("step_seconds", ctypes.c_double),
        ("epoch_seconds", ctypes.c_double),
        ("run_seconds", ctypes.c_double),
        ("runs_in_budget", ctypes.c_int64),
        ("epochs_planned", ctypes.c_int64),
        ("traces", ctypes.c_int64),
        ("baseline", Baseline),
    ]


class HistoryColumn(ctypes.Structure):
    c_name = "cleat_history_column"
    _fields_ = [("name", ctypes.c_char_p), ("values", ctypes.POINTER(ctypes.c_double))]


class HistoryTable(ctypes.Structure):
    c_name = "cleat_history_table"
    _fields_ = [
        ("kind", ctypes.c_char * 32),
        ("rows", ctypes.c_size_t),
        ("columns", ctypes.c_size_t),
        ("items", ctypes.POINTER(HistoryColumn)),
    ]


STRUCTS = [ErrorText, Metric, Metrics, TrainOptions, StartupStats, MemoryStats, TrainReport, HistoryColumn, HistoryTable]

# --- the library


def _open() -> ctypes.CDLL:
    """The library of the wheel; without one, an installed one."""
    name = "libcleat.dll" if os.name == "nt" else "libcleat.so.0.2"
    bundled = NATIVE / "lib" / name
    name = str(bundled) if bundled.is_file() else name
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"cleat: the shared library cannot be loaded: {error}") from error


_HANDLE, _OUT, _ERROR = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ErrorText)
_TEXT, _STATUS = ctypes.c_char_p, ctypes.c_int
_LogCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)

_PROTOTYPES = {
    "cleat_version": (_TEXT, []),
    "cleat_set_log": (None, [_LogCallback, ctypes.c_void_p, ctypes.c_int]),
    "cleat_profile_find": (_STATUS, [_TEXT, _TEXT, ctypes.c_size_t, _ERROR]),
    "cleat_profile_load": (_STATUS, [_TEXT, ctypes.POINTER(_TEXT), ctypes.c_size_t, _OUT, _ERROR]),
    "cleat_profile_of_checkpoint": (_STATUS, [_TEXT, ctypes.POINTER(_TEXT), ctypes.c_size_t, _OUT, _ERROR]),
    "cleat_profile_get": (_STATUS, [_HANDLE, _TEXT, _TEXT, ctypes.c_size_t, _ERROR]),
    "cleat_profile_destroy": (None, [_HANDLE]),
    "cleat_profile_apply_init": (_STATUS, [_HANDLE, _ERROR]),
    "cleat_profile_apply_run": (_STATUS, [_HANDLE, _TEXT, _ERROR]),
    "cleat_train": (_STATUS, [_HANDLE, ctypes.POINTER(TrainOptions), ctypes.POINTER(TrainReport), _ERROR]),
    "cleat_evaluate_examples": (_STATUS, [_HANDLE, _TEXT, _TEXT, _TEXT, ctypes.POINTER(Metrics), _ERROR]),
    "cleat_predict": (_STATUS, [_HANDLE, _TEXT, _TEXT, _TEXT, ctypes.POINTER(ctypes.c_size_t), _ERROR]),
    "cleat_history_read": (_STATUS, [_TEXT, _OUT, _ERROR]),
    "cleat_history_free": (None, [_HANDLE]),
    "cleat_history_find": (ctypes.POINTER(HistoryTable), [_HANDLE, _TEXT]),
}

library = _open()
for _name, (_result, _arguments) in _PROTOTYPES.items():
    try:
        _function = getattr(library, _name)
    except AttributeError as error:
        raise ImportError(f"cleat: {library._name} is of another version than this package: it has no {_name}") from error
    _function.restype, _function.argtypes = _result, _arguments

version: str = library.cleat_version().decode()

# --- calls


def check(status: int, error: ErrorText) -> None:
    """Raises what a call of the library reported."""
    if status != Status.OK:
        raise Error(status, error.text.decode(errors="replace"))


def encode(path: Union[str, os.PathLike]) -> bytes:
    return os.fsencode(path)


_LEVELS = [logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG, logging.DEBUG - 5]  # cleat_log_level


@_LogCallback
def _log(_user, level, text):
    logger.log(_LEVELS[level], "%s", in_python(text.decode(errors="replace")))


def set_log_level() -> None:
    """Enables the messages that the logger "cleat" would pass on; to be called while nothing else runs."""
    wanted = [level for level, python in enumerate(_LEVELS) if logger.isEnabledFor(python)]
    library.cleat_set_log(_log, None, max(wanted, default=0))


class Profile:
    """A profile with its settings, from a file or from a checkpoint; a context manager."""

    def __init__(self, path: Union[str, os.PathLike], settings: Mapping[str, object], of_checkpoint: bool = False):
        error, self._handle = ErrorText(), ctypes.c_void_p()
        texts = [f"{name}={setting_text(value)}".encode() for name, value in settings.items()]
        array = (ctypes.c_char_p * len(texts))(*texts)
        load = library.cleat_profile_of_checkpoint if of_checkpoint else library.cleat_profile_load
        check(load(encode(path), array, len(texts), self._handle, error), error)

    def __enter__(self) -> "Profile":
        return self

    def __exit__(self, *_exception) -> None:
        library.cleat_profile_destroy(self._handle)

    @property
    def handle(self) -> ctypes.c_void_p:
        return self._handle

    def get(self, name: str) -> str:
        """The text of a setting, "section.key", as in resolved.ini."""
        error, text = ErrorText(), ctypes.create_string_buffer(TEXT_BYTES)
        check(library.cleat_profile_get(self._handle, name.encode(), text, len(text), error), error)
        return text.value.decode()


def setting_text(value: object) -> str:
    """A Python value as the text of a setting: True is true, None is none, a list has its items separated by commas."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(setting_text(item) for item in value)
    return str(value)


def find_profile(name: Union[str, os.PathLike]) -> str:
    """The path of a profile: `name` if that is a file, else the shipped profile of that name."""
    error, path = ErrorText(), ctypes.create_string_buffer(PATH_BYTES)
    check(library.cleat_profile_find(encode(name), path, len(path), error), error)
    return os.fsdecode(path.value)


def read_table(folder: Union[str, os.PathLike], kind: str) -> dict:
    """All records of a kind in a run's logs: {name: list of numbers, NaN where a record lacks it}."""
    error, handle = ErrorText(), ctypes.c_void_p()
    check(library.cleat_history_read(encode(folder), handle, error), error)
    try:
        table = library.cleat_history_find(handle, kind.encode())
        if not table:
            return {}
        columns: List[HistoryColumn] = table.contents.items[: table.contents.columns]
        return {column.name.decode(): column.values[: table.contents.rows] for column in columns}
    finally:
        library.cleat_history_free(handle)
