"""What every model promises: compiled it computes the same, saved it comes back, and it can learn a few examples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import wonderland as wl
from tests.agreement import close_array


def same_when_compiled(model: Any, *args: Any, roundings: int = 300, **kwargs: Any) -> None:
    model.eval()
    close_array(wl.jit(lambda m, *a: m(*a, **kwargs))(model, *args), model(*args, **kwargs), roundings)
    model.train()


def survives_saving(make: Callable[[int], Any], folder: Path, *args: Any) -> None:
    """Another model, of other random numbers, has the first one's results after it was saved and loaded."""
    first, second = make(0).eval(), make(1).eval()
    assert not np.allclose(first(*args), second(*args))
    wl.save(first.state_dict(), str(folder / "model"))
    second.load_state_dict(wl.load(str(folder / "model")))
    np.testing.assert_array_equal(first(*args), second(*args))


def learns(
    model: Any, loss_of: Callable[..., Any], *args: Any, steps: int = 60, lr: float = 3e-3
) -> tuple[float, float]:
    """The loss before and after some steps of Adam on the same few examples."""
    optimizer = wl.optim.Adam(model, lr=lr)

    @wl.jit
    def step(model: Any, optimizer: Any, *args: Any) -> Any:
        loss, grads = wl.value_and_grad(loss_of)(model, *args)
        optimizer.step(grads)
        return loss

    losses = [step(model, optimizer, *args).item() for _ in range(steps)]
    return losses[0], losses[-1]
