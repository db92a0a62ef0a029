"""Loss scaling: gradients in float16 that are neither lost below its range nor beyond it."""

from __future__ import annotations

from typing import TypeVar

from .. import arrays
from ..core import dtypes, trees
from ..core.arguments import as_int, as_number
from ..core.cell import Cell
from ..core.errors import DTypeError, GradientError, InputError
from ..core.interpreter import read
from ..core.tensor import Tensor
from ..nn.module.module import Module
from ..nn.module.parameter import Buffer
from ..transforms.imperative import no_grad
from .optimizer import Optimizer

Grads = TypeVar("Grads")
LARGEST = 2.0**24  # of the factor: float32 has room above it for the loss and its derivatives


class GradScaler(Module):
    r"""Multiplies a loss by a factor s before it is differentiated, and divides the gradients by it afterwards.

    >>> import wonderland as wl
    >>> model, scaler = wl.nn.Linear(2, 1), wl.optim.GradScaler()
    >>> optimizer = wl.optim.SGD(model, lr=0.1)
    >>> @wl.jit
    ... def step(model, optimizer, scaler, x, y):
    ...     def loss_of(model):
    ...         with wl.autocast("float16"):
    ...             return scaler.scale(wl.nn.functional.mse_loss(model(x), y))
    ...     scaler.step(optimizer, wl.grad(loss_of)(model))
    ...     scaler.update()
    >>> step(model, optimizer, scaler, wl.ones((4, 2)), wl.full((4, 1), 1e6))  # derivatives beyond 65504
    >>> scaler.get_scale(), int(scaler.skipped), int(optimizer.count)
    (32768.0, 1, 0)

    float16 knows no numbers below \(6\cdot10^{-8}\) and none above 65504, and many derivatives are smaller. Where a
    gradient is not finite, `step` leaves the parameters and the optimizer as they were and counts the step in
    `skipped`; `update` then makes the factor smaller by `backoff_factor`. After `growth_interval` steps in a row that
    were finite it grows by `growth_factor`. With `dynamic=False` it stays at `init_scale`. Nothing of this is a branch
    of Python, so all of it may be inside a compiled step. The state is that of a module: `state_dict()`,
    `load_state_dict()`. In the imperative style, `scaler.scale(loss).backward()`, `scaler.step(optimizer)`,
    `scaler.update()`. Book, section 6.4.2.
    """

    factor: Buffer
    steady: Buffer  # finite steps since the factor has changed
    finite: Buffer  # whether the last gradients were
    skipped: Buffer  # steps so far

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        *,
        dynamic: bool = True,
        enabled: bool = True,
    ) -> None:
        start = as_number("GradScaler", "init_scale", init_scale)
        if not 0 < start <= LARGEST:
            raise InputError(f"GradScaler: init_scale={init_scale}.", f"a factor above 0, at most {LARGEST:.0f}")
        self.growth_factor = float(as_number("GradScaler", "growth_factor", growth_factor))
        self.backoff_factor = float(as_number("GradScaler", "backoff_factor", backoff_factor))
        if not self.growth_factor >= 1:
            raise InputError(f"GradScaler: growth_factor={growth_factor}.", "1 or more")
        if not 0 < self.backoff_factor <= 1:
            raise InputError(f"GradScaler: backoff_factor={backoff_factor}.", "above 0, at most 1")
        self.growth_interval = as_int("GradScaler", "growth_interval", growth_interval, 1)
        self.dynamic, self.enabled = bool(dynamic), bool(enabled)
        self.factor = Buffer(float(start) if enabled else 1.0, dtypes.float32)
        self.steady, self.skipped = Buffer(0, dtypes.int64), Buffer(0, dtypes.int64)
        self.finite = Buffer(True, dtypes.bool_)

    def get_scale(self) -> float:
        """The factor as it is now."""
        return float(self.factor)

    def scale(self, loss: Tensor) -> Tensor:
        """The loss times the factor, in float32 if the loss has fewer digits."""
        if not self.enabled:
            return loss
        loss = arrays.astype(loss, dtypes.promote_types(loss.dtype, dtypes.float32))
        return loss * arrays.astype(read(self.factor), dtypes.real_of(loss.dtype))

    def unscale(self, grads: Grads) -> Grads:
        """The gradients of a scaled loss, divided by the factor; `finite` then says whether all of them are."""
        if not self.enabled:
            return grads
        leaves, structure = trees.flatten(grads)
        if any(g.dtype == dtypes.float16 for g in leaves):
            raise DTypeError(
                "GradScaler.unscale: gradients in float16 lose what the scaling has saved.",
                'parameters in float32, and wl.autocast("float16") around the forward pass',
            )
        with no_grad():
            # a power of two, by default: the division is exact
            made = [g / arrays.astype(read(self.factor), dtypes.real_of(g.dtype)) for g in leaves]
            finite = arrays.asarray(True)
            for g in made:
                finite = arrays.logical_and(finite, arrays.all(arrays.isfinite(g)))
            self.finite.assign(finite)
        return trees.unflatten(structure, made)

    def step(self, optimizer: Optimizer, grads: object = None, *, unscaled: bool = False) -> None:
        """`optimizer.step` with the gradients of the scaled loss, or nothing at all if one of them is not finite.

        Without `grads`, those that `backward()` left; `unscaled=True` for gradients that `unscale` gave, as for
        clipping in between.
        """
        if grads is None:
            grads = [p.grad for p in _parameters(optimizer) if p.grad is not None]
            if not grads:
                raise GradientError(
                    "GradScaler.step: no parameter has a gradient.", "scaler.scale(loss).backward() first"
                )
            with_gradients = [p for p in _parameters(optimizer) if p.grad is not None]
            for p, g in zip(with_gradients, grads if unscaled else self.unscale(grads), strict=True):
                p.grad = g
            self._guarded(optimizer, None)
        else:
            self._guarded(optimizer, grads if unscaled else self.unscale(grads))

    def _guarded(self, optimizer: Optimizer, grads: object) -> None:
        """A step after which everything is as before if the gradients were not finite."""
        if not self.enabled:
            optimizer.step(grads)
            return
        cells = [*_parameters(optimizer), optimizer.count, *optimizer._buffers_of_rule()]
        before = [read(cell) for cell in cells]
        optimizer.step(grads)
        with no_grad():
            for cell, old in zip(cells, before, strict=True):
                cell.assign(arrays.where(self.finite, cell, old))
            self.skipped.assign(self.skipped + arrays.astype(~self.finite, dtypes.int64))

    def update(self) -> None:
        """The factor for the next step; once after every `step`."""
        if not (self.enabled and self.dynamic):
            return
        with no_grad():
            steady = arrays.where(self.finite, self.steady + 1, 0)
            grown = steady >= self.growth_interval
            larger = arrays.minimum(self.factor * self.growth_factor, LARGEST)
            smaller = self.factor * self.backoff_factor
            self.factor.assign(arrays.where(self.finite, arrays.where(grown, larger, self.factor), smaller))
            self.steady.assign(arrays.where(grown, 0, steady))


def _parameters(optimizer: Optimizer) -> list[Cell]:
    return [p for group in optimizer.groups for p in group.params.values() if p.trainable]


def scaler_for(name: str, loss_scale: float | str | GradScaler | None, low: dtypes.DType | None) -> GradScaler | None:
    """The scaler that a setting means: a factor that stays, "dynamic", one of the user's; None: for float16 alone."""
    if loss_scale is None:
        return GradScaler() if low == dtypes.float16 else None
    if isinstance(loss_scale, GradScaler):
        return loss_scale
    if loss_scale == "dynamic":
        return GradScaler()
    if isinstance(loss_scale, str):
        raise InputError(f"{name}: loss_scale={loss_scale!r}.", '"dynamic", a number, or a wl.optim.GradScaler')
    return GradScaler(loss_scale, dynamic=False)
