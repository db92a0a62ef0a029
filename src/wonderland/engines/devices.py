"""Where engines that have devices keep values: in the host's memory, or on one of `wl.devices()`."""

from __future__ import annotations

from ..core.cell import Cell
from ..core.errors import InputError
from ..core.interpreter import read
from ..core.tensor import Distant, Tensor, Tracer, read_only, wrap
from .choosing import get_backend
from .engine import far_engine


def devices() -> list[str]:
    """The devices of the engine that is chosen: "cpu" alone, or on XLA all that JAX sees, such as "gpu:0".

    Of several processes each has its own, whose numbers are unique among all; meshes are made of those of all.

    >>> import wonderland as wl
    >>> with wl.using_backend("numpy"):
    ...     wl.devices()
    ['cpu']
    """
    found = far_engine(get_backend())
    return ["cpu"] if found is None else list(found.devices())


def moved(x: Tensor, device: str) -> Tensor:
    """A tensor with the value and the record of x, on a device; "cpu" is the host's memory."""
    found = far_engine(get_backend())
    if device != "cpu":
        if found is None:
            raise InputError(
                f"to_device: the engine {get_backend()!r} has no device {device!r}.",
                'the device "cpu", or wl.set_backend("xla"), whose devices are those of wl.devices()',
            )
        found.check_device(device)
    if isinstance(x, Cell):
        x = read(x)
    if isinstance(x, Tracer):
        return x  # the engine that runs the program says where
    there = wrap(read_only(x._data)) if found is None or device == "cpu" else found.moved(x, device)
    there._node = x._node
    return there


def placed_like(x: Tensor, other: Tensor | None) -> Tensor:
    """The value of x where another tensor of its shape is: on its device, or split over several as that one is."""
    found = far_engine(get_backend())
    if found is None or not isinstance(other, Distant) or other.far is None or other.shape != x.shape:
        return x
    there: Tensor = found.brought(x, other.far.sharding)
    return there
