"""Saving and loading: the same bytes, or one error that lists everything."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import ModuleError


class Net(nn.Module):
    def __init__(self, dtype=None):
        self.layers = [nn.Linear(3, 4, dtype=dtype), nn.Linear(4, 2, dtype=dtype)]
        self.mean = nn.Buffer(wl.zeros(4))
        self.cache = nn.Buffer(wl.zeros(2), persistent=False)
        self.stream = wl.random.Stream(3)

    def forward(self, x):
        return self.layers[1](wl.tanh(self.layers[0](x) - self.mean))


def bits(state):
    return {path: (v.shape, v.dtype, v.numpy().tobytes()) for path, v in state.items()}


@pytest.mark.book("1.04", name=("wl.nn.Module.state_dict", "wl.nn.Module.load_state_dict"))
@pytest.mark.parametrize("dtype", [wl.float32, wl.float64, wl.bfloat16])
def test_round_trip_gives_the_same_bytes(dtype):
    a, b = Net(dtype), Net(dtype)
    a.mean = wl.arange(4, dtype=wl.float32)
    a.stream.next_key()
    state = a.state_dict()
    assert list(state) == [
        "layers.0.weight",
        "layers.0.bias",
        "layers.1.weight",
        "layers.1.bias",
        "mean",
        "stream",
    ]
    assert bits(b.state_dict()) != bits(state)
    assert b.load_state_dict(pickle.loads(pickle.dumps(state))) == ([], [])
    assert bits(b.state_dict()) == bits(state)
    x = wl.ones((2, 3), dtype=dtype)
    assert a(x).numpy().tobytes() == b(x).numpy().tobytes()


def test_round_trip_through_numpy():
    a, b = Net(), Net()
    file = io.BytesIO()
    np.savez(file, **a.state_dict())
    file.seek(0)
    b.load_state_dict(dict(np.load(file)))
    assert bits(b.state_dict()) == bits(a.state_dict())


def test_a_state_does_not_change_when_the_module_does():
    a = Net()
    state = a.state_dict()
    before = bits(state)
    a.mean = wl.ones(4)
    assert bits(state) == before
    arrays = {path: np.array(v) for path, v in state.items()}
    a.load_state_dict(arrays)
    arrays["mean"][:] = 9
    assert bits(a.state_dict()) == before


def test_all_problems_in_one_error_and_nothing_changed():
    model = Net()
    before = bits(model.state_dict())
    state = {path: wl.ones_like(v) for path, v in model.state_dict().items()}
    del state["layers.0.bias"]
    state["layers.0.weight"] = wl.ones((4, 3))
    state["mean"] = wl.ones(4, dtype=wl.float64)
    state["layers.2.weight"] = wl.ones(1)
    state["layers.1.bias"] = "text"
    with pytest.raises(ModuleError) as caught:
        model.load_state_dict(state)
    text = str(caught.value)
    assert "does not fit Net; nothing was changed" in text
    assert "layers.2.weight: the module has no such parameter or buffer" in text
    assert "layers.0.weight: expected float32[3, 4], received float32[4, 3]" in text
    assert "mean: expected float32[4], received float64[4]" in text
    assert "layers.1.bias: a str is not a tensor" in text
    assert "layers.0.bias: is missing" in text
    assert bits(model.state_dict()) == before


def test_not_strict_returns_what_was_left_out():
    model = Net()
    before = bits(model.state_dict())
    loaded = model.load_state_dict({"mean": wl.ones(4), "extra": wl.ones(1)}, strict=False)
    assert loaded.unexpected == ["extra"]
    assert loaded.missing == [
        "layers.0.weight",
        "layers.0.bias",
        "layers.1.weight",
        "layers.1.bias",
        "stream",
    ]
    after = bits(model.state_dict())
    assert [path for path in after if after[path] != before[path]] == ["mean"]
    with pytest.raises(ModuleError, match="expected"):
        model.load_state_dict({"mean": wl.ones(5)}, strict=False)


def test_shared_parameters_are_saved_once_and_load_under_any_path():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.bias"]
    values = {"0.bias": wl.zeros(2), "1.bias": wl.zeros(2), "1.weight": wl.ones((2, 2))}
    model.load_state_dict(values)
    assert model[0].weight.tolist() == [[1, 1], [1, 1]]
    model.load_state_dict({**values, "0.weight": wl.ones((2, 2))})
    with pytest.raises(ModuleError, match=r"0\.weight: is shared with 1\.weight, but their values differ"):
        model.load_state_dict({**values, "0.weight": wl.zeros((2, 2))})


def test_a_lazy_module_has_no_state_yet():
    model = nn.Sequential(nn.LazyLinear(2))
    for call in (model.state_dict, lambda: model.load_state_dict({})):
        with pytest.raises(ModuleError, match="has no weight and no bias yet"):
            call()
