"""Draws from a density that is known up to a constant, such as a posterior: Markov chains. Book, section 3.3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import arrays, random
from ..arrays.conversion import as_real
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, KeyLike
from ..random.streams import take_key
from ..transforms.control.loops import scan
from ..transforms.jit.jit import jit
from ..transforms.reverse import value_and_grad


@dataclass
class Chain:
    """The states of a chain (steps, *shape), and the share of proposals that were accepted.

    >>> import wonderland as wl
    >>> chain = wl.distributions.metropolis(wl.distributions.Normal().log_prob, 0.0, 50)
    >>> chain.samples.shape, 0.0 <= chain.acceptance <= 1.0
    ((50,), True)
    """

    samples: Tensor
    acceptance: float


def metropolis(
    log_density: Callable[[Tensor], ArrayLike],
    start: ArrayLike,
    steps: int,
    step_size: float = 1.0,
    burn_in: int = 0,
    key: KeyLike = None,
) -> Chain:
    r"""Random steps \(x' = x + s\varepsilon\), accepted with probability \(\min(1, p(x')/p(x))\).

    >>> import wonderland as wl
    >>> chain = wl.distributions.metropolis(lambda x: -0.5 * (x - 3.0) ** 2, 0.0, 4000, 2.0, 100, wl.random.key(0))
    >>> f"{chain.samples.mean():.0f} {chain.samples.std():.0f}"
    '3 1'

    `log_density` may lack its constant. Successive states are dependent: their number says less than it seems. The
    first `burn_in` steps are thrown away. About a quarter to a half accepted is a good size of steps.
    """
    return _chain("metropolis", log_density, start, steps, step_size, burn_in, key, drift=False, adjust=True)


def langevin(
    log_density: Callable[[Tensor], ArrayLike],
    start: ArrayLike,
    steps: int,
    step_size: float = 0.1,
    burn_in: int = 0,
    key: KeyLike = None,
    adjust: bool = True,
) -> Chain:
    r"""Noisy gradient ascent \(x' = x + \frac{s^2}{2}\nabla\ln p(x) + s\varepsilon\).

    >>> import wonderland as wl
    >>> chain = wl.distributions.langevin(lambda x: -0.5 * (x - 3.0) ** 2, 0.0, 4000, 1.0, 100, wl.random.key(0))
    >>> f"{chain.samples.mean():.0f} {chain.samples.std():.0f}"
    '3 1'

    With `adjust` steps are accepted or not so that the density is exact; without, it is off by the order of \(s^2\).
    """
    return _chain("langevin", log_density, start, steps, step_size, burn_in, key, drift=True, adjust=adjust)


def _chain(
    name: str,
    log_density: Callable[[Tensor], ArrayLike],
    start: ArrayLike,
    steps: int,
    step_size: float,
    burn_in: int,
    key: KeyLike,
    drift: bool,
    adjust: bool,
) -> Chain:
    if steps < 1 or burn_in < 0:
        raise InputError(f"{name}: steps={steps}, burn_in={burn_in}.", "at least one step, and burn_in >= 0")
    if not step_size > 0:
        raise InputError(f"{name}: step_size={step_size}.", "step_size > 0")
    x = as_real(name, arrays.asarray(start))
    total = steps + burn_in

    def look(x: Tensor) -> tuple[Tensor, Tensor]:
        """The log-density and the drift at a point."""
        if not drift:
            return arrays.sum(log_density(x)), arrays.zeros_like(x)
        value, slope = value_and_grad(lambda x: arrays.sum(log_density(x)))(x)
        return value, 0.5 * step_size * step_size * slope

    value, slope = look(x)
    if not bool(arrays.isfinite(value)):
        raise InputError(f"{name}: the log-density at the start is {float(value)}.", "a start where it is finite")
    first, second = random.split(take_key(name, key))
    noise = random.normal((total, *x.shape), key=first, dtype=x.dtype)
    chance = arrays.log(1 - random.uniform((total,), key=second, dtype=x.dtype))

    def step(
        state: tuple[Tensor, ...], drawn: tuple[Tensor, Tensor]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, Tensor]]:
        x, value, slope = state
        epsilon, threshold = drawn
        new = x + slope + step_size * epsilon
        new_value, new_slope = look(new)
        ratio = new_value - value
        if drift:  # the way back is not as likely as the way there
            back = (x - new - new_slope) / step_size
            ratio = ratio + 0.5 * (arrays.sum(epsilon * epsilon) - arrays.sum(back * back))
        accepted = (ratio > threshold) if adjust else (ratio == ratio)
        state = tuple(arrays.where(accepted, a, b) for a, b in ((new, x), (new_value, value), (new_slope, slope)))
        return state, (state[0], accepted)

    @jit
    def run(x: Tensor, value: Tensor, slope: Tensor, noise: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
        return scan(step, (x, value, slope), (noise, chance))[1]

    samples, accepted = run(x, value, slope, noise, chance)
    return Chain(samples[burn_in:], float(arrays.mean(arrays.astype(accepted[burn_in:], "float64"))))
