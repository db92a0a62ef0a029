"""Nested values in files: they come back as they were, others read the tensors, and damage is found."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland.storage.nested import KEY, put_together, taken_apart
from wonderland.storage.safetensors import metadata

VALUE = {
    "model": {"layers": [{"w": wl.tensor([[1.0, 2.0]])}, {"w": wl.tensor([3])}], "empty": {}, "none": None},
    "epoch": 3,
    "rate": 0.1,
    "name": "first run",
    "done": True,
    "pair": (wl.tensor(1.5), "text", ()),
    "losses": [0.5, 0.25],
    "array": np.array([1, 2], np.int8),
}


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (wl.Tensor, np.ndarray)):
        return isinstance(b, wl.Tensor) and a.dtype == b.dtype and np.array_equal(np.asarray(a), np.asarray(b))
    return type(a) is type(b) and bool(a == b)


@pytest.mark.parametrize("value", [VALUE, [VALUE, 3], (wl.ones(2),), [], {"a": {}}], ids=str)
def test_round_trip(tmp_path: Path, value: Any) -> None:
    wl.save(value, tmp_path / "x", {"made": "here"})
    assert same(value, wl.load(tmp_path / "x"))
    assert metadata(tmp_path / "x") == {"made": "here"}


def test_others_read_the_tensors_by_their_paths(tmp_path: Path) -> None:
    wl.save(VALUE, tmp_path / "x")
    read = safetensors.numpy.load_file(tmp_path / "x")
    assert sorted(read) == ["array", "model.layers.0.w", "model.layers.1.w", "pair.0"]
    np.testing.assert_array_equal(read["model.layers.0.w"], [[1.0, 2.0]])


def test_a_checkpoint_as_people_write_it(tmp_path: Path) -> None:
    model = wl.nn.Sequential(wl.nn.Linear(2, 3), wl.nn.Linear(3, 1))
    optimizer = wl.optim.Adam(model)
    wl.save({"model": model, "optimizer": optimizer.state_dict(), "epoch": 7}, tmp_path / "x")
    kept = wl.load(tmp_path / "x")
    other = wl.nn.Sequential(wl.nn.Linear(2, 3), wl.nn.Linear(3, 1))
    other.load_state_dict(kept["model"])
    wl.optim.Adam(other).load_state_dict(kept["optimizer"])
    np.testing.assert_array_equal(other[0].weight, model[0].weight)
    assert kept["epoch"] == 7


def test_flat_dicts_are_as_before(tmp_path: Path) -> None:
    wl.save({"w": wl.ones(2), "n": 3, "list": [1, 2]}, tmp_path / "x")
    with safetensors.safe_open(tmp_path / "x", "numpy") as file:
        assert file.metadata() is None
    read = wl.load(tmp_path / "x")
    assert same(read, {"list": wl.tensor([1, 2]), "n": wl.tensor(3), "w": wl.ones(2)})


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
TENSORS = st.integers(0, 3).map(lambda n: wl.arange(n))
NESTED = st.recursive(
    PLAIN | TENSORS, lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner), max_leaves=8
)


@settings(deadline=None, max_examples=60)
@given(NESTED)
def test_every_value_is_put_together_again(value: Any) -> None:
    found: Any = put_together(*taken_apart([value]))
    assert same(value, found[0])


@pytest.mark.parametrize(
    "value, said",
    [
        ({"a.b": wl.ones(1), "a": {"b": wl.ones(1)}}, "would both be called 'a.b'"),
        ({"a": {1: wl.ones(1)}}, "a key at ['a'] is 1"),
        ({"a": {"f": print}}, "a builtin_function_or_method at ['a']['f']"),
        ({"a": {"s": {1, 2}}}, "a set at ['a']['s']"),
    ],
)
def test_what_cannot_be_saved(tmp_path: Path, value: Any, said: str) -> None:
    with pytest.raises(wl.errors.InputError) as error:
        wl.save(value, tmp_path / "x")
    assert said in str(error.value)
    assert not (tmp_path / "x").exists()


def test_values_that_contain_themselves_or_are_too_deep(tmp_path: Path) -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    with pytest.raises(wl.errors.InputError, match="levels"):
        wl.save(loop, tmp_path / "x")
    deep: Any = wl.ones(1)
    for _ in range(30):
        deep = {"a": deep}
    wl.save(deep, tmp_path / "x")
    assert same(deep, wl.load(tmp_path / "x"))


BAD = [
    "no json",
    "[]",
    '{"dict":{"a":{"tensor":"missing"}}}',
    '{"dict":{}}',
    '{"dict":[]}',
    '{"code":"print()"}',
    '{"value":[1]}',
    '{"list":[{"tensor":"a"},{"tensor":"a"}]}',
    '{"tensor":3}',
]


@pytest.mark.parametrize("text", BAD)
def test_damage(tmp_path: Path, text: str) -> None:
    header = json.dumps(
        {"__metadata__": {KEY: text}, "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}
    ).encode()
    (tmp_path / "x").write_bytes(struct.pack("<Q", len(header)) + header + b"\0")
    with pytest.raises(wl.errors.FileError):
        wl.load(tmp_path / "x")


def test_the_name_of_the_description_is_taken(tmp_path: Path) -> None:
    with pytest.raises(wl.errors.InputError, match="another name"):
        wl.save({"a": {}}, tmp_path / "x", {KEY: "mine"})
