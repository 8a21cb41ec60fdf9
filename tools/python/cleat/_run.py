"""Training, evaluation and prediction: profiles, arrays and folders in, runs and arrays out."""
import configparser
import contextlib
import ctypes
import json
import os
import pathlib
import queue
import sys
import tempfile
import threading
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence, Union

from . import _library, _program
from ._library import Error, ErrorText, Profile, Status, check, encode, library
from ._live import curves
from ._tables import fail, is_frame, is_path
from ._words import in_python

Path = Union[str, "os.PathLike[str]"]
Settings = Optional[Mapping[str, object]]


def _kind(model_type: str, data: Any) -> Any:
    """How arrays or a DataFrame of a model family become files, and its predictions such; needs NumPy."""
    try:
        from . import _frames, _images, _rna, _series, _texts
    except ImportError as error:
        raise ImportError("cleat: arrays and predictions need NumPy: pip install numpy") from error
    family, tables = model_type.split("_")[0], {"image": _images.Classes, "series": _series.Series}
    others = {"mask": _images.Masks, "emberformer": _images.Maps, "rna": _rna.Chains}
    texts = {"text_classifier": _texts.Texts, "text_tagger": _texts.Tags, "text_pretrain": _texts.Masked}
    kind = {**tables, **others}.get(family) or texts.get(model_type)
    if not kind:
        raise fail(f"model.type = {model_type}: this family takes paths, not arrays")
    if is_frame(data) and family not in tables and model_type != "text_classifier":
        raise fail(f"model.type = {model_type}: this family takes a dict of arrays, or paths, not a DataFrame")
    return _frames.Frames(family) if is_frame(data) else kind


def _chosen(settings: Settings, device: Optional[str]) -> Dict[str, object]:
    return {**(settings or {}), **({} if device is None else {"run.device": device})}


@contextlib.contextmanager
def _profile(
    path: Path, settings: Dict[str, object], data: Any, validation: Any = None, of_checkpoint: bool = False
) -> Iterator[Profile]:
    """A profile with these settings and this data, which is written into a temporary folder if it is arrays."""
    if data is None or is_path(data):
        if validation is not None:
            raise fail("validation takes arrays if data are arrays; files have their validation part beside them")
        given = {} if data is None else {"data.path": os.fspath(data)}
        with Profile(path, {**settings, **given}, of_checkpoint) as profile:
            yield profile
        return
    if not isinstance(data, Mapping) and not is_frame(data):
        raise fail(f"data is a path, a dict of arrays or a DataFrame, not {type(data).__name__}")
    if validation is not None and is_frame(validation) != is_frame(data):
        raise fail(f"data is {type(data).__name__} and validation {type(validation).__name__}; give both as the same")
    with tempfile.TemporaryDirectory(prefix="cleat-") as folder:
        with Profile(path, settings, of_checkpoint) as profile:
            kind = _kind(profile.get("model.type"), data)
            made = kind.write_training(pathlib.Path(folder), data, validation, profile.get)
        with Profile(path, {**made, **settings, "data.path": made["data.path"]}, of_checkpoint) as profile:
            yield profile


