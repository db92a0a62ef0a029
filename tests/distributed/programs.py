"""A program that several processes run: `python programs.py WHAT FOLDER`. It prints what the test looks at, as JSON."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import signal
import sys

import numpy as np

import wonderland as wl
from wonderland.train import checkpoints

folder = sys.argv[-1]


def digest(model):
    return hashlib.sha256(b"".join(np.asarray(t).tobytes() for t in model.state_dict().values())).hexdigest()


def model_of(*, norm=True, dropout=0.0, inputs=5):
    wl.random.seed(0)
    middle = [wl.nn.BatchNorm1d(16)] if norm else []
    return wl.nn.Sequential(
        wl.nn.Linear(inputs, 16, bias=not norm), *middle, wl.nn.Tanh(), wl.nn.Dropout(dropout), wl.nn.Linear(16, 2)
    )


def data(n=50):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 5)).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] > 0).astype(np.int64)


class Die(wl.train.Callback):
    """Kill a process at the end of a step, once, if the folder says which and when."""

    def on_step_end(self, trainer):
        flag = os.path.join(folder, "die.json")
        if os.path.exists(flag):
            with open(flag) as file:
                if json.load(file) == [wl.distributed.get_rank(), trainer.step]:
                    os.remove(flag)
                    print("about to die", file=sys.stderr, flush=True)
                    os.kill(os.getpid(), signal.SIGKILL)


def fit(model, **settings):
    x, y = data()
    common = {"epochs": 3, "batch_size": 12, "lr": 0.02, "metrics": ["accuracy"], "progress": False}
    return wl.train.fit(model, "cross_entropy", (x, y), validation=(x[:21], y[:21]), **{**common, **settings})


def trained():
    model = model_of()
    history = fit(model)
    dropping = model_of(norm=False, dropout=0.5)
    fit(dropping)
    return {
        "losses": history["loss"],
        "validation": history["validation_loss"],
        "accuracy": history["accuracy"],
        "digests": [digest(model), digest(dropping)],
        "draw": wl.random.uniform((3,)).tolist(),  # outside of a step all processes draw the same
    }


def by_hand():
    group, (x, y) = wl.distributed.init(), data(48)
    model = model_of(norm=False)
    optimizer = wl.optim.Adam(model, lr=0.02)
    rows = slice(group.rank * 48 // group.size, (group.rank + 1) * 48 // group.size)

    @wl.jit
    def step(model, optimizer, a, b):
        loss, grads = wl.value_and_grad(lambda m: wl.nn.functional.cross_entropy(m(a), b))(model)
        loss, grads = wl.distributed.all_mean((loss, grads))
        optimizer.step(grads)
        return loss

    losses = [float(step(model, optimizer, wl.tensor(x[rows]), wl.tensor(y[rows]))) for _ in range(5)]
    first = wl.distributed.broadcast(wl.tensor([group.rank + 7.0]))
    ranks = wl.distributed.all_gather(wl.tensor([group.rank]))
    return {"losses": losses, "digest": digest(model), "first": first.tolist(), "ranks": ranks.tolist()}


def restarted():
    model = model_of()
    history = fit(model, checkpoint=os.path.join(folder, "checkpoints"), checkpoint_every=4, callbacks=[Die()])
    return {"losses": history["loss"], "accuracy": history["accuracy"], "digest": digest(model)}


def refused():
    """What is said of unlike weights, and of a disk that is full for the first process."""
    group, said = wl.distributed.init(), []
    model = model_of(norm=False)
    if group.rank == 1:
        model[0].bias = model[0].bias + 1.0
    try:
        fit(model)
    except wl.errors.ProcessError as error:
        said.append(str(error))
    real = checkpoints.write_atomically

    def write(path, parts):
        if "step-00000008" in str(path):
            raise wl.errors.FileError(f"cannot write {path}: the disk is full.", "another disk")
        real(path, parts)

    checkpoints.write_atomically = write
    try:
        fit(model_of(), checkpoint=folder, checkpoint_every=4)
    except wl.errors.WonderlandError as error:
        said.append(str(error))
    finally:
        checkpoints.write_atomically = real
    return said


def unlike():
    """What is said of processes that have another file of the program, or another setting."""
    rank, said = os.environ["RANK"], []
    mine = os.path.join(folder, f"of_{rank}")
    os.makedirs(mine, exist_ok=True)
    with open(os.path.join(mine, "part_of_program.py"), "w") as file:
        file.write(f"VALUE = {rank}")
    sys.path.insert(0, mine)
    importlib.import_module("part_of_program")
    try:
        wl.distributed.init()
    except wl.errors.ProcessError as error:
        said.append(str(error))
    return {"rank": int(rank), "said": said}


def everything():
    found = {"trained": trained(), "by_hand": by_hand()}
    return {**found, "refused": refused()} if wl.distributed.get_world_size() > 1 else found


if __name__ == "__main__":
    found = globals()[sys.argv[1]]()
    print(json.dumps({"rank": wl.distributed.get_rank(), **(found or {})}), flush=True)
