"""A program that several processes with devices of their own run: `python on_devices.py WHAT FOLDER`."""

from __future__ import annotations

import functools
import json
import os
import sys

import wonderland as wl
from tests.distributed import programs

folder, digest = programs.folder, programs.digest


def said_of(f):
    """What is said against something."""
    try:
        f()
    except wl.errors.WonderlandError as error:
        return str(error)
    return "nothing"


def all_devices():
    return wl.distributed.get_world_size() * len(wl.devices())


def model_of():
    wl.random.seed(0)
    return wl.nn.Sequential(
        wl.nn.Linear(5, 256, bias=False),  # large enough to be split
        wl.nn.BatchNorm1d(256),
        wl.nn.Tanh(),
        wl.nn.Dropout(0.25),
        wl.nn.Linear(256, 2),
    )


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


def perceptron():
    wl.random.seed(0)
    model = wl.models.MLP(5, [256], 2)
    return model, wl.optim.Adam(model, lr=0.02)


def by_hand():
    """A loop of one's own: the same whole batch in all processes, on a mesh of all their devices."""
    group, devices = wl.distributed.init(), all_devices()
    x, y = (wl.tensor(part) for part in programs.data(64))
    found = {"devices": devices}
    model, optimizer = perceptron()
    with wl.using_backend("native"):
        found["one"] = [float(step(model, optimizer, x, y)) for _ in range(4)]
    for name, rules, axes in [
        ("data", "data", {"data": devices}),
        ("full", "full", {"data": devices}),
        ("across", ("full", "tensor"), {"model": 2, "data": devices // 2}),  # "model" goes across processes
    ]:
        model, optimizer = perceptron()
        wl.shard((model, optimizer), rules, mesh=(mesh := wl.mesh(**axes)))
        found[name] = [float(step(model, optimizer, x, y)) for _ in range(4)]
        if name == "full":
            found["read"] = said_of(model.layers[0].weight.numpy)
            found["saved"] = said_of(functools.partial(wl.save, model, os.path.join(folder, "model.safetensors")))
            wl.shard((model, optimizer), "data", mesh=mesh)
            found["digest"] = digest(model)
    own = x + group.rank
    found["batches"] = said_of(lambda: step(model, optimizer, own, y))
    found["sums"] = said_of(lambda: summed_up(model, optimizer, x, y))
    found["large"] = said_of(lambda: wl.shard(model, "data", mesh=wl.mesh(data=2 * devices)))
    found["odd"] = said_of(lambda: wl.shard(model, "data", mesh=wl.mesh(data=devices - 1)))
    return found


def fitted(name=None, rules=None, axes=None, rows=52, measured=True, **settings):
    """What `fit` gives, on a mesh that was chosen or not, and the model."""
    model = model_of()
    optimizer = wl.optim.Adam(model, lr=0.02)
    if rules is not None:
        wl.shard((model, optimizer), rules, mesh=wl.mesh(**(axes or {"data": all_devices()})))
    x, y = programs.data(rows)
    history = wl.train.fit(
        model,
        "cross_entropy",
        (x, y),
        batch_size=16,  # and a last one of 4, which few meshes divide
        optimizer=optimizer,
        metrics=["accuracy"],
        validation=(x[:21], y[:21]) if measured else None,
        progress=False,
        checkpoint=None if name is None else os.path.join(folder, name),
        **{"epochs": 2, **settings},
    )
    return {key: history[key] for key in history.records[0] if key != "seconds"}, model


def by_fit():
    found, model = fitted()
    full, split = fitted("full", "full")
    # every process needs all rows
    across, _ = fitted(None, "data", {"model": 2, "data": all_devices() // 2}, 48, False, epochs=1)
    with wl.using_backend("native"):
        few, _ = fitted(rows=48, measured=False, epochs=1, distributed=False)
    with wl.using_backend("native"):
        one, _ = fitted(distributed=False)
    read = wl.train.CheckpointFolder(os.path.join(folder, "full")).newest()
    restored, wrong = model_of(), model_of()
    restored.load_state_dict(read.part("model"))
    wrong[0].weight = wrong[0].weight + (wl.distributed.get_rank() == 1)
    found = {
        "whole": found,
        "full": full,
        "across": across,
        "few": few,
        "one": one,
        "digest": digest(model),  # after `fit` the values are in each process
        "device": model[0].weight.device,
        "files": len(read.record["tensors"]["files"]),
        "weights": said_of(lambda: programs.fit(wrong)),
        "alone": said_of(lambda: programs.fit(split, distributed=False)),
    }
    wl.shard(split, "data", mesh=wl.mesh(data=all_devices()))
    return {**found, "restored": digest(restored) == digest(split)}


def everything():
    return {"by_hand": by_hand(), "by_fit": by_fit()}


def restarted():
    """A run that may be killed, and then one without a break; two processes of four share their rows."""
    found, axes = {}, {"data": 2, "model": all_devices() // 2}
    for name, callbacks in (("broken", [programs.Die()]), ("whole", [])):
        found[name], model = fitted(name, "full", axes, 48, False, checkpoint_every=2, callbacks=callbacks)
        wl.shard(model, "data", mesh=wl.mesh(**axes))
        found[name]["digest"] = digest(model)
    with wl.using_backend("native"):
        found["one"], _ = fitted(rows=48, measured=False, distributed=False)
    return found


if __name__ == "__main__":
    wl.set_backend("xla")
    wl.distributed.init()
    found = globals()[sys.argv[1]]()
    print(json.dumps({"rank": wl.distributed.get_rank(), **found}), flush=True)
