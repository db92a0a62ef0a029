"""Inputs that are changed as little as possible to mislead a model, and training against them. Notes, section 8.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from . import arrays
from .arrays.conversion import as_real
from .core.arguments import as_int, as_number
from .core.errors import InputError, ShapeError
from .core.tensor import Tensor
from .core.typing import ArrayLike, KeyLike
from .nn.module.module import Module
from .optim.optimizer import Optimizer
from .random.continuous import normal, uniform
from .random.keys import split
from .random.streams import take_key
from .transforms.reverse import grad

__all__ = ["adversarial_loss", "adversarial_train", "fgsm", "input_gradient", "pgd", "robust_accuracy"]

Model: TypeAlias = Callable[[Tensor], Tensor]
Loss: TypeAlias = Callable[[Tensor, Any], Tensor]
M = TypeVar("M", bound=Module)


def input_gradient(model: Model, loss: Loss, x: ArrayLike, y: ArrayLike) -> Tensor:
    r"""\(\nabla_x\, \mathrm{loss}(f(x), y)\), of the shape of x; the parameters and their gradients are left alone.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear.from_matrix([[2.0], [-3.0]])
    >>> input_gradient(model, wl.nn.functional.mse_loss, wl.tensor([[1.0, 1.0]]), wl.zeros((1, 1)))
    tensor([[-4.,  6.]])
    """
    x = as_real("input_gradient", arrays.asarray(x))
    return grad(lambda x: arrays.sum(loss(model(x), y)))(x)


def fgsm(
    model: Model, loss: Loss, x: ArrayLike, y: ArrayLike, eps: float, clip: tuple[float, float] | None = None
) -> Tensor:
    r"""\(x + \varepsilon\,\mathrm{sign}(\nabla_x\, \mathrm{loss}(f(x), y))\): the fast gradient sign method.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear.from_matrix([[2.0], [-3.0]])
    >>> loss = wl.nn.functional.binary_cross_entropy_with_logits
    >>> fgsm(model, loss, wl.tensor([[1.0, 1.0]]), wl.ones((1, 1)), eps=0.5)
    tensor([[0.5, 1.5]])

    No number of x changes by more than `eps`; `clip` is the range of valid inputs, such as (0, 1). Of a linear model
    \(w^\top x\) the margin falls by exactly \(\varepsilon\|w\|_1\). Put a model with dropout or batch normalisation
    into `eval()` before.
    """
    x = as_real("fgsm", arrays.asarray(x))
    eps = _size("fgsm", "eps", eps)
    return _clipped("fgsm", x + eps * arrays.sign(input_gradient(model, loss, x, y)), clip)


def pgd(
    model: Model,
    loss: Loss,
    x: ArrayLike,
    y: ArrayLike,
    eps: float,
    clip: tuple[float, float] | None = None,
    *,
    steps: int = 10,
    step_size: float | None = None,
    norm: str = "linf",
    random_start: bool = True,
    key: KeyLike = None,
) -> Tensor:
    r"""Projected gradient ascent of the loss within \(\|x' - x\| \le \varepsilon\), example by example.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear.from_matrix([[3.0], [-4.0]])
    >>> loss = wl.nn.functional.binary_cross_entropy_with_logits
    >>> x, y = wl.tensor([[1.0, 1.0]]), wl.ones((1, 1))
    >>> pgd(model, loss, x, y, eps=0.5, norm="l2", random_start=False).tolist()
    [[0.7, 1.4]]

    `norm` is "linf" (steps along the signs of the gradient, no number off by more than `eps`) or "l2" (steps along the
    gradient, the whole example off by at most `eps`); the first axis is that of examples. `step_size` is
    \(2.5\,\varepsilon/\mathrm{steps}\) unless given, so that the border can be reached from anywhere.
    """
    if norm not in ("linf", "l2"):
        raise InputError(f"pgd: norm={norm!r}.", '"linf" or "l2"')
    x = as_real("pgd", arrays.asarray(x))
    if not x.ndim:
        raise ShapeError("pgd: a number has no axis of examples.", "inputs (n, ...)")
    eps, steps = _size("pgd", "eps", eps), as_int("pgd", "steps", steps, 1)
    rate = 2.5 * eps / steps if step_size is None else _size("pgd", "step_size", step_size)
    change = arrays.zeros_like(x)
    if random_start:
        key = take_key("pgd", key)
        if norm == "linf":
            change = uniform(x.shape, -eps, eps, key=key, dtype=x.dtype)
        else:
            first, second = split(key, 2)
            way = normal(x.shape, key=first, dtype=x.dtype)
            radius = uniform((x.shape[0],) + (1,) * (x.ndim - 1), 0.0, eps, key=second, dtype=x.dtype)
            change = way * (radius / arrays.maximum(_lengths(way), 1e-30))
    for _ in range(steps):
        ascent = input_gradient(model, loss, _clipped("pgd", x + change, clip), y)
        ascent = arrays.sign(ascent) if norm == "linf" else ascent / arrays.maximum(_lengths(ascent), 1e-30)
        change = _within(change + rate * ascent, eps, norm)
        # what leaves the valid inputs is cut off before the next step
        change = _clipped("pgd", x + change, clip) - x
    return _clipped("pgd", x + change, clip)


def adversarial_loss(
    model: Model,
    loss: Loss,
    x: ArrayLike,
    y: ArrayLike,
    eps: float,
    mix: float = 0.5,
    clip: tuple[float, float] | None = None,
    attack: Callable[..., Tensor] = fgsm,
    **settings: Any,
) -> Tensor:
    r"""\((1 - m)\,\mathrm{loss}(f(x), y) + m\,\mathrm{loss}(f(x'), y)\) with \(x'\) from an attack.

    >>> import wonderland as wl
    >>> model, F = wl.nn.Linear(2, 3), wl.nn.functional
    >>> x, y = wl.ones((4, 2)), wl.tensor([0, 1, 2, 0])
    >>> grads = wl.grad(lambda m: adversarial_loss(m, F.cross_entropy, x, y, eps=0.1))(model)
    >>> list(grads)
    ['weight', 'bias']

    Adversarial training has it in the place of the loss: the examples are made anew for the parameters of each step,
    and count as constants for the gradient. `mix` m is the share of the adversarial loss, from 0 to 1.
    """
    if not 0.0 <= as_number("adversarial_loss", "mix", mix) <= 1.0:
        raise InputError(f"adversarial_loss: mix={mix}.", "a share from 0 to 1")
    changed = arrays.stop_gradient(
        attack(model, loss, arrays.stop_gradient(arrays.asarray(x)), y, eps, clip, **settings)
    )
    hard = loss(model(changed), y)
    return hard if mix == 1.0 else (1.0 - mix) * loss(model(arrays.asarray(x)), y) + mix * hard


def adversarial_train(
    model: M,
    loss: Loss,
    x: ArrayLike,
    y: ArrayLike,
    eps: float,
    mix: float = 0.5,
    clip: tuple[float, float] | None = None,
    attack: Callable[..., Tensor] = fgsm,
    *,
    epochs: int = 10,
    batch_size: int | None = 64,
    lr: float = 1e-3,
    optimizer: Optimizer | None = None,
    callback: Callable[[int, float], object] | None = None,
    key: KeyLike = None,
    **settings: Any,
) -> M:
    """Train a model on `adversarial_loss`: every step attacks the model as it is, and learns from what misled it.

    >>> import wonderland as wl
    >>> x, y = wl.tensor([[1.0, 0.2], [-1.0, -0.2]]), wl.tensor([0, 1])
    >>> model = adversarial_train(wl.nn.Linear(2, 2), wl.nn.functional.cross_entropy, x, y, 0.5, epochs=100, lr=0.1)
    >>> robust_accuracy(model, wl.nn.functional.cross_entropy, x, y, eps=0.5)
    1.0

    `settings` go to the attack, as in `attack=pgd, steps=5`; the other arguments are those of any fit by gradients.
    """
    from .models.classical.descent import descend  # models are far above, and needed here only

    def attacked(model: Model, x: Tensor, y: Tensor) -> Tensor:
        return adversarial_loss(model, loss, x, y, eps, mix, clip, attack, **settings)

    loop: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "lr": lr, "optimizer": optimizer}
    descend(model, attacked, x, y, **loop, callback=callback, key=key, name="adversarial_train")
    return model


def robust_accuracy(
    model: Model,
    loss: Loss,
    x: ArrayLike,
    y: ArrayLike,
    eps: float,
    clip: tuple[float, float] | None = None,
    attack: Callable[..., Tensor] = fgsm,
    **settings: Any,
) -> float:
    """The share of examples whose class, the largest logit, is right even after an attack.

    >>> import wonderland as wl
    >>> model, F = wl.nn.Linear.from_matrix(wl.eye(2)), wl.nn.functional
    >>> x, y = wl.tensor([[3.0, 0.0], [0.0, 0.5]]), wl.tensor([0, 1])
    >>> robust_accuracy(model, F.cross_entropy, x, y, eps=0.0), robust_accuracy(model, F.cross_entropy, x, y, eps=1.0)
    (1.0, 0.5)
    """
    labels = arrays.asarray(y)
    logits = model(attack(model, loss, x, labels, eps, clip, **settings))
    if logits.ndim != labels.ndim + 1 or logits.shape[:-1] != labels.shape or not labels.size:
        raise ShapeError(
            f"robust_accuracy: logits of shape {logits.shape} for classes of shape {labels.shape}.",
            "(n, classes), (n,)",
        )
    return float(arrays.mean(arrays.astype(arrays.argmax(logits, axis=-1) == labels, "float64")))


def _size(name: str, what: str, value: float) -> float:
    if not as_number(name, what, value) >= 0:
        raise InputError(f"{name}: {what}={value}.", "0 or more")
    return float(value)


def _clipped(name: str, x: Tensor, clip: tuple[float, float] | None) -> Tensor:
    if clip is None:
        return x
    low, high = clip
    if not low <= high:
        raise InputError(f"{name}: clip={clip}.", "(lowest, highest)")
    return arrays.clip(x, low, high)


def _lengths(x: Tensor) -> Tensor:
    """The norm of each example, with axes of size 1 in the place of all others."""
    return arrays.norm(x, axis=tuple(range(1, x.ndim)), keepdims=True) if x.ndim > 1 else arrays.abs(x)


def _within(change: Tensor, eps: float, norm: str) -> Tensor:
    """The nearest change in the ball of radius eps."""
    if norm == "linf":
        return arrays.clip(change, -eps, eps)
    return change * (eps / arrays.maximum(_lengths(change), max(eps, 1e-30)))
