"""Where tensors go on a mesh: arithmetic on names and shapes, see scale/rules.py."""

from __future__ import annotations

import math
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError
from wonderland.scale.rules import SMALL, Layout, layout, names_of, parts_of

GRID = wl.mesh(data=2, model=4)


def llama(depth: int = 2, kv_heads: int | None = None) -> wl.models.Llama:
    return wl.models.Llama(96, 64, 8, depth, kv_heads=kv_heads)


def quietly(*args: object) -> Layout:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return layout(*args)  # type: ignore[arg-type]


# --- meshes


def test_a_mesh_knows_its_axes() -> None:
    assert (GRID.axes, GRID.sizes, GRID.devices, GRID.parts(["model"])) == (("data", "model"), (2, 4), 8, 4)


@pytest.mark.parametrize("axes", [{}, {"data": 0}, {"data": -1}, {"data": 1.5}, {"data": True}, {"data": "2"}])
def test_meshes_that_are_none(axes: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"^mesh: "):
        wl.mesh(**axes)


# --- ready rules


def test_data_keeps_everything_whole() -> None:
    assert {p.placement for p in layout(llama(), GRID, "data").placed} == {(None,), (None, None)}


def test_pairs_of_columns_and_rows() -> None:
    """What one product splits, the next one sums over, and nothing else of a block is split."""
    found = layout(llama(), GRID, "tensor")
    block = "stack.blocks.1."
    for name in ("attention.query", "attention.key", "attention.value", "feed_forward.gated.gate"):
        assert found[f"{block}{name}.weight"] == (None, "model")
    for name in ("attention.output", "feed_forward.down"):
        assert found[f"{block}{name}.weight"] == ("model", None)
    assert found[f"{block}norm1.weight"] == (None,)
    assert found["tokens.weight"] == ("model", None)
    assert found["head.weight"] == (None, "model")


def test_biases_go_with_their_columns() -> None:
    found = layout(wl.models.GPT(96, 8, 64, 8, 1), GRID, "tensor")
    block = "stack.blocks.0."
    assert found[f"{block}attention.query.bias"] == found[f"{block}feed_forward.up.bias"] == ("model",)
    assert found[f"{block}attention.output.bias"] == found[f"{block}feed_forward.down.bias"] == (None,)


def test_linear_layers_in_turn() -> None:
    found = layout(wl.models.MLP(64, [32, 16], 8), GRID, "tensor")
    weights = [p.placement for p in found.placed if p.path.endswith("weight")]
    assert weights == [(None, "model"), ("model", None), (None, "model")]


@pytest.mark.parametrize(
    "layer, shapes",
    [
        (lambda: nn.Conv2d(3, 8, 3), {"weight": (None, None, None, "model"), "bias": ("model",)}),
        (lambda: nn.LSTM(3, 4, bias=False), {"weight_ih_l0": (None, "model"), "weight_hh_l0": (None, "model")}),
        (lambda: nn.LayerNorm(8), {"weight": (None,), "bias": (None,)}),
    ],
)
def test_other_layers(layer: object, shapes: dict[str, object]) -> None:
    found = layout(layer(), GRID, "tensor")  # type: ignore[operator]
    assert {p.path: p.placement for p in found.placed} == shapes


def test_heads_are_not_cut() -> None:
    """With 2 heads of keys for 4 devices, columns would divide and heads would not."""
    with pytest.warns(UserWarning, match=r"2 heads over model=4"):
        found = layout(llama(kv_heads=2, depth=1), GRID, "tensor")
    assert found["stack.blocks.0.attention.key.weight"] == (None, None)
    assert found["stack.blocks.0.attention.query.weight"] == (None, "model")
    assert [p.path.split(".")[-2] for p in found.refused] == ["key", "value"]


