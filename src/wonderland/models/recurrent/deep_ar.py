"""DeepAR: forecasts as distributions, by one recurrent network for many related series. Notes, section 5.4.4.

    z_{t-1} / scale, covariates x_t --> recurrent layers --> parameters of p(z_t | z_1, ..., z_{t-1}) --> draw z_t
                                                                ^ times scale, which each series has of its own

It learns the likelihood of what was observed, and forecasts by drawing paths: each value that is drawn is fed back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.arguments import as_int, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...distributions import Distribution, NegativeBinomial, Normal, Poisson, StudentT
from ...nn.layers.linear import Linear
from ...nn.module.module import Module
from ...nn.sequences.token_masks import as_lengths, as_token_mask, silenced
from ...random.keys import split
from ...random.streams import take_key
from ...transforms.control.loops import scan
from .blocks import CellLike, recurrent_stack

__all__ = ["DeepAR", "SampledForecast"]

SMALL = 1e-4  # the least deviation, rate or dispersion


def _gaussian(o: Tensor, scale: Tensor) -> Distribution:
    return Normal(o[..., 0] * scale, (arrays.softplus(o[..., 1]) + SMALL) * scale)


def _student_t(o: Tensor, scale: Tensor) -> Distribution:
    return StudentT(2 + arrays.softplus(o[..., 2]), o[..., 0] * scale, (arrays.softplus(o[..., 1]) + SMALL) * scale)


def _negative_binomial(o: Tensor, scale: Tensor) -> Distribution:
    spread = (arrays.softplus(o[..., 1]) + SMALL) / arrays.sqrt(scale)
    return NegativeBinomial.from_mean((arrays.softplus(o[..., 0]) + SMALL) * scale, spread)


def _poisson(o: Tensor, scale: Tensor) -> Distribution:
    return Poisson((arrays.softplus(o[..., 0]) + SMALL) * scale)


# how many numbers a likelihood needs, and how they become a distribution in the units of the series
LIKELIHOODS: dict[str, tuple[int, Callable[[Tensor, Tensor], Distribution]]] = {
    "gaussian": (2, _gaussian),
    "student_t": (3, _student_t),
    "negative_binomial": (2, _negative_binomial),
    "poisson": (1, _poisson),
}


class SampledForecast(NamedTuple):
    """Paths (paths, batch, steps) that may come, and what they say together."""

    paths: Tensor

    @property
    def mean(self) -> Tensor:
        """The mean of the paths, (batch, steps)."""
        return arrays.mean(self.paths, axis=0)

    def quantiles(self, q: ArrayLike) -> Tensor:
        """Below which a share q of the paths lies at each step, (batch, steps); several: (q, batch, steps)."""
        return arrays.quantile(self.paths, arrays.asarray(q, dtype=self.paths.dtype), axis=0)

    def interval(self, share: float = 0.8) -> tuple[Tensor, Tensor]:
        """Between which bounds the middle share of the paths lies, (batch, steps) each."""
        if not 0 < share < 1:
            raise InputError(f"interval: share={share}.", "a number between 0 and 1, such as 0.8")
        return self.quantiles((1 - share) / 2), self.quantiles((1 + share) / 2)

    def coverage(self, values: ArrayLike, share: float = 0.8) -> Tensor:
        """The share of the values (batch, steps) that came to lie in the interval: about `share` of good forecasts."""
        low, high = self.interval(share)
        y = as_real("coverage", values)
        if y.shape != low.shape:
            raise ShapeError(f"coverage: values of shape {y.shape} of forecasts {low.shape}.", f"{low.shape}")
        return arrays.mean(arrays.astype((y >= low) & (y <= high), low.dtype))


class DeepAR(Module):
    r"""\(h_t = f(h_{t-1}, z_{t-1}/\nu, x_t),\ z_t \sim p(z \mid \theta(h_t), \nu)\) for series (batch, time).

    >>> import wonderland as wl
    >>> model = wl.models.DeepAR("gaussian", hidden_size=8, covariates=2, key=wl.random.key(0))
    >>> z, x = wl.ones((4, 30)), wl.ones((4, 37, 2))
    >>> model.nll(z, x[:, :30]).shape, model(z, x[:, :30]).mean.shape
    ((), (4, 30))
    >>> forecast = model.forecast(z, 7, covariates=x, paths=50, key=wl.random.key(1))
    >>> forecast.paths.shape, forecast.quantiles([0.1, 0.5, 0.9]).shape
    ((50, 4, 7), (3, 4, 7))

    One model is trained on many related series. Each has a scale \(\nu\) of its own, the mean of its absolute values:
    inputs are divided by it, and the distribution is scaled back, so that series of all sizes have a part in the loss.
    With `scaling=False` it is 1. `covariates` x (batch, time, n) are known for all times, those of z_t at t: hours,
    holidays, prices, or the number of a series one-hot.

    `model(z, x)` is the distribution of each z_t given the values before it (a `wl.distributions.Distribution`), and
    `model.nll(z, x)` the mean of \(-\log p(z_t)\), the loss. `likelihood`, of which the last two are for counts:

    | | \(\theta\) |
    |---|---|
    | gaussian | \(\mu = \nu o_1,\ \sigma = \nu\,\mathrm{softplus}(o_2)\) |
    | student_t | the same, and \(2 + \mathrm{softplus}(o_3)\) degrees of freedom: for values far out |
    | negative_binomial | \(\mu = \nu\,\mathrm{softplus}(o_1)\), dispersion \(\mathrm{softplus}(o_2)/\sqrt\nu\) |
    | poisson | the rate \(\nu\,\mathrm{softplus}(o_1)\) |

    Salinas, Flunkert and Gasthaus (2017). Notes, section 5.4.4.
    """

    def __init__(
        self,
        likelihood: str = "gaussian",
        hidden_size: int = 40,
        depth: int = 2,
        *,
        cell: CellLike = "lstm",
        covariates: int = 0,
        scaling: bool = True,
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "DeepAR"
        if likelihood not in LIKELIHOODS:
            raise InputError(f"{name}: likelihood={shown(likelihood)}.", f"one of {', '.join(LIKELIHOODS)}")
        self.likelihood, self.scaling = likelihood, bool(scaling)
        self.covariates = as_int(name, "covariates", covariates, 0)
        h, layers = as_int(name, "hidden_size", hidden_size, 1), as_int(name, "depth", depth, 1)
        keys = split(take_key(name, key), 2)
        sizes = (1 + self.covariates, *[h] * layers)
        self.stack = recurrent_stack(name, cell, sizes, dropout, False, dtype, keys[0])
        self.head = Linear(h, LIKELIHOODS[likelihood][0], dtype=dtype, key=keys[1])

    # --- learning

    def scale(self, z: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        r"""\(\nu\) of each series (batch,): the mean of \(|z_t|\) over real times; 1 if that is 0."""
        values, real = self._series(z, token_mask, lengths)
        if not self.scaling:
            return arrays.ones(values.shape[:1], dtype=values.dtype)
        count = values.shape[1] if real is None else arrays.astype(arrays.sum(real, axis=-1), values.dtype)
        found = arrays.sum(arrays.abs(values), axis=-1) / arrays.maximum(count, 1)
        return arrays.where(found > 0, found, 1.0)

    def forward(
        self,
        z: ArrayLike,
        covariates: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        scale: ArrayLike | None = None,
    ) -> Distribution:
        values, real = self._series(z, token_mask, lengths)
        nu = self.scale(values, real) if scale is None else self._given_scale(scale, values)
        before = arrays.concat([arrays.zeros_like(values[:, :1]), values[:, :-1]], axis=1)
        u = self._inputs(before, nu, self._known(covariates, values.shape, real))
        return self._distribution(self.stack(u, token_mask=real), nu)

    def nll(
        self,
        z: ArrayLike,
        covariates: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        context: int | None = None,
    ) -> Tensor:
        r"""The mean of \(-\log p(z_t \mid z_1, \dots, z_{t-1})\) over real times.

        With a `context` the scale is that of the first so many times alone, as it is when the rest is forecast.
        """
        values, real = self._series(z, token_mask, lengths)
        first = values.shape[1] if context is None else as_int("DeepAR", "context", context, 1)
        nu = self.scale(values[:, :first], None if real is None else real[:, :first])
        losses = -self(values, covariates, real, None, nu).log_prob(values)
        if real is None:
            return arrays.mean(losses)
        kept = arrays.where(real, losses, 0.0)
        return arrays.sum(kept) / arrays.maximum(arrays.sum(real), 1)

    # --- forecasts

    def forecast(
        self,
        past: ArrayLike,
        steps: int,
        *,
        covariates: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        paths: int = 100,
        key: KeyLike = None,
    ) -> SampledForecast:
        """Paths of the next `steps` values after series (batch, time), of which the first `lengths` are real.

        The covariates (batch, time + steps, n) are those of the past and of what follows it; with lengths, those of
        what follows a series come right after its own.
        """
        values, real = self._series(past, None, lengths)
        rows, time = values.shape
        count, many = as_int("DeepAR", "steps", steps, 1), as_int("DeepAR", "paths", paths, 1)
        if not time:
            raise ShapeError(f"{self._describe()}: a past of shape {values.shape}.", "one time or more")
        ends = arrays.full((rows,), time) if lengths is None else as_lengths("DeepAR", lengths, (rows, time))
        nu = self.scale(values, real)
        before = arrays.concat([arrays.zeros_like(values[:, :1]), values[:, :-1]], axis=1)
        known = self._known(covariates, (rows, time + count), None)
        u = self._inputs(before, nu, None if known is None else silenced(known[:, :time], real))
        _, cache = self.stack.extend(u, self.stack.new_cache(rows, time + count), ends)
        # one row for each path: all paths of the first series, then those of the second
        who = arrays.repeat(arrays.arange(rows), many)
        cache.reorder(who)
        last = arrays.take_along_axis(values, arrays.maximum(ends - 1, 0)[:, None], axis=1)[:, 0]
        last = arrays.take(arrays.where(ends > 0, last, 0.0), who, axis=0)
        nu = arrays.take(nu, who, axis=0)
        ahead = None
        if known is not None:
            places = (ends[:, None] + arrays.arange(count))[..., None]
            ahead = arrays.moveaxis(arrays.take(arrays.take_along_axis(known, places, axis=1), who, axis=0), 1, 0)

        def draw(z: Tensor, now: tuple[Tensor, Tensor | None]) -> tuple[Tensor, Tensor]:
            one, x = now
            u = self._inputs(z[:, None], nu, None if x is None else x[:, None])
            h, _ = self.stack.extend(u, cache)
            new = arrays.astype(self._distribution(h[:, 0][:, None], nu).sample((), one)[:, 0], z.dtype)
            return new, new

        _, drawn = scan(draw, last, (split(take_key("DeepAR", key), count), ahead))  # (steps, rows * paths)
        return SampledForecast(arrays.transpose(arrays.reshape(drawn, (count, rows, many)), (2, 1, 0)))

    # --- parts

    def _series(
        self, z: ArrayLike, token_mask: ArrayLike | None, lengths: ArrayLike | None
    ) -> tuple[Tensor, Tensor | None]:
        """Values (batch, time) with zeros at padding, and which of them are real."""
        values = as_real(self._describe(), z)
        if values.ndim != 2:
            raise ShapeError(f"{self._describe()}: series of shape {values.shape}.", "(batch, time); z[None] for one")
        real = as_token_mask(self._describe(), values.shape, token_mask, lengths)
        values = arrays.astype(values, dtypes.promote_types(values.dtype, self.head.weight.dtype))
        return silenced(values, real), real

    def _given_scale(self, scale: ArrayLike, values: Tensor) -> Tensor:
        nu = as_real(self._describe(), scale)
        if nu.shape != values.shape[:1]:
            raise ShapeError(f"{self._describe()}: a scale of shape {nu.shape}.", f"{values.shape[:1]}, one per series")
        return nu

    def _known(self, covariates: ArrayLike | None, shape: tuple[int, ...], real: Tensor | None) -> Tensor | None:
        """The covariates (batch, time, n), zeros at padding."""
        if covariates is None and not self.covariates:
            return None
        x = None if covariates is None else as_real(self._describe(), covariates)
        if x is None or x.shape != (*shape, self.covariates):
            raise ShapeError(
                f"{self._describe()}: covariates of shape {None if x is None else x.shape} for times {tuple(shape)}.",
                f"{(*shape, self.covariates)}" if self.covariates else "none: the model has no covariates",
            )
        return silenced(x, real)

    def _inputs(self, before: Tensor, nu: Tensor, known: Tensor | None) -> Tensor:
        """What the layers see: the value before in units of the scale, and the covariates."""
        u = (before / nu[:, None])[..., None]
        return u if known is None else arrays.concat([u, arrays.astype(known, u.dtype)], axis=-1)

    def _distribution(self, h: Tensor, nu: Tensor) -> Distribution:
        return LIKELIHOODS[self.likelihood][1](self.head(h), nu[:, None])

    def extra_repr(self) -> str:
        return f"{self.likelihood!r}, covariates={self.covariates}"
