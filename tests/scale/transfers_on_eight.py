"""Run by test_transfers.py in a process of its own, which has eight devices."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

import wonderland as wl
from wonderland.engines.xla.engine import ENGINE
from wonderland.inspect.on_xla import OnXLA
from wonderland.scale.mesh import Mesh
from wonderland.scale.rules import Rules, layout


def put(tree: object, grid: Mesh, rules: Rules) -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(grid.sizes), grid.axes)
    for placed in layout(tree, grid, rules).placed:
        placed.cell.put(ENGINE.brought(placed.cell.value, NamedSharding(mesh, PartitionSpec(*placed.placement))))


def loss_of(model: wl.nn.Module, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
    return wl.nn.functional.mse_loss(model(x), y)


@wl.jit
def step(model: wl.nn.Module, optimizer: wl.optim.SGD, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
    loss, grads = wl.value_and_grad(loss_of)(model, x, y)
    optimizer.step(grads)
    return loss


def main() -> None:
    wl.set_backend("xla")
    x, y = wl.ones((16, 64)), wl.ones((16, 32))

    # every device has all: gradients are summed over all of them, and the loss
    model = wl.models.MLP(64, [256], 32)
    optimizer = wl.optim.SGD(model, lr=0.1)
    put((model, optimizer), wl.mesh(data=8), "data")
    found = wl.collectives(step, model, optimizer, x, y)
    weights = 4 * model.num_parameters()
    assert {c.kind for c in found.listed} == {"all-reduce"}, found
    assert {c.group for c in found.listed} == {8}, found
    assert weights <= sum(c.bytes for c in found.listed) <= weights + 64, found
    assert {"layers.0", "layers.2"} <= {m for c in found.listed for m in c.modules}, found
    assert f"{found.sent:,}" in str(found)
    told = wl.explain(step, model, optimizer, x, y)  # the same, beside what else XLA's program is
    assert isinstance(told, OnXLA)
    assert told.transfers.listed == found.listed, told
    assert str(found).splitlines()[1].strip() in str(told), told
    assert "8 devices, cpu:0 to cpu:7" in told.summary, told
    assert told.instructions["all-reduce"] == len(found.listed), told
    before = [p.numpy().copy() for p in model.parameters()]
    step(model, optimizer, x, y)  # it was not called before
    assert str(wl.explain(step)) == str(told)
    assert all((a != p.numpy()).any() for a, p in zip(before, model.parameters(), strict=True))

    # columns and rows: one sum over "model", of the rows that a device has
    model = wl.models.MLP(64, [256], 32)
    grid = wl.mesh(data=2, model=4)
    put(model, grid, ("data", "tensor"))
    found = wl.collectives(lambda model, x: model(x), model, x)
    sums = [c for c in found.listed if c.kind == "all-reduce"]
    assert [(c.bytes, c.group, c.modules) for c in sums] == [(8 * 32 * 4, 4, ("layers.2",))], found

    # the table tells where things are
    table = wl.shardings(model)
    assert table.layout.mesh == grid
    assert table.layout["layers.0.weight"] == (None, "model")
    assert table.bytes == wl.shardings(model, ("data", "tensor"), mesh=grid).bytes
    print("done")


if __name__ == "__main__":
    main()
