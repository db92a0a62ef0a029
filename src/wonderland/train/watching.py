"""A look at gradients and activations while a model is trained, and warnings of what will not learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..random.streams import default_stream
from ..transforms.imperative import no_grad
from ..transforms.reverse import grad


class TrainingWarning(UserWarning):
    """Something in a run that keeps the model from learning."""


def look_at_first_batch(model: Any, loss: Any, objective: Any, batch: Any) -> None:
    """Run a copy of the model eagerly on a batch: losses then warn of what they see, as of probabilities in the place
    of logits, and gradients that are all zero are noticed. Nothing changes, nor does the random stream move."""
    before = default_stream.value
    try:
        with no_grad():
            objective(model.copy().eval(), loss, batch)
        grads = grad(lambda model: objective(model, loss, batch)[0])(model.copy())
    finally:
        default_stream.assign(before)
    if grads and not any(np.asarray(g).any() for g in grads.values()):
        warnings.warn(
            "fit: every gradient of the first batch is exactly zero, so the model cannot learn; a loss that is flat "
            "(as the 0/1 loss), a step or a round in the model, or units that are all dead do this.",
            TrainingWarning,
            stacklevel=4,
        )
