"""The sum over processes: where the programs of several processes meet."""

from __future__ import annotations

from ..core.context import Group
from ..core.primitive import LINEAR, Aval, Primitive
from ..core.typing import Array


def _all_sum(x: Array, group: Group) -> Array:
    return group.sum(x)


# Every process gets the sum, so it is its own transpose: what each of them makes of the sum comes back to all that
# went into it. As an effect it is neither left out nor moved, so all processes meet in the same order.
all_sum: Primitive = Primitive(
    "all_sum",
    _all_sum,
    lambda x, group: Aval(x.shape, x.dtype),
    jvp=(LINEAR,),
    transpose=(lambda ct, x, group: all_sum(ct, group=group),),
    batch=lambda args, batched, group: all_sum(args[0], group=group),
    foreign=True,
    effect=True,
)
