"""Trying out settings: every combination, or some at random. Book, section 5.2 (hyper-parameters)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..core.arguments import as_function, as_int
from ..core.errors import InputError

Settings: TypeAlias = dict[str, Any]
Space: TypeAlias = Mapping[str, object]  # choices by name: lists of them, a `Range`, or one value


@dataclass(frozen=True)
class Range:
    """Numbers from low to high for a random search; with `log` their logarithm is evenly spread, with `whole` they are
    integers.

    >>> Range(1e-4, 1e-1, log=True)
    Range(low=0.0001, high=0.1, log=True, whole=False)
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.low <= self.high or (self.log and not self.low > 0):
            raise InputError(
                f"Range: low={self.low}, high={self.high}.", "0 < low <= high" if self.log else "low <= high"
            )

    def draw(self, rng: np.random.Generator) -> float:
        """A number at random."""
        high = self.high + self.whole
        if self.log:
            value = math.exp(rng.uniform(math.log(self.low), math.log(high)))
        else:
            value = rng.uniform(self.low, high)
        return min(math.floor(value), int(self.high)) if self.whole else value


def grid_settings(space: Space) -> Iterator[Settings]:
    """All combinations of the choices; the last name varies fastest.

    >>> list(grid_settings({"width": [8, 16], "lr": [0.1]}))
    [{'width': 8, 'lr': 0.1}, {'width': 16, 'lr': 0.1}]
    """
    choices = {name: _choices(name, values) for name, values in _checked("grid_settings", space).items()}
    return (dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values()))


def random_settings(space: Space, n: int, seed: int = 0) -> Iterator[Settings]:
    """n combinations at random, of lists of choices and `Range`s. The first k do not depend on n.

    >>> [sorted(s) for s in random_settings({"width": [8, 16], "lr": Range(1e-4, 1e-1, log=True)}, 2)]
    [['lr', 'width'], ['lr', 'width']]
    """
    space = _checked("random_settings", space)
    rng = np.random.Generator(np.random.Philox(seed))
    for _ in range(as_int("random_settings", "n", n, 1)):
        made: Settings = {}
        for name, values in space.items():
            if isinstance(values, Range):
                made[name] = values.draw(rng)
            else:
                choices = _choices(name, values)
                made[name] = choices[int(rng.integers(len(choices)))]
        yield made


class Trial(NamedTuple):
    """Settings, and the score that they reached; None and the error if they failed."""

    settings: Settings
    score: float | None
    error: str | None = None


class SearchResult(NamedTuple):
    """The best trial, and all of them in the order in which they were made."""

    best: Settings
    score: float
    trials: list[Trial]


def search(
    objective: Callable[..., float],
    space: Space,
    n: int | None = None,
    *,
    maximize: bool = False,
    seed: int = 0,
    callback: Callable[[Trial], object] | None = None,
) -> SearchResult:
    """Call `objective(**settings)` for all combinations of a space, or for n at random, and keep the best.

    >>> result = search(lambda lr, width: (lr - 0.1) ** 2 + width, {"lr": [0.01, 0.1, 1.0], "width": [8, 4]})
    >>> result.best, len(result.trials)
    ({'lr': 0.1, 'width': 4}, 6)

    `space` is a dict from names to lists of choices or, for n at random, `Range`s. The objective
    is a score on validation data, never on the test data, by default a loss. A score of NaN, or settings for which
    the objective raises an ArithmeticError or ValueError, count as failed and are listed; if all fail, it raises. The
    same seed gives the same settings.
    """
    as_function("train.search", objective)
    trials: list[Trial] = []
    best: Trial | None = None
    for settings in grid_settings(space) if n is None else random_settings(space, n, seed):
        try:
            score = float(objective(**settings))
            trial = Trial(settings, None, "the score is NaN") if math.isnan(score) else Trial(settings, score)
        except (ArithmeticError, ValueError) as error:
            trial = Trial(settings, None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        trials.append(trial)
        if trial.score is not None and (
            best is None or best.score is None or (trial.score > best.score if maximize else trial.score < best.score)
        ):
            best = trial
        if callback is not None:
            callback(trial)
    if best is None or best.score is None:
        raise InputError(f"search: all {len(trials)} trials failed; the first: {trials[0].error}.", "other settings")
    return SearchResult(best.settings, best.score, trials)


def _checked(name: str, space: object) -> Space:
    if not isinstance(space, Mapping) or not space:
        raise InputError(f"{name}: {space!r} is not a space of settings.", 'a dict such as {"lr": [0.1, 0.01]}')
    return space


def _choices(name: str, values: object) -> list[object]:
    if isinstance(values, Range):
        raise InputError(f"search: {name} has infinitely many values.", "a list of them, or n= for a random search")
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        return [values]
    found = list(values)
    if not found:
        raise InputError(f"search: there is no choice for {name}.", "at least one value")
    return found
