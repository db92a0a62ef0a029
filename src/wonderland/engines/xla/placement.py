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
from ...core.tensor import Distant, Tensor, beyond
from ...core.typing import Array
from . import processes

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
    kind = "gpu" if kind == "cuda" else kind
    first = next((device for device in devices().values() if device.platform == kind), None)
    found = devices().get(f"{kind}:{number}") if number else first
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

    @functools.cached_property
    def spans(self) -> bool:
        """Whether some of its devices belong to other processes."""
        return not self.whole.is_fully_addressable

    @functools.cached_property
    def share(self) -> tuple[int, int, int]:
        """(i, n, parts): the devices of this process need part i of n of the rows of a batch, if `parts` divides them.

        All of them, (0, 1, parts), if its devices are not next to each other along the axis "data".
        """
        if self.shares == 1 or not isinstance(self.whole, NamedSharding):
            return 0, 1, self.shares
        mesh = self.whole.mesh
        mine = np.vectorize(lambda device: device.process_index == jax.process_index(), otypes=[bool])(mesh.devices)
        along = mesh.axis_names.index("data")
        here = np.flatnonzero(mine.any(axis=tuple(i for i in range(mine.ndim) if i != along)))
        first, count = int(here[0]), len(here)
        if here[-1] - first + 1 == count and first % count == 0 and self.shares % count == 0:
            return first // count, self.shares // count, self.shares
        return 0, 1, self.shares

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
    """A copy of a value there, with memory of its own. 64 bits stay 64 bits.

    What goes from the processes to a mesh of all their devices has to be the same in all of them.
    """
    with jax.enable_x64(True):
        if isinstance(value, jax.Array) and not value.is_fully_addressable:
            if where.is_fully_addressable:  # from the mesh to a device of this process
                if not value.is_fully_replicated:
                    raise beyond(value)
                value = value.addressable_data(0)
            return jax.device_put(value, where, may_alias=False)
        if where.is_fully_addressable:
            return jax.device_put(value if isinstance(value, jax.Array) else np.asarray(value), where, may_alias=False)
        array = np.asarray(value)
        processes.compare(array)
        return jax.make_array_from_callback(array.shape, where, lambda window: array[window].copy())


def assembled(rows: Array, first: int, count: int, where: Sharding) -> jax.Array:
    """An array of `count` rows there, of which every process brings its own, from number `first` on."""

    def part(window: tuple[slice, ...] | None) -> Array:
        assert window is not None  # it has an axis
        low, high, _ = window[0].indices(count)
        return rows[(slice(low - first, high - first), *window[1:])].copy()

    with jax.enable_x64(True):
        return jax.make_array_from_callback((count, *rows.shape[1:]), where, part)


def over_mesh(axes: Sequence[str], sizes: Sequence[int], split: Sequence[str | tuple[str, ...] | None]) -> Sharding:
    """How an array is placed whose axes are split over axes of a mesh."""
    grid = np.asarray(_chosen(math.prod(sizes))).reshape(sizes)
    return NamedSharding(Mesh(grid, tuple(axes)), PartitionSpec(*split))


def _chosen(count: int) -> list[jax.Device]:
    """So many devices: the first ones here; of several processes equally many from each, in the order of processes."""
    kind = jax.local_devices()[0].platform
    if not processes.joined():
        there = [device for device in devices().values() if device.platform == kind]
        if count > len(there):
            raise InputError(
                f"shard: a mesh of {count} devices, of which there are {len(there)}: {', '.join(list(devices())[:8])}.",
                f"a smaller mesh; to try it on one machine, XLA_FLAGS=--xla_force_host_platform_device_count={count}",
            )
        return there[:count]
    by_process: dict[int, list[jax.Device]] = {}
    for device in sorted(jax.devices(), key=lambda device: (device.process_index, device.id)):
        by_process.setdefault(device.process_index, []).append(device)
    each, rest = divmod(count, len(by_process))
    fewest = min(map(len, by_process.values()))
    if rest or each > fewest:
        raise InputError(
            f"shard: a mesh of {count} devices over {len(by_process)} processes, which have {fewest} or more each.",
            f"a multiple of {len(by_process)} devices, up to {fewest * len(by_process)}: as many in each process",
        )
    return [device for theirs in by_process.values() for device in theirs[:each]]
