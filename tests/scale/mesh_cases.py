"""Training steps on eight devices and on one: `python -m tests.scale.mesh_cases gpt mlp`, in a process of its own.

`gpt/full` is one rule alone, and `refused` what a mesh refuses.
Needs XLA_FLAGS=--xla_force_host_platform_device_count=8, which counts before JAX is loaded.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.engines.xla import program

Case = tuple[nn.Module, wl.Tensor, wl.Tensor]
QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
RULES: dict[str, tuple[Any, dict[str, int]]] = {
    "data": ("data", {"data": 8}),
    "full": ("full", {"data": 8}),
    "tensor": ("tensor", {"model": 4}),
    "data x tensor": (("data", "tensor"), {"data": 2, "model": 4}),
}


def drawn(*shape: int) -> wl.Tensor:
    return wl.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def labels(count: int, *shape: int) -> wl.Tensor:
    return wl.asarray(np.random.default_rng(1).integers(0, count, shape))


def gpt() -> Case:
    ids = labels(64, 8, 17)
    return wl.models.GPT(64, context=16, embed_dim=64, num_heads=4, depth=2), ids[:, :-1], ids[:, 1:]


def mlp() -> Case:
    return wl.models.MLP(32, [64, 64], 8), drawn(16, 32), labels(8, 16)


def cnn() -> Case:
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 9, 8)
    )
    return model, drawn(8, 8, 8, 1), labels(8, 8)


def vit() -> Case:
    model = wl.models.ViT(8, image_size=(8, 8, 1), patch=4, embed_dim=32, num_heads=4, depth=1)
    return model, drawn(8, 8, 8, 1), labels(8, 8)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 8)

    def forward(self, x: wl.Tensor) -> wl.Tensor:
        return self.out(self.lstm(x)[0][:, -1])


def lstm() -> Case:
    return Recurrent(), drawn(8, 6, 16), labels(8, 8)


CASES: dict[str, Callable[[], Case]] = {"gpt": gpt, "mlp": mlp, "cnn": cnn, "vit": vit, "lstm": lstm}


def bytes_on_first(*trees: Any) -> int:
    """What the first device holds of the state."""
    fars = [cell._outside.far for tree in trees for cell in wl.tree.leaves(tree) if hasattr(cell, "_outside")]
    return sum(far.addressable_shards[0].data.nbytes for far in fars)


def trained(case: Callable[[], Case], rule: str | None, steps: int = 10) -> tuple[list[float], int, Any]:
    """The losses of some steps, the bytes per device, and the model."""
    wl.random.seed(0)
    model, x, y = case()
    optimizer = wl.optim.Adam(model, lr=1e-3)

    @wl.jit
    def step(model: Any, optimizer: Any, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
        def loss_of(model: Any) -> wl.Tensor:
            logits = model(x)
            return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))

        loss, grads = wl.value_and_grad(loss_of)(model)
        optimizer.step(grads)
        return loss

    if rule is not None:
        rules, axes = RULES[rule]
        wl.shard((model, optimizer), rules, mesh=wl.mesh(**axes))
    losses = [float(step(model, optimizer, x, y)) for _ in range(steps)]
    return losses, bytes_on_first(model, optimizer), (model, optimizer, step, x, y)


def refused() -> None:
    """What is refused on one device is refused on a mesh, with the same words, and leaves state as it was."""
    model = wl.models.MLP(32, [64], 8)
    wl.shard(model, "full", mesh=wl.mesh(data=8))
    before = {name: x.numpy().copy() for name, x in model.state_dict().items()}

    @wl.jit
    def looked_up(model: Any, i: wl.Tensor) -> wl.Tensor:
        found = model.layers[0].weight[i].sum()
        for p in model.parameters():
            p.value = p.value + found
        return found

    @wl.jit
    def divided(model: Any, n: wl.Tensor) -> wl.Tensor:
        return model(drawn(8, 32)).sum() + (7 // n).sum()

    other = wl.models.MLP(32, [65], 8).state_dict()
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: looked_up(model, wl.asarray(np.arange(8) + 25)), "gather: index 32 is out of range"),
        (lambda: divided(model, wl.asarray(np.arange(8))), "floor_divide: int64[] with a second argument of 0"),
        (lambda: model.load_state_dict(other), "load_state_dict: "),
        (lambda: wl.shard(model, {"nothing": ("data",)}, mesh=wl.mesh(data=8)), "matches no tensor"),
        (lambda: wl.shard(model, {"*": ("rows",)}, mesh=wl.mesh(data=8)), "has no axis 'rows'"),
        (lambda: wl.shard(model, "full", mesh=wl.mesh(data=16)), "a mesh of 16 devices, of which there are 8"),
    ]
    for call, said in cases:
        with pytest.raises(wl.errors.WonderlandError, match=re.escape(said)) as caught:
            call()
        print("refused:", str(caught.value).splitlines()[0])
        assert all(np.array_equal(before[name], x.numpy()) for name, x in model.state_dict().items()), said
        assert all(len(cell._outside.far.sharding.device_set) == 8 for cell in wl.tree.leaves(model)), said


def main(names: list[str]) -> None:
    wl.set_backend("xla")
    program.OPTIONS.update(QUICK)
    if "refused" in names:
        refused()
    for name in names:
        if name == "refused":
            continue
        name, _, only = name.partition("/")
        alone, whole, _ = trained(CASES[name], None)
        for rule in [only] if only else RULES:
            losses, held, (model, optimizer, step, x, y) = trained(CASES[name], rule)
            np.testing.assert_allclose(losses, alone, rtol=1e-5, err_msg=f"{name} {rule}")
            if (name, rule) == ("gpt", "full"):
                assert whole / held > 7, (whole, held)
                state = [*wl.tree.leaves(model), *wl.tree.leaves(optimizer)]
                assert all(
                    len(cell._outside.far.sharding.device_set) == 8 for cell in state if hasattr(cell, "_outside")
                )
            print(name, rule, f"{losses[-1]:.7f}", f"{alone[-1]:.7f}", f"{whole / held:.2f}", flush=True)
    with wl.using_backend("native"):  # the last one goes on elsewhere: its values come to the host
        assert float(step(model, optimizer, x, y)) < losses[0]


if __name__ == "__main__":
    main(sys.argv[1:])
