"""The estimators of cleat.sklearn: test_sklearn.py BUILD SOURCE_DIR. Their results are those of cleat.predict and
cleat.evaluate, and of NumPy and scikit-learn's own functions. Exits with 77 without pandas or scikit-learn.

check_estimator fits matrices of features, which no model of cleat takes, so it skips these estimators. Of its checks in
scikit-learn 1.9, CHECKS need no fit, or only that bad input is refused. These fit a matrix first:

    check_array_api_input check_classifier_data_not_an_array check_classifiers_classes check_classifiers_one_label
    check_classifiers_one_label_sample_weights check_classifiers_regression_target check_classifiers_train
    check_complex_data check_decision_proba_consistency check_dict_unchanged check_dont_overwrite_parameters
    check_dtype_object check_estimator_sparse_array check_estimator_sparse_matrix check_estimator_sparse_tag
    check_estimators_dtypes check_estimators_empty_data_messages check_estimators_fit_returns_self
    check_estimators_nan_inf check_estimators_overwrite_params check_estimators_pickle check_f_contiguous_array_estimator
    check_fit2d_1feature check_fit2d_1sample check_fit2d_predict1d check_fit_check_is_fitted check_fit_idempotent
    check_fit_score_takes_y check_methods_sample_order_invariance check_methods_subset_invariance check_n_features_in
    check_n_features_in_after_fitting check_pipeline_consistency check_positive_only_tag_during_fit
    check_readonly_memmap_input check_regressor_data_not_an_array check_regressors_int
    check_regressors_no_decision_function check_regressors_train check_requires_y_none check_supervised_y_2d
    check_supervised_y_no_nan

What they compare, this file compares with texts where it applies: parameters and X unchanged by fit, equal fits, pickles,
order and subsets of samples, one class, missing values."""
# ctest: device cost=40
import copy
import inspect
import pickle
import warnings

from built import IMAGE, SERIES, TEXT, Case, cleat, main

import numpy as np
import pandas as pd
from sklearn import metrics
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks

from cleat.sklearn import CleatClassifier, CleatForecaster, CleatRegressor

CHECKS = """check_do_not_raise_errors_in_init_or_set_param check_estimator_cloneable check_estimator_repr
    check_estimator_tags_renamed check_estimators_partial_fit_n_features check_estimators_unfitted check_fit1d
    check_get_params_invariance check_mixin_order check_no_attributes_set_in_init check_non_transformer_estimators_n_iter
    check_parameters_default_constructible check_set_params check_valid_tag_types""".split()
ALL = (CleatClassifier, CleatRegressor, CleatForecaster)
random = np.random.default_rng(11)
WORDS = np.array("good fine great poor bad awful day night".split())
TEXTS = [" ".join(random.choice(WORDS, 5)) for _ in range(80)]
LABELS = np.array(["yes" if "good" in text else "no" for text in TEXTS])


class Checks(Case):
    def test_checks_of_scikit_learn(self):
        known = dict(inspect.getmembers(estimator_checks, inspect.isfunction))
        names = [name for name in known if name in CHECKS or name[:-1] in CHECKS]  # some end with an s in later releases
        self.assertGreater(len(names), 7)
        for kind in ALL:
            for name in names:
                with self.subTest(f"{kind.__name__}, {name}"):
                    known[name](kind.__name__, kind())

    def test_check_estimator_knows_that_no_matrix_fits(self):
        if hasattr(estimator_checks, "estimator_checks_generator"):
            for kind in ALL:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    estimator_checks.check_estimator(kind())
                self.assertFalse(kind().__sklearn_tags__().input_tags.two_d_array)
        self.assertTrue(is_classifier(CleatClassifier()) and is_regressor(CleatRegressor()))
        for kind in ALL[:2]:
            self.refuses(r"\(30, 3\).*matrix", kind().fit, np.zeros((30, 3)), np.arange(30) % 2, error=ValueError)

    def test_parameters(self):
        model = CleatClassifier(settings={"train.epochs": 3}, device="cpu")
        self.assertEqual(model.get_params()["settings__train.epochs"], 3)
        self.assertNotIn("settings__train.epochs", model.get_params(deep=False))
        copied = clone(model).set_params(**{"settings__train.epochs": 4, "settings__model.layers": 1, "device": None})
        self.assertEqual((copied.settings, copied.device), ({"train.epochs": 4, "model.layers": 1}, None))
        self.assertEqual(model.settings, {"train.epochs": 3})
        self.refuses("Invalid parameter", model.set_params, error=ValueError, epochs=3)
        for kind in ALL:
            self.assertRaises(NotFittedError, kind().predict, None)


