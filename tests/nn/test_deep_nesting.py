"""Modules in modules, thousands of levels deep: what needs no call works, and a call is an error that says why."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import DepthError, TreeError, WonderlandError
from wonderland.nn.module import members

LEVELS = 3_000


def nested(levels: int) -> Any:
    model: Any = nn.Linear(2, 2)
    for _ in range(levels):
        model = nn.Sequential(model)
    return model


@pytest.fixture(scope="module")
def deep() -> Any:
    return nested(LEVELS)


PATH = ".".join(["0"] * LEVELS)


def test_what_is_in_it(deep: Any) -> None:
    assert len(deep.named_modules()) == LEVELS + 1
    assert [path for path, _ in deep.named_parameters()] == [f"{PATH}.weight", f"{PATH}.bias"]
    assert deep.num_parameters() == 6
    assert deep.get_submodule(PATH).in_features == 2
    assert [path for path, _ in nn.layers_of(deep)] == [PATH]


def test_state(deep: Any) -> None:
    state = deep.state_dict()
    assert sorted(state) == [f"{PATH}.bias", f"{PATH}.weight"]
    deep.load_state_dict(state)


def test_modes_and_order(deep: Any) -> None:
    assert not deep.eval().get_submodule(PATH).training
    deep.train()
    order: list[Any] = []
    deep.apply(order.append)
    assert len(order) == LEVELS + 1
    assert isinstance(order[0], nn.Linear)
    assert order[-1] is deep
    deep.freeze()
    assert deep.num_parameters(trainable_only=True) == 0
    deep.unfreeze()


def test_repr_stops_somewhere(deep: Any) -> None:
    text = repr(deep)
    assert "Sequential(...)" in text
    assert len(text) < 20_000
    assert "Linear" in repr(nested(40))


def test_an_optimizer(deep: Any) -> None:
    assert len(wl.optim.Adam(deep, 0.1).state_dict()) > 4


@pytest.mark.parametrize(
    "use",
    [
        lambda model, x: model(x),
        lambda model, x: wl.grad(lambda m: m(x).sum())(model),
        lambda model, x: wl.jit(lambda m, x: m(x))(model, x),
        lambda model, x: wl.jit(lambda x: model(x))(x),
        lambda model, x: wl.vmap(model)(x),
        lambda model, x: wl.eval_shape(model, x),
        lambda model, x: model.summary(x),
        lambda model, x: model.copy(),
        lambda model, x: wl.tree.leaves(model),
        lambda model, x: wl.tree.map(lambda leaf: leaf, model),
    ],
)
def test_what_python_has_no_stack_for_is_a_typed_error(use: Any, deep: Any) -> None:
    with pytest.raises((DepthError, TreeError), match=r"(stack|levels deep)[\s\S]*try: "):
        use(deep, wl.ones((1, 2)))
    assert nested(20)(wl.ones((1, 2))).shape == (1, 2)  # and everything is as before


def test_a_recursion_without_end_in_a_model_is_a_recursion_error() -> None:
    class Endless(nn.Module):
        def forward(self, x: Any) -> Any:
            return self.forward(x)

    with pytest.raises(RecursionError, match=f"{sys.getrecursionlimit():,} levels") as caught:
        Endless()(wl.ones(1))
    assert isinstance(caught.value, WonderlandError)
    assert isinstance(caught.value.__cause__, RecursionError)


def test_there_is_a_limit_for_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "DEEPEST", 30)
    assert len(nested(29).named_modules()) == 30
    with pytest.raises(DepthError, match="more than 30 levels"):
        nested(31).named_modules()


def test_a_module_in_two_places_keeps_both_paths() -> None:
    inner = nn.Linear(2, 2)
    model = nn.Sequential(inner, nn.Sequential(inner, wl.relu), nn.Sequential(nn.Sequential(inner)))
    assert [path for path, _ in members.walk(model)] == ["", "0", "0.weight", "0.bias", "1", "2", "2.0"]
    twice = [path for path, member in members.walk(model, again=True) if member is inner]
    assert twice == ["0", "1.0", "2.0.0"]


def test_attributes_nested_without_end() -> None:
    model = nn.Linear(2, 2)
    levels: Any = 1.0
    for _ in range(10_000):
        levels = [levels]
    model.levels = levels
    for use in (model.state_dict, model.parameters, lambda: wl.jit(lambda m: m.weight)(model)):
        with pytest.raises(TreeError, match=r"'levels' is nested more than 200 levels deep[\s\S]*try: "):
            use()


def test_constants_nested_without_end() -> None:
    levels: Any = 1.0
    for _ in range(10_000):
        levels = (levels,)
    with pytest.raises(TreeError, match=r"refers to is nested more than 200 levels deep"):
        wl.jit(lambda x: (x, levels)[0])(wl.ones(3))


def test_many_layers_beside_each_other() -> None:
    layer = nn.Linear(2, 2)
    model = nn.Sequential(*[layer] * LEVELS)
    assert len(model) == LEVELS
    assert model[-1] is layer
    assert model(wl.zeros((1, 2))).shape == (1, 2)
    assert wl.grad(lambda m: m(wl.ones((1, 2))).sum())(model)["0.weight"].shape == (2, 2)


def test_the_length_of_a_container() -> None:
    model = nn.Sequential()
    for n in range(300):
        assert len(model) == n
        model.append(wl.relu)
    model.other = 3
    assert len(model) == 300
    assert len(nn.ModuleList([wl.relu, wl.relu])) == 2


def test_making_a_container_is_linear_in_its_entries() -> None:
    def calls(entries: int) -> int:
        count = 0

        def note(*event: Any) -> None:
            nonlocal count
            count += 1

        sys.setprofile(note)
        try:
            nn.Sequential(*[wl.relu] * entries)
        finally:
            sys.setprofile(None)
        return count

    assert calls(1600) < 6 * calls(400)  # a search among them takes the logarithm of their number
