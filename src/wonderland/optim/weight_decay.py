"""Which parameters decay, and how the forms of weight decay translate. Book, section 9.2.1."""

from __future__ import annotations

from ..core.arguments import as_number
from ..core.errors import InputError
from ..nn.module.module import Module
from ..nn.module.parameter import Parameter
from .settings import DECAYS

FORMS = ("penalty", *DECAYS)


def is_weight(model: Module, path: str, parameter: Parameter) -> bool:
    """Whether a parameter multiplies inputs, so that it may decay: not a bias, and not of a normalisation.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(2, 3), wl.nn.LayerNorm(3))
    >>> [path for path, p in model.named_parameters() if is_weight(model, path, p)]
    ['0.weight']
    """
    *owner, name = path.split(".")
    modules = dict(model.named_modules())
    while owner and ".".join(owner) not in modules:  # a list or dict of parameters
        owner.pop()
    of_norm = "Norm" in type(modules[".".join(owner)]).__name__
    return parameter.ndim >= 2 and not of_norm and not name.startswith("bias")


def decay_groups(model: Module, weight_decay: float) -> list[dict[str, object]]:
    """Two groups for an optimizer: weights that decay; biases and parameters of normalisations that do not.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(2, 3), wl.nn.LayerNorm(3))
    >>> optimizer = wl.optim.AdamW(wl.optim.decay_groups(model, 0.1), lr=1e-3)
    >>> [(list(group.params), group.weight_decay) for group in optimizer.groups]
    [(['0.weight'], 0.1), (['0.bias', '1.bias', '1.weight'], 0.0)]

    Gradients of the whole model go to `optimizer.step` as always.
    """
    if as_number("decay_groups", "weight_decay", weight_decay) < 0:
        raise InputError(f"decay_groups: weight_decay={weight_decay}.", "0 or more")
    named = model.named_parameters()
    chosen = {path for path, p in named if is_weight(model, path, p)}
    groups = [
        {"params": [pair for pair in named if pair[0] in chosen], "weight_decay": weight_decay},
        {"params": [pair for pair in named if pair[0] not in chosen], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def convert_weight_decay(value: float, lr: float, *, source: str, target: str) -> float:
    r"""The decay of one form that shrinks a weight of gradient descent as much per step as another.

    >>> round(convert_weight_decay(0.01, lr=0.1, source="independent", target="decoupled"), 12)
    0.1

    | form | a step without gradient | where |
    |---|---|---|
    | "penalty" | \(w - 2\eta\lambda w\) | the loss plus \(\lambda \sum w^2\), `wl.optim.l2` |
    | "coupled" | \(w - \eta\lambda w\) | `weight_decay` of SGD and Adam |
    | "decoupled" | \(w - \eta\lambda w\) | AdamW |
    | "independent" | \(w - \lambda w\) | the book |

    For plain gradient descent the first three are then the same method; rules that rescale gradients, such as Adam,
    also rescale the first two.
    """
    for what in (source, target):
        if what not in FORMS:
            raise InputError(f"convert_weight_decay: the form {what!r}.", f"one of {', '.join(map(repr, FORMS))}")
    if as_number("convert_weight_decay", "lr", lr) <= 0:
        raise InputError(f"convert_weight_decay: lr={lr}.", "a learning rate above 0")
    per_step = {"penalty": 2 * lr, "coupled": lr, "decoupled": lr, "independent": 1.0}
    return value * per_step[source] / per_step[target]