class Run:
    """The folder of a run: its metrics, settings and checkpoints."""

    def __init__(self, folder: Path):
        self.folder = pathlib.Path(folder)
        if not (self.folder / "resolved.ini").is_file():
            raise Error(Status.NOT_FOUND, f"{self.folder}: not the folder of a run: it has no resolved.ini")

    def __fspath__(self) -> str:
        return str(self.folder)

    def __repr__(self) -> str:
        return f"cleat.Run({str(self.folder)!r})"

    def history(self, kind: str = "train") -> Dict[str, Any]:
        """The records of a kind: "train" (every step), "eval" (every evaluation), "sample" (speed, idle time, memory, power).
        {name: array [records]}, NaN where a record lacks the name; lists without NumPy."""
        table = _library.read_table(self.folder, kind)
        try:
            import numpy as np
        except ImportError:
            return table
        return {name: np.array(values) for name, values in table.items()}

    @property
    def metrics(self) -> Dict[str, float]:
        """The best evaluation: {"step": 120.0, "epoch": ..., "loss": ..., "accuracy": ...}; empty without an evaluation."""
        evaluations = _library.read_table(self.folder, "eval")
        steps = evaluations.get("step", [])
        if not steps:
            return {}
        best = self._best_step()
        row = len(steps) - 1 - steps[::-1].index(best) if best in steps else len(steps) - 1
        return {name: values[row] for name, values in evaluations.items()}

    @property
    def settings(self) -> Dict[str, str]:
        """All settings of the run, {"section.key": text}, with the value that every `auto` became."""
        ini = configparser.RawConfigParser(strict=False, inline_comment_prefixes=(" ;",), default_section="")
        ini.optionxform = str  # type: ignore[assignment,method-assign]
        ini.read(self.folder / "resolved.ini", encoding="utf-8")
        return {f"{section}.{key}": value for section in ini.sections() for key, value in ini.items(section)}

    @property
    def checkpoint(self) -> Optional[pathlib.Path]:
        """The folder of the best checkpoint, or of the last one if none was evaluated; None: there is none."""
        for name in ("best", "last"):
            with contextlib.suppress(FileNotFoundError):
                return self.folder / (self.folder / name).read_text(encoding="utf-8").strip()
        return None

    def predict(self, inputs: Any, **options: Any) -> Any:
        """cleat.predict(run, inputs, ...)."""
        return predict(self, inputs, **options)

    def evaluate(self, *split: str, **options: Any) -> Dict[str, Any]:
        """cleat.evaluate(run, ...)."""
        return evaluate(self, *split, **options)

    def generate(self, prompts: Any, **options: Any) -> Any:
        """cleat.generate(run, prompts, ...)."""
        return _program.generate(self, prompts, **options)

    def _best_step(self) -> Optional[int]:
        """The step of the best evaluation, as recorded in the last checkpoint."""
        with contextlib.suppress(FileNotFoundError):
            last = (self.folder / "last").read_text(encoding="utf-8").strip()
            return json.loads((self.folder / last / "state.json").read_text(encoding="utf-8"))["state"]["best_step"]
        return None


# --- training


class _Thread(threading.Thread):
    """Runs cleat_train; its messages go to the queue, and None at the end. So callbacks of Python run in the caller's
    thread, where they may raise anything, and Ctrl-C takes effect at once."""

    def __init__(self, profile: Profile, options: _library.TrainOptions):
        super().__init__(name="cleat.train", daemon=True)
        self.said: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self.stop = ctypes.c_int(0)
        self.report, self.error, self.status = _library.TrainReport(), ErrorText(), Status.OK
        self._profile, self._options = profile, options
        options.stop = ctypes.pointer(self.stop)
        self._print = _library.TextCallback(lambda _user, text: self.said.put(in_python(text.decode(errors="replace"))))
        self._record = _library.TextCallback(lambda _user, line: self.said.put(json.loads(line)))
        options.record = self._record

    def show_progress(self) -> None:
        self._options.print = self._print

    def run(self) -> None:
        try:
            arguments = (self._profile.handle, self._options, self.report, self.error)
            self.status = Status(library.cleat_train(*arguments))
        finally:
            self.said.put(None)


def _listen(thread: _Thread, callbacks: Sequence[Callable[[dict], object]]) -> Optional[BaseException]:
    """Passes on the run's messages until it has ended. An exception of a callback, or Ctrl-C, stops the run and is returned."""
    raised: Optional[BaseException] = None
    while True:
        try:
            said = thread.said.get()
            if said is None:
                return raised
            if isinstance(said, str):
                sys.stderr.write(said)
                sys.stderr.flush()
            elif raised is None and any([call(said) is False for call in callbacks]):
                thread.stop.value = 1
        except BaseException as error:  # pylint: disable=broad-except
            if raised is None and isinstance(error, KeyboardInterrupt):
                _library.logger.warning("interrupted: the run ends after this step, with a checkpoint")
            raised = raised or error
            thread.stop.value = 1


