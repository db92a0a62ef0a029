"""A program that several processes with devices of their own run: `python on_devices.py WHAT FOLDER`."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
from programs import Die, data, digest, folder, model_of

import wonderland as wl

SAID = (wl.errors.WonderlandError,)


def said_of(f):
    """The first line of what is said against something."""
    try:
        f()
    except wl.errors.WonderlandError as error:
        return str(error)
    return "nothing"


def loss_of(model, a, b):
    return wl.nn.functional.cross_entropy(model(a), b)


@wl.jit
def step(model, optimizer, a, b):
    loss, grads = wl.value_and_grad(loss_of)(model, a, b)
    optimizer.step(grads)
    return loss


@wl.jit
def summed_up(model, optimizer, a, b):
    loss, grads = wl.value_and_grad(loss_of)(model, a, b)
    optimizer.step(wl.distributed.all_mean(grads))
    return loss


def by_hand():
    """A loop of one's own: the same whole batch in all processes, on a mesh of all their devices."""
    group, devices = wl.distributed.init(), wl.distributed.get_world_size() * len(wl.devices())
    x, y = (wl.tensor(part) for part in data(64))
    found = {"devices": devices}
    for name, rules, axes in [
        ("data", "data", {"data": devices}),
        ("full", "full", {"data": devices}),
        ("both", ("data", "tensor"), {"data": devices // 2, "model": 2}),
        ("across", ("full", "tensor"), {"model": 2, "data": devices // 2}),  # "model" goes across processes
    ]:
        wl.random.seed(0)
        model = wl.models.MLP(5, [64, 64], 2)
        optimizer = wl.optim.Adam(model, lr=0.02)
        wl.shard((model, optimizer), rules, mesh=(mesh := wl.mesh(**axes)))
        found[name] = [float(step(model, optimizer, x, y)) for _ in range(4)]
        if name == "full":
            found["read"] = said_of(lambda: np.asarray(model.layers[2].weight))
            found["saved"] = said_of(lambda: wl.save(model, os.path.join(folder, "model.safetensors")))
            wl.shard((model, optimizer), "data", mesh=mesh)
            found["digest"] = digest(model)
    own = x + group.rank
    found["batches"] = said_of(lambda: step(model, optimizer, own, y))
    found["sums"] = said_of(lambda: summed_up(model, optimizer, x, y))
    found["large"] = said_of(lambda: wl.shard(model, "data", mesh=wl.mesh(data=2 * devices)))
    found["odd"] = said_of(lambda: wl.shard(model, "data", mesh=wl.mesh(data=devices - 1)))
    return found


def fitted(rules=None, path=None, **settings):
    model = model_of(**{"dropout": 0.25, **settings.pop("model", {})})
    optimizer = wl.optim.Adam(model, lr=0.02)
    if rules is not None:
        wl.shard((model, optimizer), rules, mesh=wl.mesh(data=wl.distributed.get_world_size() * len(wl.devices())))
    x, y = data(52)
    history = wl.train.fit(
        model,
        "cross_entropy",
        (x, y),
        epochs=2,
        batch_size=16,  # and a last one of 4, which few meshes divide
        optimizer=optimizer,
        metrics=["accuracy"],
        validation=(x[:21], y[:21]),
        progress=False,
        checkpoint=path,
        **settings,
    )
    return {name: history[name] for name in ("loss", "validation_loss", "accuracy", "validation_accuracy")}, model


def by_fit():
    found, model = fitted()
    split, other = fitted("full", os.path.join(folder, "split"))
    with wl.using_backend("native"):
        one, _ = fitted(distributed=False)
    restored = model_of(dropout=0.25)
    read = wl.train.CheckpointFolder(os.path.join(folder, "split")).newest()
    restored.load_state_dict(read.part("model"))
    wl.shard(other, "data", mesh=wl.mesh(data=wl.distributed.get_world_size() * len(wl.devices())))
    wrong = model_of()
    wrong[0].weight = wrong[0].weight + (wl.distributed.get_rank() == 1)
    return {
        "whole": found,
        "split": split,
        "one": one,
        "digest": digest(model),  # after `fit` the values are in each process
        "device": model[0].weight.device,
        "restored": digest(restored) == digest(other),
        "files": len(read.record["tensors"]["files"]),
        "weights": said_of(lambda: wl.train.fit(wrong, "cross_entropy", data(), progress=False)),
    }


def everything():
    return {"by_hand": by_hand(), "by_fit": by_fit()}


def restarted():
    rules = "full" if os.path.exists(os.path.join(folder, "full")) else None
    found, model = fitted(rules, os.path.join(folder, "checkpoints"), checkpoint_every=3, callbacks=[Die()])
    wl.shard(model, "data", mesh=wl.mesh(data=wl.distributed.get_world_size() * len(wl.devices())))
    return {**found, "digest": digest(model)}


if __name__ == "__main__":
    wl.set_backend("xla")
    wl.distributed.init()
    found = globals()[sys.argv[1]]()
    print(json.dumps({"rank": wl.distributed.get_rank(), **found}), flush=True)