class Classifier(Case):
    def test_results_are_those_of_the_run(self):
        model = CleatClassifier(settings=TEXT, out="run")
        settings, texts, labels = copy.deepcopy(model.settings), list(TEXTS), LABELS.copy()
        self.assertIs(model.fit(texts, labels), model)
        self.assertEqual((model.settings, texts, labels.tolist()), (settings, TEXTS, LABELS.tolist()))
        self.assertEqual(model.classes_.tolist(), ["no", "yes"])
        names, values = cleat.predict("run", TEXTS, probabilities=True)
        found = model.predict_proba(TEXTS)
        np.testing.assert_allclose(found, values, atol=1e-6)
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
        self.assertEqual(model.predict(TEXTS).tolist(), cleat.predict("run", TEXTS).tolist())
        self.assertEqual(model.score(TEXTS, LABELS), metrics.accuracy_score(LABELS, model.predict(TEXTS)))
        self.assertEqual(model.metrics_, cleat.Run("run").metrics)
        self.assertTrue(np.isfinite(metrics.log_loss(LABELS, found)))
        again = CleatClassifier(settings=TEXT).fit(TEXTS, LABELS)
        np.testing.assert_array_equal(again.predict_proba(TEXTS), found)  # equal fits
        loaded = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(loaded.predict_proba(TEXTS), found)
        order = random.permutation(80)[:30]
        np.testing.assert_array_equal(model.predict_proba([TEXTS[i] for i in order]), found[order])
        for texts in (np.array(TEXTS), np.array(TEXTS, dtype=object), pd.Series(TEXTS), pd.DataFrame({"x": TEXTS}), np.array(TEXTS)[:, None]):
            np.testing.assert_array_equal(model.predict_proba(texts), found)

    def test_every_kind_of_class(self):
        yes = LABELS == "yes"
        for classes in (np.array([7, -2]), np.array([False, True]), np.array([0.5, 1.5]), np.array(["a b", 'c,"d"'], dtype=object)):
            y = classes[yes.astype(int)]
            model = CleatClassifier(settings=TEXT).fit(TEXTS, pd.Series(y).astype("category") if y.dtype == object else y)
            self.assertEqual(model.classes_.tolist(), sorted(classes.tolist()))
            self.assertTrue(set(model.predict(TEXTS)) <= set(classes.tolist()))

    def test_images(self):
        images, y = random.integers(0, 256, (40, 16, 16), np.uint8), np.where(np.arange(40) % 3, "x", "y")
        model = CleatClassifier("image_fashion", settings={**IMAGE, "data.val_fraction": 0.2}).fit(images, y)
        found = model.predict_proba(images)
        self.assertEqual(found.shape, (40, 2))
        self.assertEqual(model.predict(images).tolist(), model.classes_[found.argmax(1)].tolist())
        np.testing.assert_array_equal(model.predict_proba(list(images[:5])), found[:5])
        colour = np.repeat(images[..., None], 3, -1)
        self.assertEqual(CleatClassifier("image_fashion", settings=IMAGE).fit(colour, y).predict(colour).shape, (40,))

    def test_searches_and_pipelines(self):
        lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
        pipe = Pipeline([("lower", lower), ("model", CleatClassifier(settings=TEXT))])
        pipe.set_params(**{"model__settings__train.epochs": 2})
        upper = [text.upper() for text in TEXTS]
        expected = CleatClassifier(settings={**TEXT, "train.epochs": 2}).fit(TEXTS, LABELS).predict(TEXTS)
        self.assertEqual(pipe.fit(upper, LABELS).predict(upper).tolist(), expected.tolist())
        grid = {"settings__train.learning_rate": [1e-3, 0.02], "settings__model.d_ff": [16]}
        search = GridSearchCV(CleatClassifier(settings=TEXT), grid, cv=2, error_score="raise").fit(TEXTS, LABELS)
        self.assertIn(search.best_params_["settings__train.learning_rate"], (1e-3, 0.02))
        self.assertEqual(search.best_estimator_.settings["train.learning_rate"], search.best_params_["settings__train.learning_rate"])
        scores = cross_val_score(clone(search.best_estimator_), TEXTS, LABELS, cv=2)
        self.assertAlmostEqual(scores.mean(), search.best_score_, 12)
        self.assertEqual(cross_val_predict(CleatClassifier(settings=TEXT), TEXTS, LABELS, cv=2, n_jobs=2).shape, (80,))

    def test_odd_input(self):
        model = CleatClassifier(settings=TEXT)
        self.refuses("80 texts, 79 labels", model.fit, TEXTS, LABELS[:-1])
        self.refuses("y contains NaN", model.fit, TEXTS, [np.nan, *LABELS[1:]], error=ValueError)
        self.refuses("1 classes", model.fit, TEXTS, ["a"] * 80)
        self.refuses("3 is neither a text nor an image", model.fit, [*TEXTS[:-1], 3], LABELS, error=ValueError)
        self.refuses("the text is empty", model.fit, [*TEXTS[:-1], None], LABELS)
        self.refuses("float64; images are uint8", CleatClassifier("image_fashion").fit, np.zeros((4, 8, 8)), [0, 1, 0, 1])
        self.refuses("no key 'epoch'|epoch", CleatClassifier(settings={"train.epoch": 3}).fit, TEXTS, LABELS)
        try:
            CleatClassifier(settings={"train.epoch": 3}).fit(TEXTS, LABELS)
        except cleat.Error as error:
            self.assertIn('settings={"train.epoch": 3}', str(error))
            self.assertNotIn("--set", str(error))
            sent = pickle.loads(pickle.dumps(error))  # from a worker process
            self.assertEqual((type(sent), sent.status, str(sent)), (cleat.Error, cleat.Status.PROFILE, str(error)))


