"""Values that stay on their device between calls of the XLA engine. Skipped without JAX."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.core import tensor
from wonderland.core.tensor import Distant

pytest.importorskip("jax")


class Fetched:
    """Counts what comes to the host."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        whole, fetched = tensor._near, self

        class Slot:
            def __get__(self, x: Any, kind: Any = None) -> Any:
                return whole.__get__(x)

            def __set__(self, x: Any, data: Any) -> None:
                fetched.count += 1
                whole.__set__(x, data)

        monkeypatch.setattr(tensor, "_near", Slot())


class Counter(wl.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = wl.nn.Parameter(wl.arange(6.0))


@wl.jit
def step(model: Any, i: Any) -> Any:
    model.w.value = model.w + 1.0
    return model.w[i]


@pytest.fixture(autouse=True)
def on_xla() -> Any:
    with wl.using_backend("xla"):
        yield


def held(model: Any) -> Any:
    return model.w._outside


def test_state_stays_and_its_memory_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model, fetched = Counter(), Fetched(monkeypatch)
    for i in range(5):
        before = held(model).far if type(held(model)) is Distant else None
        out = step(model, wl.tensor(1))
        assert type(out) is type(held(model)) is Distant
        if before is not None:
            assert not before.is_deleted()  # we hold it
            np.testing.assert_array_equal(before, np.arange(6.0) + i)
    assert fetched.count == 0
    pointer = held(model).far.unsafe_buffer_pointer()
    assert {step(model, wl.tensor(1)) and held(model).far.unsafe_buffer_pointer() for _ in range(3)} == {pointer}
    assert model.w.tolist() == [8.0 + i for i in range(6)]
    assert model.w.device == wl.devices()[0]


def test_who_holds_the_old_value_keeps_it() -> None:
    model = Counter()
    step(model, wl.tensor(0))
    old, part = model.w.value, model.w.copy()
    step(model, wl.tensor(0))
    np.testing.assert_array_equal(old, np.arange(6) + 1.0)
    np.testing.assert_array_equal(part, np.arange(6) + 1.0)
    np.testing.assert_array_equal(model.w, np.arange(6) + 2.0)


def test_an_error_leaves_donated_state() -> None:
    model = Counter()
    step(model, wl.tensor(0))
    with pytest.raises(wl.errors.IndexOutOfRange, match="6"):
        step(model, wl.tensor(6))
    assert model.w.tolist() == [1.0 + i for i in range(6)]
    assert float(step(model, wl.tensor(2))) == 4.0


def test_an_error_of_python_leaves_state() -> None:
    def fails(x: Any) -> Any:
        if x[0] > 1.5:
            raise KeyError("mine")
        return x

    @wl.jit
    def calls(model: Any) -> Any:
        model.w.value = wl.pure_callback(fails, wl.ShapeDtype((6,), wl.float32), model.w) + 1.0
        return model.w.sum()

    model = Counter()
    calls(model)
    calls(model)
    with pytest.raises(KeyError, match="mine"):
        calls(model)
    assert model.w.tolist() == [2.0 + i for i in range(6)]


def test_other_engines_take_distant_values() -> None:
    model = Counter()
    step(model, wl.tensor(0))
    far = wl.jit(lambda x: x * 2)(wl.ones(3))
    for name in ("native", "numpy"):
        with wl.using_backend(name):
            before = float(model.w[0])
            step(model, wl.tensor(0))
            assert float(model.w[0]) == before + 1
            assert wl.jit(lambda x: x + far)(far).tolist() == [4.0] * 3
        step(model, wl.tensor(0))
        assert type(held(model)) is Distant
    assert wl.grad(lambda x: (wl.jit(wl.square)(x)).sum())(far).tolist() == [4.0] * 3


def test_a_distant_value_is_a_tensor(tmp_path: Path) -> None:
    far = wl.jit(lambda x: x * 2)(wl.arange(3.0))
    assert type(far) is Distant
    assert repr(far) == "tensor([0., 2., 4.])"
    for other in (copy.copy(far), copy.deepcopy(far), pickle.loads(pickle.dumps(far)), wl.tensor(far), wl.asarray(far)):
        np.testing.assert_array_equal(other, [0, 2, 4])
    wl.save({"x": far}, tmp_path / "x.safetensors")
    np.testing.assert_array_equal(wl.load(tmp_path / "x.safetensors")["x"], [0, 2, 4])
    twin = copy.copy(far)
    far[1] = 7.0
    assert (far.tolist(), twin.tolist(), far.device) == ([0.0, 7.0, 4.0], [0.0, 2.0, 4.0], "cpu")
    assert wl.jit(lambda x: x + 1)(far).tolist() == [1.0, 8.0, 5.0]
    leaf = wl.jit(lambda x: x + 1)(wl.ones(3)).requires_grad_()
    (leaf * twin).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [0.0, 2.0, 4.0]
    assert twin.to("cpu").device == "cpu"
    assert wl.stop_gradient(leaf)._node is None


def test_a_captured_tensor_that_changes_is_noticed() -> None:
    far = wl.jit(lambda x: x * 2)(wl.ones(3))
    f = wl.jit(lambda x: x + far)
    assert f(wl.zeros(3)).tolist() == [2.0] * 3
    far[0] = 5.0
    assert f(wl.zeros(3)).tolist() == [5.0, 2.0, 2.0]


def test_results_that_are_state_are_not_overwritten() -> None:
    @wl.jit
    def both(model: Any) -> Any:
        model.w.value = model.w + 1.0
        return model.w.value

    model = Counter()
    outs = [both(model) for _ in range(3)]
    assert [float(out[0]) for out in outs] == [1.0, 2.0, 3.0]


def test_unknown_devices() -> None:
    with pytest.raises(wl.errors.InputError, match="there is no 'cpu:77' here"):
        wl.using_backend("xla", device="cpu:77")
    with pytest.raises(wl.errors.InputError, match="'native' has no device 'cpu:1'"):
        wl.set_backend("native", device="cpu:1")
    with pytest.raises(wl.errors.InputError, match="tpu:3"):
        wl.ones(2).to("tpu:3")
    with wl.using_backend("numpy"), pytest.raises(wl.errors.InputError, match="'numpy' has no device 'gpu'"):
        wl.ones(2).to("gpu")


SCRIPT = """
import wonderland as wl
from tests.engines.test_distant import Counter, step
assert wl.devices() == ["cpu:0", "cpu:1", "cpu:2"]
assert wl.jit(lambda x: x + 1)(wl.ones(2)).device == "cpu:2"  # WONDERLAND_DEVICE
with wl.using_backend("xla", device="cpu:1"):
    model = Counter()
    assert step(model, wl.tensor(1)).device == model.w.device == "cpu:1"
assert step(model, wl.tensor(1)).device == model.w.device == "cpu:2"  # it moves to where programs run
model.to("cpu:1")
assert model.w.device == "cpu:1" and model.w.to("cpu:0").device == "cpu:0"
with wl.using_backend("native"):
    assert float(step(model, wl.tensor(0))) == 3.0 and model.w.device == "cpu"
print("done")
"""


def test_devices() -> None:
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=3", "JAX_PLATFORMS": "cpu"}
    chosen = {"WONDERLAND_BACKEND": "xla", "WONDERLAND_DEVICE": "cpu:2"}
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), str(Path(wl.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, **flags, **chosen, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "done\n", done.stderr
