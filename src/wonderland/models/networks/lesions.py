"""Networks without some of their blocks, and residual networks as sums of paths. Book, section 9.4.2."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ... import arrays
from ...core.errors import InputError, ModuleError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...nn.activations.piecewise import ReLU
from ...nn.adaptation.surgery import replace_submodule
from ...nn.layers.identity import Identity
from ...nn.layers.residual import Residual
from ...nn.module.containers import Sequential
from ...nn.module.module import Module

MOST_PATHS = 2**16


class Ablation(NamedTuple):
    """A score of the whole model, and that without each of its blocks."""

    whole: float
    without: dict[str, float]

    @property
    def drops(self) -> dict[str, float]:
        """What is lost without a block: whole - without."""
        return {path: self.whole - score for path, score in self.without.items()}


def residual_blocks(model: Module) -> list[str]:
    """The paths of the residual blocks of a model: modules that are a `Residual`, or hold one as `residual`.

    >>> import wonderland as wl
    >>> residual_blocks(wl.models.small_resnet(channels=[4, 8]))
    ['backbone.1.0', 'backbone.2.0']
    """
    found: list[str] = []
    for path, module in model.named_modules():
        inside = any(path.startswith(f"{outer}.") for outer in found)
        if path and not inside and isinstance(_residual(module), Residual):
            found.append(path)
    return found


@contextlib.contextmanager
def drop_block(model: Module, *paths: str) -> Iterator[Module]:
    """The model without the blocks at these paths, while the `with` lasts. Book, section 9.4.2.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Residual(wl.nn.Linear(2, 2)), wl.nn.Residual(wl.nn.Linear(2, 2)))
    >>> with drop_block(model, "0", "1"):
    ...     print(model(wl.tensor([1.0, 2.0])))
    tensor([1., 2.])

    Of a residual block the shortcut remains (and the ReLU after the sum, if there is one); any other module is
    replaced by the identity, so it has to keep the shape.
    """
    if not paths:
        raise InputError("drop_block: no path is given.", "a path such as 'backbone.1.0'; see residual_blocks")
    whole = {path: model.get_submodule(path) for path in paths}
    try:
        for path, block in whole.items():
            replace_submodule(model, path, _lesioned(block))
        yield model
    finally:
        for path, block in whole.items():
            replace_submodule(model, path, block)


def ablate(model: Module, score: Callable[[Module], Tensor | float], blocks: Iterable[str] | None = None) -> Ablation:
    """The score of a model, and its score without each of its blocks in turn. Book, section 9.4.2.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Residual(wl.nn.Linear(2, 2)), wl.nn.Residual(wl.nn.Linear(2, 2), zero_init=True))
    >>> x = wl.tensor([1.0, 2.0])
    >>> found = ablate(model, lambda model: model(x).sum())
    >>> [path for path, drop in found.drops.items() if drop == 0.0]
    ['1']

    `score` is a function of the model, such as its accuracy on test data; `blocks` are paths, by default those of all
    residual blocks. A deep residual network loses little with a single block, a plain one everything.
    """
    paths = residual_blocks(model) if blocks is None else list(blocks)
    if not paths:
        raise ModuleError(f"ablate: this {type(model).__name__} has no residual block.", "blocks=[...] with paths")
    whole = float(score(model))
    without = {}
    for path in paths:
        with drop_block(model, path):
            without[path] = float(score(model))
    return Ablation(whole, without)


def residual_paths(functions: Sequence[Callable[..., Tensor]], x: ArrayLike) -> dict[tuple[int, ...], Tensor]:
    r"""The \(2^n\) paths through n residual blocks: for each set of blocks, their functions applied to x in turn.

    >>> import wonderland as wl
    >>> A, B = wl.random.normal((3, 3)), wl.random.normal((3, 3))
    >>> x = wl.ones(3)
    >>> paths = residual_paths([lambda x: A @ x, lambda x: B @ x], x)
    >>> list(paths)  # () is x itself, (0, 1) is B A x
    [(), (0,), (1,), (0, 1)]
    >>> bool(wl.allclose(sum(paths.values()), (wl.eye(3) + B) @ ((wl.eye(3) + A) @ x), atol=1e-5))
    True

    `functions` are those that the blocks add to their input, or the blocks (`Residual`s without a shortcut of their
    own). For linear functions the network is exactly the sum of its paths, \(\prod_i (I + A_i) = \sum_S \prod_{i \in S}
    A_i\), an ensemble of networks of all depths; otherwise only the first block splits: \(h_2 = f_2(f_1(x) + x) +
    f_1(x) + x\). Book, E.9.13 and E.9.14.
    """
    paths = [_path(i, f) for i, f in enumerate(functions)]
    if 2 ** len(paths) > MOST_PATHS:
        raise InputError(f"residual_paths: {len(paths)} blocks have {2 ** len(paths):,} paths.", "16 blocks or fewer")
    found: dict[tuple[int, ...], Tensor] = {}
    for length in range(len(paths) + 1):
        for chosen in itertools.combinations(range(len(paths)), length):
            found[chosen] = paths[chosen[-1]](found[chosen[:-1]]) if chosen else arrays.asarray(x)
    return found


def _path(i: int, f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    residual = _residual(f)
    if not isinstance(residual, Residual):
        return f
    if residual.shortcut is not None or getattr(f, "post_act", False):
        raise ModuleError(f"residual_paths: block {i} has more than the identity around f.", "blocks x + f(x)")
    return residual._update


def _residual(block: object) -> object:
    return block if isinstance(block, Residual) else getattr(block, "residual", None)


def _lesioned(block: object) -> Module:
    """What stands in for a block: its shortcut, or the identity."""
    residual = _residual(block)
    shortcut = residual.shortcut if isinstance(residual, Residual) else None
    rest: Callable[..., Tensor] = Identity() if shortcut is None else shortcut
    return Sequential(rest, ReLU()) if getattr(block, "post_act", False) else Sequential(rest)