class Regressor(Case):
    def test_numbers(self):
        y = np.array([text.count("good") - 2.5 * text.count("bad") for text in TEXTS])
        model = CleatRegressor(settings={**TEXT, "train.epochs": 4}, out="run").fit(TEXTS, pd.Series(y))
        found = model.predict(TEXTS)
        self.assertEqual((found.shape, found.dtype), ((80,), np.float64))
        np.testing.assert_array_equal(found, cleat.predict("run", TEXTS))
        evaluated = cleat.evaluate("run", data={"texts": TEXTS, "labels": y})
        self.assertAlmostEqual(model.score(TEXTS, y), evaluated["r2"], 5)
        self.assertAlmostEqual(metrics.mean_absolute_error(y, found), evaluated["mae"], 5)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(TEXTS), found)
        model.out = None
        for bad in (np.nan, np.inf):
            self.refuses("no target|not a number", model.fit, TEXTS, np.where(np.arange(80) == 4, bad, y))


class Forecaster(Case):
    def frame(self, rows=260):
        values = np.sin(np.arange(rows) / 4) + 0.05 * random.standard_normal(rows)
        return pd.DataFrame({"a": values}, index=pd.date_range("2026-03-20", periods=rows, freq="h", tz="Europe/Berlin"))

    def test_the_next_steps(self):
        frame = self.frame()
        model = CleatForecaster(settings={**SERIES, "train.epochs": 3}, out="run").fit(frame)
        found = model.predict()
        self.assertEqual(found.index.tolist(), pd.date_range(frame.index[-1], periods=5, freq="h")[1:].tolist())
        self.assertEqual((list(found.columns), found.index.name), (["a"], "time"))
        whole = cleat.predict("run", frame)
        np.testing.assert_array_equal(found.a.to_numpy(), whole.a.to_numpy()[-4:])
        pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(model)).predict(frame[:50]), model.predict(frame[:50]))

    def test_score(self):
        frame = self.frame()
        model = CleatForecaster(settings={**SERIES, "train.epochs": 3}).fit(frame)
        part, values = frame[100:119], frame.a.to_numpy()[100:119]  # 4 windows of 12 and 4 rows
        ends = range(12, 16)
        truth = np.array([values[end : end + 4] for end in ends])
        forecasts = np.array([model.predict(part[:end]).a for end in ends])
        expected = 1 - ((forecasts - truth) ** 2).mean() / ((values[11:15, None] - truth) ** 2).mean()
        self.assertAlmostEqual(model.score(part), expected, 4)
        grid = GridSearchCV(CleatForecaster(settings=SERIES), {"settings__train.epochs": [1, 3]}, cv=[(np.arange(200), np.arange(200, 260))],
                            error_score="raise").fit(frame)  # fmt: skip
        self.assertIn(grid.best_params_["settings__train.epochs"], (1, 3))

    def test_many_series_and_odd_input(self):
        one = self.frame(200).tz_localize(None).rename_axis("t").reset_index()
        both = pd.concat([one.assign(shop="x"), one[:150].assign(shop="y")])
        found = CleatForecaster(settings={**SERIES, "data.series_column": "shop"}).fit(both).predict()
        self.assertEqual(found.series.value_counts().to_dict(), {"x": 4, "y": 4})
        self.assertEqual(found.index[found.series == "y"][0], one.t[149] + pd.Timedelta("1h"))
        self.refuses("takes a DataFrame", CleatForecaster().fit, np.zeros((20, 2)), error=ValueError)


if __name__ == "__main__":
    main()
