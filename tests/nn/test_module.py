"""Modules as objects: paths, modes, freezing, copies, printing."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from dataclasses import dataclass

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, GradientError, ModuleError, ShapeError, TreeError


class Attention(nn.Module):
    def __init__(self, width):
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        return self.out(self.qkv(x)[..., : x.shape[-1]])


class Block(nn.Module):
    def __init__(self, width):
        self.attention = Attention(width)
        self.scale = nn.Parameter(wl.ones(width))

    def forward(self, x):
        return x + self.scale * self.attention(x)


class Model(nn.Module):
    """Lists and dicts of modules as plain attributes, a constant, a function, a buffer."""

    def __init__(self, width=4, depth=2):
        super().__init__()
        self.width = width
        self.blocks = [Block(width) for _ in range(depth)]
        self.heads = {"b": nn.Linear(width, 2), "a": nn.Linear(width, 3)}
        self.mask = wl.tensor([1.0] * width)
        self.activation = wl.tanh
        self.steps = nn.Buffer(0)

    def forward(self, x, head="a"):
        self.steps = self.steps + 1
        for block in self.blocks:
            x = self.activation(block(x * self.mask))
        return self.heads[head](x)


def test_paths_follow_attributes_lists_and_dicts():
    model = Model()
    names = [path for path, _ in model.named_parameters()]
    assert names[:5] == [
        "blocks.0.attention.qkv.weight",
        "blocks.0.attention.qkv.bias",
        "blocks.0.attention.out.weight",
        "blocks.0.attention.out.bias",
        "blocks.0.scale",
    ]
    assert names[-4:] == ["heads.b.weight", "heads.b.bias", "heads.a.weight", "heads.a.bias"]
    assert [path for path, _ in model.named_buffers()] == ["steps"]
    assert [name for name, _ in model.named_children()] == ["blocks.0", "blocks.1", "heads.b", "heads.a"]
    paths = [path for path, _ in model.named_modules()]
    assert paths[:3] == ["", "blocks.0", "blocks.0.attention"]
    assert len(model.modules()) == len(paths) == 11
    assert model.get_submodule("blocks.1.attention.out") is model.blocks[1].attention.out
    assert model.get_submodule("") is model
    with pytest.raises(ModuleError, match=r"no module 'blocks.1.atention'.*\n.*'blocks.1.attention'"):
        model.get_submodule("blocks.1.atention")


def test_number_of_parameters_by_closed_form():
    w = 4
    per_block = (w * 3 * w + 3 * w) + (w * w + w) + w
    model = Model(w, 3)
    assert model.num_parameters() == 3 * per_block + (w * 2 + 2) + (w * 3 + 3)
    model.freeze("blocks")
    assert model.num_parameters(trainable_only=True) == (w * 2 + 2) + (w * 3 + 3)


def test_a_tensor_goes_into_the_cell_and_anything_else_replaces_it():
    model = Model()
    cell = model.steps
    model.steps = wl.tensor(5)
    assert model.steps is cell
    assert model.steps.item() == 5
    model.steps = 0
    assert model.steps is cell
    assert model.steps.item() == 0
    scale = model.blocks[0].scale
    model.blocks[0].scale = np.full(4, 2, np.float32)
    assert model.blocks[0].scale is scale
    with pytest.raises(ShapeError, match=r"Parameter of float32\[4\] cannot take a value of float32\[3\]"):
        model.blocks[0].scale = wl.ones(3)
    new = nn.Parameter(wl.ones(3))
    model.blocks[0].scale = new
    assert model.blocks[0].scale is new
    model.steps = None
    assert model.named_buffers() == []


def test_arrays_given_to_parameters_are_copied():
    data = np.ones(2, np.float32)
    weight = nn.Parameter(data)
    data[:] = 7
    assert weight.tolist() == [1, 1]


def test_parameters_are_listed_as_they_are_now():
    """The list is remembered, but for modules that can be changed without notice."""

    def names(model):
        assert [name for name, _ in model.named_parameters()] == list(model.state_dict())
        return list(wl.grad(lambda m: sum((p * p).sum() for p in m.parameters()))(model))

    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    assert names(model) == names(model) == ["0.weight", "0.bias"]
    model[0].bias = None
    assert names(model) == ["0.weight"]
    model[0].weight.trainable = False
    model[0].extra = nn.Parameter(wl.ones(1))
    assert list(dict(model.named_parameters())) == ["0.weight", "0.extra"]

    class Branches(nn.Module):
        def __init__(self):
            self.parts = [nn.Linear(1, 1, bias=False)]

    model = Branches()
    assert names(model) == ["parts.0.weight"]
    model.parts.append(nn.Linear(1, 1, bias=False))
    assert names(model) == ["parts.0.weight", "parts.1.weight"]
    other = Branches()
    del model
    assert names(other) == ["parts.0.weight"]


def test_structure_version_counts_changes_that_are_not_in_cells():
    model = Model()
    before = nn.structure_version()
    model.steps = model.steps + 1
    model(wl.ones(4))
    model.train()
    model.unfreeze()
    assert nn.structure_version() == before
    for change in (
        model.eval,
        model.train,
        lambda: model.freeze("heads"),
        lambda: setattr(model, "activation", wl.sin),
        lambda: setattr(model, "steps", nn.Buffer(0)),
        lambda: delattr(model, "steps"),
        lambda: model.register_forward_hook(lambda *_: None).remove(),
        lambda: model.astype(wl.float64),
    ):
        before = nn.structure_version()
        change()
        assert nn.structure_version() > before


def test_train_and_eval_reach_every_module():
    model = Model()
    assert all(m.training for m in model.modules())
    assert model.eval() is model
    assert not any(m.training for m in model.modules())
    model.blocks[1].train()
    assert [m.training for m in (model, model.blocks[0], model.blocks[1].attention.qkv)] == [
        False,
        False,
        True,
    ]


@pytest.mark.book("1.04", name=("wl.nn.Module.freeze", "wl.nn.Module.unfreeze"))
def test_frozen_parameters_do_not_move():
    model = Model().freeze("blocks.*.attention")
    frozen = {path for path, p in model.named_parameters() if not p.trainable}
    assert frozen == {path for path, _ in model.named_parameters() if ".attention." in path}
    before = model.state_dict()
    gradients = wl.grad(lambda m, x: (m(x) ** 2).sum())(model, wl.ones((3, 4)))
    assert set(gradients) == {path for path, _ in model.named_parameters()} - frozen
    parameters = dict(model.named_parameters())
    for path, gradient in gradients.items():
        parameters[path].assign(parameters[path] - 0.1 * gradient)
    after = model.state_dict()
    for path in parameters:
        moved = not np.array_equal(after[path], before[path])
        assert moved == (path not in frozen and not path.startswith("heads.b")), path
    assert all(p.trainable for p in model.unfreeze().parameters())
    assert not any(p.requires_grad for p in model.requires_grad_(False).parameters())
    with pytest.raises(ModuleError, match=r"freeze: no parameter of this Model matches 'block'"):
        model.freeze("block")


@pytest.mark.book("1.04", name="wl.tree.map")
def test_merging_and_quantising_weights():
    a, b = Model(), Model()
    merged = wl.tree.map(lambda p, q: (p + q) / 2 if p.dtype == wl.float32 else p, a, b)
    same = wl.tree.map(lambda p, q: (p + q) / 2 if p.dtype == wl.float32 else p, a, a)
    for path, value in merged.state_dict().items():
        np.testing.assert_array_equal(same.state_dict()[path], a.state_dict()[path])
        if value.dtype == wl.float32:
            np.testing.assert_allclose(value, (a.state_dict()[path].numpy() + b.state_dict()[path].numpy()) / 2)
    weight = a.blocks[0].attention.qkv.weight
    scale = float(abs(weight).max()) / 127
    quantised = wl.round(weight / scale).astype(wl.int8)
    assert float(abs(quantised.astype(wl.float32) * scale - weight).max()) <= scale / 2 * 1.0001


@pytest.mark.book("1.05", name=("wl.nn.Module.parameters", "wl.grad"))
def test_learning_moves_parameters_until_the_loss_is_small():
    wl.random.seed(0)
    x = wl.linspace(-1, 1, 32).reshape(-1, 1)
    y = x**2
    model = nn.Sequential(nn.Linear(1, 16), wl.tanh, nn.Linear(16, 1))
    loss_of = lambda model: ((model(x) - y) ** 2).mean()
    first = loss_of(model).item()
    for _ in range(300):
        gradients = wl.grad(loss_of)(model)
        for path, p in model.named_parameters():
            p.assign(p - 0.3 * gradients[path])
    assert loss_of(model).item() < 0.05 * first


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: m.copy(), lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_own_their_cells_and_keep_ties(duplicate):
    model = Model().freeze("heads.b")
    model.tied = model.blocks[0].attention.qkv
    model.buffer = nn.Buffer(1.0, persistent=False)
    other = duplicate(model)
    assert other.tied is other.blocks[0].attention.qkv
    assert other.tied is not model.tied
    assert [p for p, _ in other.named_parameters()] == [p for p, _ in model.named_parameters()]
    for (path, p), (_, q) in zip(model.named_parameters(), other.named_parameters(), strict=True):
        assert p is not q
        assert p.trainable == q.trainable == (not path.startswith("heads.b"))
        assert p.numpy().tobytes() == q.numpy().tobytes()
    assert not other.buffer.persistent
    x = wl.ones((2, 4))
    np.testing.assert_array_equal(model(x), other(x))
    other.blocks[0].scale = wl.zeros(4)
    assert model.blocks[0].scale.tolist() == [1, 1, 1, 1]


def test_copies_carry_no_hooks():
    model = Model()
    model.register_forward_hook(lambda *_: None)
    assert pickle.loads(pickle.dumps(model))._hooks == ()
    assert model.copy()._hooks == ()


def test_apply_visits_inner_modules_first_and_shared_ones_once():
    model = Model(depth=1)
    model.again = model.heads["a"]
    order = []
    assert model.apply(order.append) is model
    assert order[-1] is model
    assert order.index(model.blocks[0].attention.qkv) < order.index(model.blocks[0].attention)
    assert sum(m is model.again for m in order) == 1


def test_astype_converts_floating_cells_in_place():
    model = Model()
    qkv = model.blocks[0].attention.qkv.weight
    assert model.astype(wl.float64) is model
    assert model.blocks[0].attention.qkv.weight is qkv
    assert qkv.dtype == wl.float64
    assert model.steps.dtype == wl.int64
    assert model(wl.ones((2, 4), dtype=wl.float64)).dtype == wl.float64
    assert model.to("cpu").to(wl.bfloat16).blocks[0].scale.dtype == wl.bfloat16
    with pytest.raises(DTypeError, match="not with int32"):
        model.astype(wl.int32)


def test_zero_grad():
    model = Model()
    (model(wl.ones(4)) ** 2).sum().backward()
    assert model.heads["a"].weight.grad is not None
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())


def test_repr_is_a_tree_with_settings():
    model = Model(depth=1)
    assert repr(model) == (
        "Model(width=4, mask=float32[4], activation=tanh, steps=int64[],\n"
        "  blocks.0: Block(scale=float32[4],\n"
        "    attention: Attention(\n"
        "      qkv: Linear(in_features=4, out_features=12, bias=True)\n"
        "      out: Linear(in_features=4, out_features=4, bias=True)\n"
        "    )\n"
        "  )\n"
        "  heads.b: Linear(in_features=4, out_features=2, bias=True)\n"
        "  heads.a: Linear(in_features=4, out_features=3, bias=True)\n"
        ")"
    )
    model.blocks[0].parent = model
    assert "..." in repr(model)


def test_modules_may_refer_to_their_parents():
    model = Model(depth=1)
    model.blocks[0].parent = model
    assert len(model.named_parameters()) == 9
    assert len(model.copy().named_parameters()) == 9
    copied = wl.tree.map(lambda x: x, model)
    assert copied.blocks[0].parent is copied


def test_errors_of_modules():
    with pytest.raises(ModuleError, match="Module: has no forward pass"):
        nn.Module()(1)
    model = nn.Module()
    model.parts = {1: nn.Linear(1, 1), "1": nn.Linear(1, 1)}
    with pytest.raises(ModuleError, match=r"two of its members have the path 'parts.1'"):
        model.parameters()
    model.parts = []
    model.parts.append(model.parts)
    with pytest.raises(TreeError, match="contains itself"):
        model.parameters()
    with pytest.raises(ModuleError, match="'children' would hide the method"):
        model.children = []
    model.parts = {nn.Linear(1, 1)}
    with pytest.raises(ModuleError, match="a set has no order"):
        model.parameters()
    with pytest.raises(GradientError, match="int64"):
        nn.Parameter([1, 2])
    assert nn.Parameter([1, 2], trainable=False).trainable is False


@dataclass
class Config:
    width: int
    sizes: list[int]


def test_settings_in_mutable_objects_are_part_of_the_structure():
    """An in-place change must not go unnoticed by `jit`, and a copy of a module has an equal structure."""
    model = Model(depth=1)
    model.config = Config(3, [1, 2])
    model.names = {"x", "y"}
    model.table = np.arange(3)
    before = wl.tree.structure(model)
    hash(before)
    assert wl.tree.structure(model.copy()) == before
    assert wl.tree.structure(pickle.loads(pickle.dumps(model))) == before
    model.config.sizes.append(3)
    assert wl.tree.structure(model) != before
    model.config.sizes.pop()
    assert wl.tree.structure(model) == before
    model.mask = wl.tensor([0.0] * 4)
    assert wl.tree.structure(model) != before
    rebuilt = wl.tree.unflatten(*reversed(wl.tree.flatten(model)))
    assert rebuilt.config == model.config
    assert rebuilt.config is not model.config
    assert rebuilt.names == model.names
    assert list(rebuilt.heads) == ["b", "a"]
    assert wl.tree.structure(rebuilt) == wl.tree.structure(model)


def test_a_module_as_a_tree():
    model = Model().eval().freeze("heads.b")
    model.tied = model.heads["a"].weight
    leaves = wl.tree.leaves(model)
    assert [id(leaf) for leaf in leaves] == [id(c) for c in (*model.parameters(), *model.buffers())]
    doubled = wl.tree.map(lambda c: c * 2, model)
    assert type(doubled) is Model
    assert not doubled.training
    assert not doubled.heads["b"].weight.trainable
    assert doubled.heads["a"].weight.trainable
    assert doubled.tied is doubled.heads["a"].weight
    np.testing.assert_array_equal(doubled.tied, 2 * model.tied.numpy())
    assert doubled.activation is model.activation


def test_modules_are_freed():
    model = Model()
    model(wl.ones(4))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
