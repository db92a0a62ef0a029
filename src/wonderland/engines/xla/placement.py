"""Where values are: a device, or several of a mesh over which arrays are split."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

from ...core.errors import InputError
from ...core.primitive import Aval
from ...core.tensor import Distant, Tensor
from ...core.typing import Array

Value = Array | jax.Array


@functools.cache
def devices() -> dict[str, jax.Device]:
    """The devices of this process by name: those that JAX takes by default first, then processors."""
    found = jax.local_devices()
    if found[0].platform != "cpu":
        found += jax.local_devices(backend="cpu")
    return {f"{device.platform}:{device.id}": device for device in found}


def named(name: str) -> jax.Device:
    """The device of that name; "gpu" is the first one."""
    kind, _, number = name.partition(":")
    found = devices().get(f"{'gpu' if kind == 'cuda' else kind}:{number or 0}")
    if found is None:
        raise InputError(f"device: there is no {name!r} here.", " or ".join(map(repr, devices())))
    return found


class Placement:
    """Where a program runs: `whole` is how values are placed that are not split."""

    def __init__(self, whole: Sharding) -> None:
        self.whole = whole
        mesh = whole.mesh if isinstance(whole, NamedSharding) else None
        self.shares = dict(mesh.shape).get("data", 1) if mesh is not None else 1
        self._split = NamedSharding(mesh, PartitionSpec("data")) if mesh is not None and self.shares > 1 else None

    def split(self, value: Tensor | Aval) -> Sharding:
        """How a batch is placed: by its rows, over the axis "data" of a mesh, if it divides them."""
        divides = self._split is not None and value.shape and value.shape[0] and value.shape[0] % self.shares == 0
        return self._split if divides and self._split is not None else self.whole

    def like(self, value: Tensor, others: Iterable[Tensor]) -> Sharding:
        """How state is placed that comes to a mesh: as other state of its shape, which it follows, or whole."""
        if isinstance(self.whole, NamedSharding) and value.shape:
            for other in others:
                if type(other) is Distant and isinstance(other.far, jax.Array) and other.shape == value.shape:
                    return other.far.sharding
        return self.whole

    def has(self, value: jax.Array) -> bool:
        """Whether a value is where the program runs."""
        return value.sharding.device_set == self.whole.device_set


@functools.lru_cache(maxsize=64)
def _on(whole: Sharding) -> Placement:
    return Placement(whole)


def placement(values: Iterable[Value], device: str | None) -> Placement:
    """Where a program runs that takes these values.

    The mesh of the first that is on one; else the device that was chosen, or that of the first on any.
    """
    first = None
    for value in values:
        if isinstance(value, jax.Array):
            if isinstance(value.sharding, NamedSharding):
                return _on(NamedSharding(value.sharding.mesh, PartitionSpec()))
            first = value if first is None else first
    if device is not None:
        return _on(SingleDeviceSharding(named(device)))
    if first is not None:
        return _on(SingleDeviceSharding(next(iter(first.sharding.device_set))))
    return _on(SingleDeviceSharding(jax.local_devices()[0]))


def bring(value: Value, where: Sharding) -> jax.Array:
    """A copy of a value there, with memory of its own. 64 bits stay 64 bits."""
    with jax.enable_x64(True):
        return jax.device_put(value if isinstance(value, jax.Array) else np.asarray(value), where, may_alias=False)


def over_mesh(axes: Sequence[str], sizes: Sequence[int], split: Sequence[str | tuple[str, ...] | None]) -> Sharding:
    """How an array is placed whose axes are split over axes of a mesh."""
    count, there = math.prod(sizes), list(devices().values())
    there = [device for device in there if device.platform == there[0].platform]
    if count > len(there):
        raise InputError(
            f"shard: a mesh of {count} devices, of which there are {len(there)}: {', '.join(list(devices())[:8])}.",
            f"a smaller mesh; to try it on one machine, XLA_FLAGS=--xla_force_host_platform_device_count={count}",
        )
    return NamedSharding(Mesh(np.asarray(there[:count]).reshape(sizes), tuple(axes)), PartitionSpec(*split))
