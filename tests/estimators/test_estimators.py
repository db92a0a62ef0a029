"""The face of scikit-learn's estimators: its own checks, and its tools around ours."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.base
import sklearn.cluster
import sklearn.decomposition
import sklearn.linear_model
import sklearn.neighbors
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import wonderland as wl

E = wl.estimators
X, Y = load_iris(return_X_y=True)
NUMBERS = X[:, 3] * 100.0 + 1000.0


def small(inputs: int, outputs: int) -> wl.nn.Module:
    return wl.models.MLP(inputs, [8], outputs)


QUICK = {"epochs": 8, "batch_size": 64, "lr": 0.1, "compiled": False, "random_state": 0}
# scikit-learn's checks fit about a hundred times: few and cheap steps will do
CHEAP = {**QUICK, "optimizer": "sgd", "lr": 0.5, "epochs": 5}
ESTIMATORS = {
    "Classifier": lambda: E.Classifier(wl.nn.Linear, **CHEAP),
    "Regressor": lambda: E.Regressor(wl.nn.Linear, **{**CHEAP, "lr": 0.1}),
    "LogisticRegression": lambda: E.LogisticRegression(l2=1.0),
    "KMeans": lambda: E.KMeans(n_init=1, max_iter=30, random_state=0),
    **{
        name: getattr(E, name)
        for name in (
            "LinearRegression", "Ridge", "Lasso", "ElasticNet", "KNeighborsClassifier", "KNeighborsRegressor",
            "GaussianMixture", "PCA",
        )
    },
}  # fmt: skip


def test_every_estimator_is_checked() -> None:
    classes = {name for name in E.__all__ if isinstance(getattr(E, name), type)}
    assert classes == set(ESTIMATORS)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_checks_of_scikit_learn(name: str) -> None:
    expected = E.EXPECTED_FAILED_CHECKS if name in ("Classifier", "Regressor") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models on data that suit no model
        done = check_estimator(ESTIMATORS[name](), expected_failed_checks=expected, on_skip=None)
    assert sum(check["status"] == "passed" for check in done) >= 35


def test_a_pipeline_with_a_search_and_cross_validation() -> None:
    pipeline = make_pipeline(StandardScaler(), E.PCA(3), E.Classifier(small, **QUICK))
    assert cross_val_score(pipeline, X, Y, cv=3).mean() > 0.8
    search = GridSearchCV(pipeline, {"classifier__lr": [1e-6, 0.1], "pca__n_components": [2]}, cv=2).fit(X, Y)
    assert search.best_params_["classifier__lr"] == 0.1


def test_names_of_classes_weights_and_pickles() -> None:
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    model = E.Classifier(small, **QUICK).fit(X, names)
    assert model.score(X, names) > 0.9
    assert model.classes_.tolist() == sorted(set(names))
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), p)
    again = sklearn.base.clone(model).fit(X, names)
    np.testing.assert_array_equal(again.predict_proba(X), p)
    weights = np.where(Y == 2, 1e-6, 1.0)
    unweighted = E.Classifier(small, **QUICK).fit(X, Y, sample_weight=weights).predict_proba(X)[:, 2].mean()
    assert unweighted < 0.05 < p[:, 2].mean()


def test_a_module_is_copied_and_the_global_stream_is_left_alone() -> None:
    module = wl.models.MLP(4, [8], 3)
    before = {name: np.array(value) for name, value in module.state_dict().items()}
    stream = np.array(wl.random.default_stream.value)
    model = E.Classifier(module, **QUICK).fit(X, Y)
    assert model.score(X, Y) > 0.8
    assert all(np.array_equal(before[name], value) for name, value in module.state_dict().items())
    np.testing.assert_array_equal(wl.random.default_stream.value, stream)


def test_targets_far_from_zero_are_scaled() -> None:
    model = E.Regressor(small, **QUICK).fit(X[:, :3], NUMBERS)
    assert model.score(X[:, :3], NUMBERS) > 0.8
    both = E.Regressor(small, **QUICK).fit(X[:, :3], np.stack([NUMBERS, -NUMBERS], 1)).predict(X[:, :3])
    assert both.shape == (150, 2)
    assert np.corrcoef(both[:, 0], both[:, 1])[0, 1] < -0.9


def test_partial_fits_go_on() -> None:
    model = E.Classifier(small, **QUICK)
    for _ in range(8):
        model.partial_fit(X, Y, classes=[0, 1, 2])
    assert model.n_iter_ == len(model.history_) == 8
    assert model.score(X, Y) > 0.8
    with pytest.raises(wl.errors.InputError, match="none of the classes"):
        model.partial_fit(X[:2], [0, 7])
    number = E.Regressor(small, **QUICK).partial_fit(X, NUMBERS).partial_fit(X, NUMBERS)
    assert number.n_iter_ == 2


def test_images_and_compiled_training() -> None:
    images = np.zeros((40, 4, 4, 1), np.float32)
    labels = np.arange(40) % 2
    images[labels == 1, :2] = 1.0

    def build(shape: tuple[int, ...], outputs: int) -> wl.nn.Module:
        assert shape == (4, 4, 1)
        return wl.nn.Sequential(wl.nn.Flatten(), wl.nn.Linear(16, outputs))

    model = E.Classifier(build, **{**QUICK, "compiled": True, "standardize": False}).fit(images, labels)
    assert model.score(images, labels) == 1.0


def test_classical_models_agree_with_scikit_learn() -> None:
    linear = sklearn.linear_model.LinearRegression().fit(X[:, :3], NUMBERS)
    ours = E.LinearRegression().fit(X[:, :3], NUMBERS)
    np.testing.assert_allclose(ours.coef_, linear.coef_, rtol=1e-8)
    np.testing.assert_allclose(ours.intercept_, linear.intercept_, rtol=1e-8)
    near = sklearn.neighbors.KNeighborsClassifier().fit(X, Y)
    np.testing.assert_allclose(E.KNeighborsClassifier().fit(X, Y).predict_proba(X), near.predict_proba(X), atol=0.21)
    reference = sklearn.decomposition.PCA(2).fit(X)
    np.testing.assert_allclose(np.abs(E.PCA(2).fit_transform(X)), np.abs(reference.transform(X)), atol=1e-9)
    clusters = sklearn.cluster.KMeans(3, n_init=5, random_state=0).fit(X)
    assert E.KMeans(3, n_init=5, random_state=0).fit(X).inertia_ == pytest.approx(clusters.inertia_, rel=1e-3)


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: E.Classifier(lambda i, o: None, **QUICK), "gave no module"),
        (lambda: E.Classifier(small, **{**QUICK, "optimizer": "adamx"}), "'adam'"),
        (lambda: E.Classifier(small, **{**QUICK, "loss": "crossentropi"}), "'cross_entropy'"),
        (lambda: E.Classifier(small, **{**QUICK, "random_state": -3}), "random_state=-3"),
    ],
)
def test_bad_parameters(make: Any, said: str) -> None:
    with pytest.raises(wl.errors.InputError) as error:
        make().fit(X, Y)
    assert said in str(error.value)


ALONE = """
import sys
sys.modules["sklearn"] = None  # as if it were not installed
import numpy as np
import wonderland as wl
E = wl.estimators
X = np.linspace(-1.0, 1.0, 40).reshape(20, 2)
y = (X[:, 0] > 0).astype(int)
model = E.Classifier(epochs=20, compiled=False, random_state=0).fit(X, y)
assert model.score(X, y) > 0.9
assert model.set_params(lr=0.5).get_params()["lr"] == 0.5
assert "lr=0.5" in repr(model)
assert E.LinearRegression().fit(X, X[:, 0]).score(X, X[:, 0]) > 0.99
assert E.PCA(1).fit_transform(X).shape == (20, 1)
assert E.KMeans(2, random_state=0).fit_predict(X).shape == (20,)
for wrong in (lambda: E.PCA().fit([1.0]), lambda: model.predict(X[:, :1]), lambda: model.set_params(lrr=1)):
    try:
        wrong()
    except wl.errors.InputError:
        continue
    raise AssertionError
"""


def test_without_scikit_learn() -> None:
    source = str(Path(wl.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", ALONE], env={"PYTHONPATH": source}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
