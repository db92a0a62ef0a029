"""Training a model that was trained before: new heads, frozen layers, small rates below. Notes, section 8.5."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from ... import arrays
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ModuleError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike
from ..layers.linear import Linear
from ..module.containers import ModuleDict, ModuleList, Sequential
from ..module.members import Member, cells, members
from ..module.module import Module
from ..module.parameter import Parameter
from ..module.state_dict import load_state_dict
from .surgery import replace_submodule

__all__ = [
    "Trainable", "LoadedPartly", "trainable_report", "replace_head", "load_partial", "layers_of", "layerwise_groups",
    "unfreeze_last",
]  # fmt: skip

M = TypeVar("M", bound=Module)


class Trainable(NamedTuple):
    """How many of a model's numbers are trained."""

    trainable: int
    total: int
    fraction: float


class LoadedPartly(NamedTuple):
    """What a partial load took and what it left out."""

    loaded: list[str]
    missing: list[str]
    unexpected: list[str]
    mismatched: list[str]


def trainable_report(model: Module) -> Trainable:
    """The number of trainable numbers, of all, and their ratio. Notes, section 8.5.6.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(8, 8), wl.nn.Linear(8, 2)).freeze("0")
    >>> wl.nn.trainable_report(model)
    Trainable(trainable=18, total=90, fraction=0.2)
    """
    trainable, total = model.num_parameters(trainable_only=True), model.num_parameters()
    return Trainable(trainable, total, trainable / max(total, 1))


def replace_head(model: M, head: Module | int, path: str | None = None, key: KeyLike = None) -> M:
    """Put a new head into a model, in place: a module, or a number of outputs for a new linear layer.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(8, 16), wl.relu, wl.nn.Linear(16, 1000))
    >>> wl.nn.replace_head(model, 10)[2]
    Linear(in_features=16, out_features=10, bias=True)

    The head is the module at `path`, by default the last linear layer. Notes, section 8.5.2.
    """
    if path is None:
        linear = [name for name, module in model.named_modules() if name and isinstance(module, Linear)]
        if not linear:
            raise ModuleError(f"replace_head: this {type(model).__name__} contains no linear layer.", "path=...")
        path = linear[-1]
    old = model.get_submodule(path)
    if not isinstance(head, Module):
        outputs = as_int("replace_head", "head", head, 1)
        if not isinstance(old, Linear) or old.in_features is None:
            raise ModuleError(f"replace_head: the {type(old).__name__} at {path!r} is not linear.", "a module as head")
        head = Linear(old.in_features, outputs, old.bias is not None, old.dtype, key)
    replace_submodule(model, path, head)
    return model


def load_partial(model: Module, values: Mapping[str, ArrayLike]) -> LoadedPartly:
    """Load what fits of a saved state: equal paths and shapes; numbers are converted to the model's types.

    >>> import wonderland as wl
    >>> old = wl.nn.Sequential(wl.nn.Linear(4, 8), wl.nn.Linear(8, 1000))
    >>> new = wl.nn.Sequential(wl.nn.Linear(4, 8), wl.nn.Linear(8, 10))
    >>> wl.nn.load_partial(new, old.state_dict()).mismatched
    ['1.weight', '1.bias']

    Notes, section 8.5.2. Raises if nothing fits. `load_state_dict` is strict about all of this.
    """
    paths = dict(cells(model, again=True))
    fitting: dict[str, Tensor] = {}
    mismatched = []
    for path, value in values.items():
        if path in paths:
            value = arrays.asarray(value)
            if value.shape == paths[path].shape:
                fitting[path] = arrays.astype(value, paths[path].dtype)
            else:
                mismatched.append(path)
    if not fitting:
        raise ModuleError(
            f"load_partial: none of the {len(values)} values fits this {type(model).__name__}.",
            f"paths such as {', '.join(map(repr, list(paths)[:3]))}",
        )
    loaded = load_state_dict(model, fitting, strict=False)
    missing = [path for path in loaded.missing if path not in mismatched]
    return LoadedPartly(list(fitting), missing, [path for path in values if path not in paths], mismatched)