def train(
    profile: Path,
    data: Any = None,
    *,
    validation: Any = None,
    out: Optional[Path] = None,
    settings: Settings = None,
    device: Optional[str] = None,
    resume: bool = False,
    resume_from: Optional[Path] = None,
    on_step: Optional[Callable[[dict], object]] = None,
    callbacks: Sequence[Callable[[dict], object]] = (),
    progress: bool = True,
) -> Run:
    """Trains, and returns the run.

    profile      a path, or the name of a shipped profile ("image_fashion")
    data         a file or folder, a DataFrame (texts, series, tables of images), or a dict of arrays with the keys below;
                 None: what the profile's data.path names
                     images, labels     [N, H, W] or [N, H, W, 3] uint8, [N]        image_...
                     images, masks      the same, [N, H, W]                         mask_segformer
                     texts, labels      lists                                       text_classifier
                     sentences, tags    lists of words, lists of BIO tags           text_tagger
                     texts              lists                                       text_pretrain
                     times, values, columns (optional)    [T], [T, columns], names  series_...
                     sequences, coordinates    texts, arrays [L, 3] in Angstrom     rna_transformer
                     frames, masks      [N, T, C, H, W], [N, H, W]                  emberformer
    validation   as `data`; None: the profile's data.val_fraction of the data, or a tenth of them
    out          the run's folder; None: runs/TYPE-DATE-TIME
    settings     {"train.epochs": 3, ...}; `cleat train --help-profile` lists them
    device       "auto", "gpu", "cpu", a number of cleat.devices(), or part of a name
    resume       continue the run in `out` from its last checkpoint
    resume_from  begin with the last checkpoint of another run's folder, which is only read
    on_step      called with each record of metrics.jsonl, a dict ("kind": "train", "eval", ...), perhaps some steps later;
                 if it returns False, or raises, the run ends after its step, with a checkpoint
    callbacks    more functions like on_step; each is called with every record
    progress     print progress on sys.stderr; in a notebook with matplotlib also draw loss and metric while the run trains

    Ctrl-C ends the run after its step, with a checkpoint, and raises KeyboardInterrupt. A run that its time budget or
    on_step ends is returned as any other. Raises cleat.Error."""
    path = _library.find_profile(profile)
    calls = [on_step, *([callbacks] if callable(callbacks) else callbacks)]
    if wrong := [call for call in calls if call is not None and not callable(call)]:
        raise fail(f"callbacks: {wrong[0]!r} is not a function")
    options = _library.TrainOptions(
        out=encode(out) if out is not None else None,
        resume=resume,
        resume_from=encode(resume_from) if resume_from is not None else None,
        command=b"cleat.train",
        profile_path=encode(path),
        width=80,
    )
    _library.set_log_level()
    with _profile(path, _chosen(settings, device), data, validation) as opened:
        thread, earlier = _Thread(opened, options), resume_from or (out or opened.get("run.out") if resume else None)
        init = (library.cleat_profile_apply_run, encode(earlier)) if earlier else (library.cleat_profile_apply_init,)
        check(init[0](opened.handle, *init[1:], thread.error), thread.error)  # sizes that model.init determines
        live = curves(opened.get("run.metric")) if progress else None
        if progress:
            thread.show_progress()
        thread.start()
        raised = _listen(thread, [call for call in (*calls, live) if call])
        thread.join()
        if live:
            live(None)
    if raised is not None:
        raise raised
    if thread.status not in (Status.TIME_UP, Status.INTERRUPTED):
        check(thread.status, thread.error)
    return Run(os.fsdecode(thread.report.folder))


