"""Rejection: propose until accepted, for many elements at once, traced or not."""

from __future__ import annotations

from collections.abc import Callable

from ..arrays import all as all_
from ..arrays import asarray, full, where
from ..core.dtypes import DType, bool_, int32
from ..core.tensor import Tensor
from ..transforms.control.loops import while_loop
from .keys import fold_in, pair

# the samplers accept at least half of their proposals, so an element is left over with probability below 2^-100
_ROUNDS = 100


def first_accepted(
    propose: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], key: Tensor, shape: tuple[int, ...], dtype: DType
) -> Tensor:
    """For each element the first proposal that is accepted; 0 after 100 rounds without one.

    `propose` maps two keys to values and to whether they are accepted, both of shape key.shape[:-1] + shape.
    The rounds end when all elements have a value. More rounds would not change it, so the numbers do not
    depend on who else is drawn.
    """
    full_shape = key.shape[:-1] + shape

    def unfinished(state: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        return (state[0] < _ROUNDS) & ~all_(state[2])

    def step(state: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        count, value, done = state
        proposal, accepted = propose(*pair(fold_in(key, count)))
        return count + 1, where(done | ~accepted, value, proposal), done | accepted

    start = asarray(0, dtype=int32), full(full_shape, 0, dtype=dtype), full(full_shape, False, dtype=bool_)
    return while_loop(unfinished, step, start)[1]
