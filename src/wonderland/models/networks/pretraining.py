"""Pretrained feature detectors: a frozen encoder and a new head. Notes, sections 2.3.4 and 8.5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import arrays
from ...core.errors import ModuleError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike
from ...nn.functional import cross_entropy
from ...nn.module.containers import Sequential
from ...nn.module.modes import kept_modes
from ...nn.module.module import Module
from ...optim.optimizer import Optimizer
from ...transforms.imperative import no_grad
from ..classical.descent import Callback, descend


def fit_head(
    encoder: Module,
    head: Module,
    X: ArrayLike,
    y: ArrayLike,
    *,
    loss: Callable[..., Tensor] = cross_entropy,
    epochs: int = 100,
    batch_size: int | None = None,
    lr: float = 1e-2,
    optimizer: Optimizer | None = None,
    callback: Callback | None = None,
    key: KeyLike = None,
) -> Sequential:
    """Train a prediction head on the codes of labelled data; the encoder is frozen and stays as it is.

    >>> import wonderland as wl
    >>> X = wl.random.normal((40, 6), key=wl.random.key(0))
    >>> autoencoder = wl.models.LinearAutoencoder(6, 3).fit(X, method="closed")
    >>> labels = (X[:10, 0] > 0).astype(wl.int64)
    >>> model = wl.models.fit_head(autoencoder.encoder, wl.nn.Linear(3, 2), X[:10], labels)
    >>> model(X).shape, model[0] is autoencoder.encoder
    ((40, 2), True)

    The semi-supervised recipe: an autoencoder learns from all inputs, the head from the few that have labels. The codes
    are computed once, in evaluation mode. Returns `Sequential(encoder, head)`; `unfreeze()` it to tune both.
    """
    if not head.parameters():
        raise ModuleError("fit_head: the head has no parameters.", "such as wl.nn.Linear(codes, classes)")
    X, y = arrays.asarray(X), arrays.asarray(y)
    if not X.ndim or not y.ndim or X.shape[0] != y.shape[0]:
        raise ShapeError(f"fit_head: inputs of shape {X.shape} with labels of shape {y.shape}.", "a label per input")
    encoder.freeze()
    with kept_modes(encoder), no_grad():
        codes = arrays.asarray(encoder.eval()(X))

    def head_loss(head: Module, z: Tensor, y: Tensor) -> Tensor:
        return loss(head(z), y)

    settings: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "lr": lr, "optimizer": optimizer}
    descend(head, head_loss, codes, y, **settings, callback=callback, key=key, name="fit_head")
    return Sequential(encoder, head)