@given(
    st.lists(st.integers(1, 96), min_size=1, max_size=3),
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_full_splits_what_can_be(shape: list[int], sizes: list[int]) -> None:
    """Over as many mesh axes as divide some axis of the tensor, which is the largest of those that do."""
    grid = wl.mesh(**{f"a{i}": n for i, n in enumerate(sizes)})
    holder = nn.Module()
    holder.w = nn.Parameter(wl.zeros(tuple(shape)))
    found = quietly(holder, grid, "full")
    placement = found["w"]
    used = [i for i, split in enumerate(placement) if split is not None]
    if math.prod(shape) * 4 < SMALL:
        assert not used
        assert not found.refused
        return
    assert len(used) <= 1
    names = [name for i in used for name in names_of(placement[i])]
    many = [a for a in grid.axes if grid.parts([a]) > 1]
    for i in used:
        parts = grid.parts(names)
        assert shape[i] % parts == 0
        assert shape[i] == max(n for n in shape if n % parts == 0)
    for extra in set(many) - set(names):  # one more would not have gone
        assert all(n % grid.parts([*names, extra]) for n in shape)
    assert bool(found.refused) == (len(names) < len(many))


def test_full_beside_tensor_uses_the_other_axes() -> None:
    found = layout(llama(), GRID, ("full", "tensor"))
    assert found["head.weight"] == ("data", "model")
    large = [p for p in found.placed if p.cell.size * 4 >= SMALL]
    assert {parts_of(p.placement, GRID) for p in large} == {8}


# --- optimizers


@pytest.mark.parametrize("rules", ["data", "full", "tensor", ("full", "tensor")])
def test_state_follows_its_parameter(rules: str) -> None:
    model = llama(depth=1)
    optimizer = wl.optim.Adam(model)
    found = layout((model, optimizer), GRID, rules)
    for path in model.state_dict():
        for kind in ("mean", "square"):
            assert found[f"1.groups.0.{kind}.{path}"] == found[f"0.{path}"]
    assert {p.path for p in found.placed if p.path.startswith("1.")} == {f"1.{p}" for p in optimizer.state_dict()}


def test_state_of_rows_and_columns() -> None:
    model = llama(depth=1)
    found = layout((wl.optim.Adafactor(model), model), GRID, "tensor")  # in any order
    assert found["0.groups.0.rows.tokens.weight"] == ("model", None)
    assert found["0.groups.0.columns.tokens.weight"] == (None, None)
    assert found["0.groups.0.columns.head.weight"] == (None, "model")


def test_an_optimizer_without_its_model() -> None:
    model = llama(depth=1)
    optimizer = wl.optim.Adam(model)
    with pytest.raises(InputError, match=r"is in no module of the tree[\s\S]*\(model, optimizer\)"):
        layout(optimizer, GRID, "full")
    known = {id(p.cell): p.placement for p in layout(model, GRID, "full").placed}
    assert layout(optimizer, GRID, "full", known)["groups.0.mean.head.weight"] == (None, ("data", "model"))


# --- patterns


def test_the_first_pattern_counts() -> None:
    model = llama(depth=1)
    found = layout(model, GRID, {"head.*": ("model",)})
    assert found["head.weight"] == ("model", None)
    assert found["tokens.weight"] == (None, None)
    both = layout(model, GRID, {"head.weight": (None, "data"), "*.down.*": (), "[ht]*.weight": ("model",)})
    assert both["head.weight"] == (None, "data")
    assert both["tokens.weight"] == ("model", None)


def test_patterns_before_ready_rules() -> None:
    found = layout(llama(depth=1), GRID, ({"tokens.*": ()}, "tensor"))
    assert found["tokens.weight"] == (None, None)
    assert found["head.weight"] == (None, "model")


def test_sizes_that_do_not_divide_stay_whole_and_are_told() -> None:
    model = nn.Linear(64, 10)
    with pytest.warns(UserWarning, match=r"weight: axis 1 of size 10 over model=4") as caught:
        found = layout(model, GRID, {"weight": ("data", "model"), "bias": ("model",)})
    assert len(caught) == 1
    assert found["weight"] == ("data", None)
    assert found["bias"] == (None,)
    assert [p.path for p in found.refused] == ["weight", "bias"]


@pytest.mark.parametrize(
    "rules, said",
    [
        ({"weight": ("rows",)}, r"mesh\(data=2, model=4\) has no axis 'rows'[\s\S]*'data' or 'model'"),
        ({"wieght": ("data",)}, r"'wieght' matches no tensor[\s\S]*weight"),
        ({"*": ("data",), "weight": ("model",)}, r"'weight' is never reached"),
        ({"bias": ("data", "model")}, r"'bias' has 2 entries, and bias of shape \(8,\) has 1 axes"),
        ({"weight": ("data", "data")}, r"'weight' uses the axis 'data' twice"),
        ({"weight": (("data", "model"), "model")}, r"'weight' uses the axis 'model' twice"),
        ({"weight": "data"}, r"the rule 'weight' has 'data'"),
        ("everything", r"there is no rule 'everything'[\s\S]*'full'"),
        ((), r"no rule is given"),
        ("", r"there is no rule ''"),
    ],
)
def test_rules_that_are_wrong(rules: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        layout(nn.Linear(8, 8), GRID, rules)  # type: ignore[arg-type]


def test_other_mistakes() -> None:
    with pytest.raises(InputError, match=r"an axis 'model', and mesh\(data=8\) has none"):
        layout(nn.Linear(8, 8), wl.mesh(data=8), "tensor")
    with pytest.raises(ModuleError, match=r"weight has no shape yet"):
        layout(nn.Linear(None, 8), GRID, "full")
    with pytest.raises(InputError, match=r"int is neither a module nor an optimizer"):
        layout((nn.Linear(8, 8), 3), GRID, "full")
