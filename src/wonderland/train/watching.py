"""A look at gradients and activations while a model is trained, and warnings of what will not learn."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arguments import shown
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..nn.analysis.diagnostics import dead_units, gradient_report, variance_report
from ..nn.module.module import Module
from ..random.streams import default_stream
from ..transforms.imperative import no_grad
from ..transforms.reverse import grad
from .callbacks import Callback
from .history import Record
from .step import Objective

if TYPE_CHECKING:
    from .trainer import Trainer

ADVICE = {
    "exploding": "a smaller learning rate, clip_norm, or normalization layers",
    "vanishing": "residual connections, normalization, or another activation and initialization",
    "zero": "a look at what the loss depends on; units may be dead, or a step or a round in the way",
    "not finite": "`with wl.debug.nans():` around an eager step to find the operation",
}


class TrainingWarning(UserWarning):
    """Something in a run that keeps the model from learning."""


class Watch(Callback):
    r"""The norm of every gradient, and dead units, on the last batch of every epoch; warns of what goes wrong.

    >>> import wonderland as wl
    >>> x = wl.linspace(-1.0, 1.0, 32).reshape(32, 1)
    >>> watch = wl.train.Watch()
    >>> history = wl.train.fit(
    ...     wl.nn.Sequential(wl.nn.Linear(1, 8), wl.nn.Tanh(), wl.nn.Linear(8, 1)),
    ...     "mse_loss", (x, x**2), epochs=3, callbacks=[watch], progress=False,
    ... )
    >>> len(history["gradient_norm"]), sorted(watch.norms[-1])
    (3, ['0.bias', '0.weight', '2.bias', '2.weight'])

    It warns, once for each parameter and kind, of gradients that explode, vanish, or are exactly zero, and of layers
    with more than `most_dead` of their units dead. The gradients are computed eagerly on a copy of the model, which
    costs about a step without compilation. `gradients`, `activations` (the spread of every layer's outputs and of their
    gradients) and `dead` keep the last ones. Book, sections 5.4 and 6.4.3.
    """

    def __init__(self, most_dead: float = 0.5) -> None:
        self.most_dead = most_dead
        self.norms: list[dict[str, float]] = []
        self.gradients: dict[str, Tensor] = {}
        self.activations: list[Any] = []
        self.dead: dict[str, list[int]] = {}
        self._warned: set[tuple[str, str]] = set()

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        model, batch = trainer.model, trainer.batch
        self.gradients = probe(model, trainer.loss_function, trainer.objective, batch)
        sizes = {path: float(np.linalg.norm(np.asarray(g, np.float64))) for path, g in self.gradients.items()}
        self.norms.append(sizes)
        record["gradient_norm"] = float(np.sqrt(sum(size**2 for size in sizes.values())))
        if not sizes:
            return
        for path, word in gradient_report(sizes).parameters.items():
            if word != "healthy":
                share = f"{sizes[path]:.1e} beside {max(sizes.values()):.1e}"
                self._warn(path, word, f"the gradient of {path} is {word} ({share}); try {ADVICE[word]}.")
        self._look_at_activations(model, batch)

    def _look_at_activations(self, model: Module, batch: object) -> None:
        inputs = batch[0] if isinstance(batch, (tuple, list)) else batch
        with same_stream():
            self.activations = variance_report(model.copy(), inputs)
            self.dead = dead_units(model.copy(), inputs)
        for path, units in self.dead.items():
            width = model.get_submodule(path).parameters()[0].shape[-1]
            if len(units) > self.most_dead * width:
                self._warn(
                    path, "dead", f"{len(units)} of the {width} units of {path} are dead: no gradient reaches them."
                )

    def _warn(self, path: str, kind: str, text: str) -> None:
        if (path, kind) not in self._warned:
            self._warned.add((path, kind))
            warnings.warn(f"watch: {text}", TrainingWarning, stacklevel=2)

    def state_dict(self) -> dict[str, object]:
        return {"norms": self.norms}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        norms = state["norms"]
        if not isinstance(norms, list) or not all(isinstance(sizes, dict) for sizes in norms):
            raise InputError(f"Watch: the state {shown(norms)}.", "the result of state_dict()")
        self.norms = list(norms)


def look_at_first_batch(model: Module, loss: Module, objective: Objective, batch: object) -> None:
    """Run a copy of the model eagerly on a batch: losses then warn of what they see, as of probabilities in the place
    of logits, and gradients that are all zero are noticed. Nothing changes, nor does the random stream move."""
    with same_stream(), no_grad():
        objective(model.copy().eval(), loss, batch)
    grads = probe(model, loss, objective, batch)
    if grads and not any(np.asarray(g).any() for g in grads.values()):
        warnings.warn(
            "fit: every gradient of the first batch is exactly zero, so the model cannot learn; a loss that is flat "
            "(as the 0/1 loss), a step or a round in the model, or units that are all dead do this.",
            TrainingWarning,
            stacklevel=4,
        )


def probe(model: Module, loss: Module, objective: Objective, batch: object) -> dict[str, Tensor]:
    """The gradients of a copy of the model on a batch."""
    with same_stream():
        return grad(lambda copy: objective(copy, loss, batch)[0])(model.copy())


@contextlib.contextmanager
def same_stream() -> Iterator[None]:
    """Draws from the global stream inside are taken back."""
    before = default_stream.value
    try:
        yield
    finally:
        default_stream.assign(before)
