"""Hints for names from PyTorch, NumPy, Keras and JAX: the table holds what it says, and errors show it."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wonderland as wl
from wonderland.core.advice import hint_for
from wonderland.core.habits import KEYWORDS, MODULES, NETWORKS, TENSORS
from wonderland.core.naming import look_up, near

ENTRIES = [(place, name) for place, names in MODULES.items() for name in names]
# what a hint says in code: wl.concatenate(...), nn.Linear(...), x.astype(...)
PATHS = re.compile(r"\b(wl|nn|x|model)((?:\.\w+)+)")


def exists(root: str, path: str) -> bool:
    found: object = {"wl": wl, "nn": wl.nn, "x": wl.ones((2, 2)), "model": wl.nn.Linear(2, 2)}[root]
    for part in path.strip(".").split("."):
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def test_no_entry_is_about_a_name_that_is_there() -> None:
    for place, name in ENTRIES:
        module = importlib.import_module(f"wonderland.{place}".rstrip("."))
        assert not hasattr(module, name), f"wl.{place}.{name}"
    assert [name for name in TENSORS if hasattr(wl.ones(2), name)] == []
    assert [name for name in NETWORKS if hasattr(wl.nn.Linear(2, 2), name)] == []


def test_what_hints_say_is_there() -> None:
    texts = [hint for names in [*MODULES.values(), TENSORS, NETWORKS] for hint in names.values()]
    said = {pair for text in texts for pair in PATHS.findall(text)}
    assert len(said) > 100
    missing = sorted(f"{root}{path}" for root, path in said if not exists(root, path))
    assert missing == []


@pytest.mark.parametrize(
    "expression, said",
    [
        ("wl.cat", "wl.concatenate"),
        ("wl.from_numpy", "wl.asarray"),
        ("wl.PRNGKey", "wl.random.key"),
        ("wl.concatenat", "wl.concatenate"),
        ("wl.Dense", "nn.Linear"),
        ("wl.nn.Dense", "nn.Linear"),
        ("wl.nn.Conv2D", "nn.Conv2d"),
        ("wl.nn.Linaer", "wl.nn.Linear"),
        ("wl.nn.functional.one_hot", "wl.one_hot"),
        ("wl.optim.lr_scheduler", "wl.optim.schedules"),
        ("wl.metrics.f1_score", "wl.metrics.F1"),
        ("wl.linalg.inverse", "wl.linalg.inv"),
        ("wl.ones(2).cuda", "leave it out"),
        ("wl.ones(2).add_", "x = x.add(...)"),
        ("wl.nn.Parameter(wl.ones(2)).cuda", "leave it out"),
        ("wl.nn.Linear(2, 2).fit", "wl.train.fit"),
        ("wl.nn.Linear(2, 2).register_buffer", "wl.nn.Buffer"),
    ],
)
def test_attributes_that_are_called_otherwise_here(expression: str, said: str) -> None:
    with pytest.raises(AttributeError) as error:
        eval(expression)
    assert said in str(error.value)


def test_names_that_nobody_knows_get_no_hint() -> None:
    with pytest.raises(AttributeError) as error:
        _ = wl.qwertzuiop  # type: ignore[attr-defined]
    assert str(error.value) == "module 'wonderland' has no attribute 'qwertzuiop'"
    assert not hasattr(wl, "__wrapped__")


def test_hints_are_no_attributes() -> None:
    model = wl.nn.Linear(2, 2)
    assert not hasattr(model, "fit")
    assert "fit" not in dir(model)
    assert "cuda" not in dir(wl.ones(2))
    model.weights = 3  # a module may have what only has a hint
    assert model.weights == 3


class Own(wl.nn.Module):
    def fit(self) -> int:
        return 5


def test_a_subclass_may_have_the_method() -> None:
    assert Own().fit() == 5


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "mps"])
def test_devices(device: str) -> None:
    for thing in (wl.ones(2), wl.nn.Linear(2, 2)):
        with pytest.raises(wl.errors.InputError, match="no device '" + device):
            thing.to(device)
        assert thing.to("cpu") is not None


CALLS = {
    "wl.sum(x, dim=0)": "axis=",
    "x.sum(dim=0)": "axis=",
    "x.sum(0, keepdim=True)": "keepdims=",
    "x.var(0, unbiased=False)": "correction=",
    "x.masked_fill(x > 0, 1.0, device=3)": "leave it out",
    "wl.concatenate([x], dim=0)": "axis=",
    "wl.softmax(x=x)": "x goes by position",
    "wl.optim.Adam(wl.nn.Linear(2, 2), learning_rate=0.1)": "lr=",
    "wl.nn.Linear(2, units=3)": "out_features=",
    "wl.nn.Softmax(dim=1)": "axis=",
    "wl.nn.LayerNorm(3, epsilon=1e-3)": "eps=",
    "wl.nn.Dropout(prob=0.5)": "p=",
}


@pytest.mark.parametrize("call", CALLS)
def test_arguments_that_are_called_otherwise_here(call: str) -> None:
    x = wl.ones((2, 3))
    with pytest.raises(TypeError) as error:
        eval(call, {"wl": wl, "x": x})
    assert CALLS[call] in (hint_for(error.value) or "")


def test_errors_of_other_functions_get_no_hint() -> None:
    def sum(x: object) -> None: ...

    with pytest.raises(TypeError) as error:
        sum(1, dim=0)  # type: ignore[call-arg]
    assert hint_for(error.value) is None
    with pytest.raises(TypeError) as error:
        eval("one()", {"one": 1})
    assert hint_for(error.value) is None
    assert hint_for(ValueError("sum() got an unexpected keyword argument 'dim'")) is None


def test_every_keyword_of_the_table_leads_somewhere() -> None:
    assert all(isinstance(names, tuple) for names in KEYWORDS.values())
    assert set(KEYWORDS).isdisjoint({"axis", "keepdims", "lr"})


SCRIPT = """
import wonderland as wl
x = wl.ones((2, 3))
{}
"""


@pytest.mark.parametrize(
    "line, said",
    [
        ("x.sum(dim=0)", "TypeError: Tensor.sum() got an unexpected keyword argument 'dim'\n  try: axis="),
        ("x.size(0)", "TypeError: 'int' object is not callable\n  try: x.shape for the sizes"),
        ("from wonderland.nn import Dense", "\n  try: nn.Linear(inputs, outputs)"),
    ],
)
def test_what_a_program_shows(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(line))
    source = str(Path(wl.__file__).parent.parent)
    done = subprocess.run([sys.executable, path], env={"PYTHONPATH": source}, capture_output=True, text=True)
    assert said in done.stderr


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"learning_rate": 0.1}, "lr="),
        ({"validation_data": None}, "validation="),
        ({"verbose": 1}, "progress="),
        ({"y": 1}, "data=(x, y)"),
        ({"optimiser": "adam"}, "optimizer="),
        ({"n_epochs": 3}, "epochs="),
    ],
)
def test_settings_of_fit(settings: dict[str, object], said: str) -> None:
    with pytest.raises(wl.errors.ArgumentError) as error:
        wl.train.fit(wl.nn.Linear(2, 2), "mse", (wl.ones((2, 2)), wl.ones((2, 2))), **settings)
    assert said in str(error.value)
    assert isinstance(error.value, TypeError)


def test_names_in_tables() -> None:
    assert near("Adam", ["adam", "adamw", "sgd"]) == ["adam", "adamw"]
    assert look_up("thing", " Cross-Entropy", {"cross_entropy": 1}) == 1
    with pytest.raises(wl.errors.InputError, match="is not a name"):
        look_up("thing", 3, {"a": 1})
