"""Estimators of scikit-learn: CleatClassifier and CleatRegressor for texts and images, CleatForecaster for a DataFrame of
series. Parameters: profile (None: tweets_sentiment, image_64 or series_auto); settings, of which each is also a parameter,
as in GridSearchCV(model, {"settings__train.epochs": [3, 9]}); device; out, the folder of the run (None: only the checkpoint
is kept, in the estimator, also if it is pickled). X is a list or column of texts, or images as for cleat.train.
No model of cleat learns from a matrix of features, and check_estimator fits only such: tests/python/test_sklearn.py runs
its checks that do not fit, and lists the others."""
import pathlib
import tempfile
from typing import Any, Dict, Tuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from ._run import evaluate, predict, train
from ._tables import cell, is_frame

__all__ = ["CleatClassifier", "CleatForecaster", "CleatRegressor"]

def _samples(X: Any) -> Tuple[str, Any]:
    """The key of X in the data of cleat.train, and X as that takes it."""
    if is_frame(X) or getattr(X, "ndim", 1) == 2:
        if X.shape[1] != 1:
            raise ValueError(f"X: shape {X.shape}; no model of cleat learns from a matrix of features: texts or images")
        X = np.asarray(X)[:, 0]
    if np.ndim(next(iter(X), "")):
        return "images", X
    for text in X:
        if not isinstance(text, str) and cell(text):
            raise ValueError(f"X: {text!r} is neither a text nor an image")
    return "texts", list(X)


class _Estimator(BaseEstimator):
    def __init__(self, profile: Any = None, settings: Any = None, device: Any = None, out: Any = None):
        self.profile, self.settings, self.device, self.out = profile, settings, device, out

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        settings = self.settings if deep and isinstance(self.settings, dict) else {}
        return {**super().get_params(deep), **{f"settings__{name}": value for name, value in settings.items()}}

    def set_params(self, **params: Any) -> Any:
        changed = {name[10:]: params.pop(name) for name in list(params) if name.startswith("settings__")}
        if changed:
            params["settings"] = {**(params.get("settings", self.settings) or {}), **changed}
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string, tags.no_validation = False, True, True
        return tags

    def _fit(self, data: Any, **settings: Any) -> Any:
        profile = "series_auto" if is_frame(data) else "tweets_sentiment" if "texts" in data else "image_64"
        with tempfile.TemporaryDirectory(prefix="cleat-") as folder:
            options = {"settings": {**settings, **(self.settings or {})}, "device": self.device, "progress": False}
            run = train(self.profile or profile, data, out=self.out or pathlib.Path(folder, "run"), **options)
            files = pathlib.Path(run.checkpoint or run).glob("*")
            self.checkpoint_ = {path.name: path.read_bytes() for path in files if path.stem != "optim"}
            self.metrics_ = run.metrics
        return self

    def _apply(self, function: Any) -> Any:
        check_is_fitted(self)
        with tempfile.TemporaryDirectory(prefix="cleat-") as folder:
            for name, data in self.checkpoint_.items():
                pathlib.Path(folder, name).write_bytes(data)
            return function(folder)


class CleatClassifier(ClassifierMixin, _Estimator):
    def fit(self, X: Any, y: Any) -> Any:
        kind, samples = _samples(X)
        if not all(map(cell, np.ravel(np.asarray(y, dtype=object)))):
            raise ValueError("Input y contains NaN: remove these samples")
        self.classes_, codes = np.unique(column_or_1d(y), return_inverse=True)
        self._names = [str(name) for name in (self.classes_ if kind == "texts" else range(len(self.classes_)))]
        labels = [self._names[i] for i in codes] if kind == "texts" else codes
        return self._fit({kind: samples, "labels": labels})

    def predict_proba(self, X: Any) -> np.ndarray:
        """[N, C] in the order of classes_; 0 for a class that is missing in the training part."""
        names, values = self._apply(lambda run: predict(run, _samples(X)[1], probabilities=True, device=self.device))
        found = np.zeros((len(values), len(self.classes_)))
        found[:, [self._names.index(str(name)) for name in names]] = values
        return found / found.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        found = self.predict_proba(X)
        return self.classes_[found.argmax(axis=1)]


class CleatRegressor(RegressorMixin, _Estimator):
    def fit(self, X: Any, y: Any) -> Any:
        kind, samples = _samples(X)
        settings = {"model.problem_type": "regression", "run.metric": "r2", "loss.label_smoothing": 0}
        return self._fit({kind: samples, "labels": column_or_1d(y).astype(np.float64)}, **settings)

    def predict(self, X: Any) -> np.ndarray:
        return self._apply(lambda run: predict(run, _samples(X)[1], device=self.device))


class CleatForecaster(_Estimator):
    def fit(self, X: Any, y: Any = None) -> Any:
        if not is_frame(X):
            raise ValueError(f"X: {type(X).__name__}; a forecaster takes a DataFrame with a column or an index of times")
        self.history_ = X
        return self._fit(X)

    def predict(self, X: Any = None) -> Any:
        """The data.horizon steps after the end of X, None: of the training data: a DataFrame by time."""
        found = self._apply(lambda run: predict(run, self.history_ if X is None else X, device=self.device))
        made_at = found.groupby("series").made_at.transform("max") if "series" in found else found.made_at.max()
        return found[found.made_at == made_at].drop(columns=["made_at", "step"]).set_index("time")

    def score(self, X: Any, y: Any = None) -> float:
        """1 - mse / persistence_mse over all windows of X: 0 is as good as repeating the last value."""
        metrics = self._apply(lambda run: evaluate(run, data=X, device=self.device))
        return 1 - metrics["mse"] / metrics["persistence_mse"]