# --- what a checkpoint can do


def evaluate(
    run: Path,
    split: Optional[str] = None,
    data: Any = None,
    *,
    settings: Settings = None,
    device: Optional[str] = None,
    classes: bool = False,
) -> Dict[str, Any]:
    """The loss and the metrics of a run's best checkpoint, or of a checkpoint's folder, {name: value}.

    split     "train", "val", "test" or "all"; None: "all" of `data`, or "val" of the run's own data
    data      a path, a dict of arrays or a DataFrame, as for cleat.train; None: the data of the run, if they were files
    classes   adds "classes", [{"name": ..., "precision": ..., "recall": ..., "f1": ..., "support": ...}] of at most 100
              classes, and "confusion", {"labels": [C], "counts": [C, C]} with rows of the truth; both may be None"""
    _library.set_log_level()
    metrics, error = _library.Metrics(), ErrorText()
    with contextlib.ExitStack() as stack:
        profile = stack.enter_context(_profile(run, _chosen(settings, device), data, of_checkpoint=True))
        path = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cleat-"))) / "examples.json"
        part, own = split or ("val" if data is None else "all"), profile.get("data.path")
        if data is None and not os.path.exists(own):
            raise Error(Status.NOT_FOUND, f"{own}: the data of the run were not found; pass them as `data` (arrays again)")
        wanted = encode(path) if classes else None
        check(library.cleat_evaluate_examples(profile.handle, encode(run), part.encode(), wanted, metrics, error), error)
        found = json.loads(path.read_text(encoding="utf-8")) if classes else {}
    return {**metrics.as_dict(), **{name: found[name] for name in ("classes", "confusion") if classes}}


def predict(
    run: Path,
    inputs: Any,
    *,
    probabilities: bool = False,
    out: Optional[Path] = None,
    settings: Settings = None,
    device: Optional[str] = None,
) -> Any:
    """What a run's best checkpoint, or a checkpoint's folder, predicts for `inputs`: arrays as for cleat.train, or a path;
    for a DataFrame, a DataFrame with the columns of predictions.csv.

        images, texts       the labels, an array [N]: integers if all names of classes are; several labels: lists; numbers:
                            [N] or [N, K]; with `probabilities` the classes [C] and their probabilities [N, C]
        images with masks   masks, bool [N, H, W] (a list where sizes differ); with `probabilities` those;
                            with data.classes the classes, uint8, or the probability of each pixel's class
        {times, values}     a named tuple Forecast: values, times, made_at, columns
        RNA sequences       a list of coordinates [L, 3] in Angstrom
        sentences           a list of lists of tags
        texts with masked tokens    for each text a list with the token found at each; with `probabilities` the five most
                                    probable ones, (token, probability)
        frames of maps      as images with masks

    out       a folder for the files that `cleat predict` writes; None: they are deleted"""
    _library.set_log_level()
    error = ErrorText()
    with contextlib.ExitStack() as stack:
        profile = stack.enter_context(Profile(run, _chosen(settings, device), of_checkpoint=True))
        model_type = profile.get("model.type")
        kind = _kind(model_type, inputs)
        scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cleat-")))
        data, written = scratch / "inputs", pathlib.Path(out) if out is not None else scratch / "predictions"
        if is_path(inputs):
            data = pathlib.Path(inputs)
        else:
            if not len(inputs):
                raise fail("no inputs: nothing to predict")
            data.mkdir()
            data = kind.write_inputs(data, inputs, profile.get)
        count = ctypes.c_size_t()
        status = library.cleat_predict(profile.handle, encode(run), encode(data), encode(written), count, error)
        check(status, error)
        if not is_path(inputs) and not model_type.startswith("series_") and count.value != len(inputs):
            raise fail(f"{len(inputs)} inputs, but {count.value} predictions: see the log for the inputs left out")
        return kind.read(written, inputs, profile.get, probabilities)