def layers_of(model: Module) -> list[tuple[str, list[tuple[str, Parameter]]]]:
    """The layers of a model from input to output: their paths and parameters, each parameter once.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(2, 2), wl.relu, wl.nn.Sequential(wl.nn.Linear(2, 2), wl.nn.Linear(2, 1)))
    >>> [path for path, _ in wl.nn.layers_of(model)]
    ['0', '2.0', '2.1']

    Containers are opened, as is the model itself; any other module with parameters is a layer. Parameters that belong
    to the model itself make a first layer, with the path "".
    """
    found: list[tuple[str, list[tuple[str, Parameter]]]] = []
    seen: set[int] = set()

    def take(path: str, parameters: Iterable[tuple[str, Member]]) -> None:
        new = []
        for name, parameter in parameters:
            if isinstance(parameter, Parameter) and id(parameter) not in seen:
                seen.add(id(parameter))
                new.append((f"{path}.{name}" if path else name, parameter))
        if new:
            found.append((path, new))

    model.parameters()  # raises if some are still to be made
    waiting: list[tuple[str, Module]] = [("", model)]  # the next one last
    while waiting:
        path, module = waiting.pop()
        if module is not model and not isinstance(module, (Sequential, ModuleList, ModuleDict)):
            take(path, module.named_parameters())
            continue
        inside = members(module)
        take(path, list(inside.items()))
        waiting += [
            (f"{path}.{name}" if path else name, member)
            for name, member in reversed(inside.items())
            if isinstance(member, Module)
        ]
    return found


def layerwise_groups(model: Module, lr: float, decay: float = 0.9) -> list[dict[str, object]]:
    r"""Groups for an optimizer: the last layer has the rate \(\eta\), each one before it \(\gamma\) times less.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(4, 8), wl.relu, wl.nn.Linear(8, 8), wl.relu, wl.nn.Linear(8, 2))
    >>> groups = wl.nn.layerwise_groups(model, lr=0.1, decay=0.5)
    >>> [(group["lr"], [name for name, _ in group["params"]]) for group in groups]
    [(0.025, ['0.weight', '0.bias']), (0.05, ['2.weight', '2.bias']), (0.1, ['4.weight', '4.bias'])]
    >>> optimizer = wl.optim.SGD(groups, lr=0.1)

    Layers near the input hold what is useful everywhere and should change least. See `layers_of`. Notes, section 8.5.5.
    """
    if not as_number("layerwise_groups", "lr", lr) >= 0 or not as_number("layerwise_groups", "decay", decay) >= 0:
        raise InputError(f"layerwise_groups: lr={lr!r}, decay={decay!r}.", "a rate, and a factor such as 0.9")
    layers = layers_of(model)
    n = len(layers)
    return [{"params": pairs, "lr": lr * decay ** (n - 1 - i)} for i, (_, pairs) in enumerate(layers)]


def unfreeze_last(model: M, n: int) -> M:
    """Train the last n layers alone: gradual unfreezing with n = 1, 2, 3 and so on. Notes, section 8.5.5.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(4, 8), wl.relu, wl.nn.Linear(8, 2))
    >>> [path for path, p in wl.nn.unfreeze_last(model, 1).named_parameters() if p.trainable]
    ['2.weight', '2.bias']

    The layers are those of `layers_of`; with n at least their number everything is trained, with 0 nothing.
    """
    n = as_int("unfreeze_last", "n", n, 0)
    layers = layers_of(model)
    model.freeze()
    for _, pairs in layers[max(len(layers) - n, 0) :]:
        for _, parameter in pairs:
            parameter.trainable = np.dtype(parameter.dtype).kind in "fcV"
    return model
