"""Truncated backpropagation through time: sequences come in pieces, the state goes on, the gradient does not.

A piece is one step of training. What the model keeps of the pieces before is a `Cache`, whose tensors enter the step as
constants, so that memory and time of a step depend on the length of a piece alone. Book, section 13.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..core import trees
from ..core.arguments import as_int
from ..core.errors import InputError, ModuleError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..data.loader import DataLoader
from ..nn.module.module import Module
from ..nn.sequences.cache import Cache
from ..nn.sequences.reading import reads_on
from .feeding import Loader, size_of

Model: TypeAlias = Callable[..., object]  # that reads on
Batch: TypeAlias = Any  # a tree of tensors, (rows, time, ...) most of them
Begins: TypeAlias = Callable[[Batch], ArrayLike]  # from a piece to bools (rows,)
Stepping: TypeAlias = Callable[..., tuple[Tensor, Any]]  # of a model, other things and a batch: the loss, and outputs
CARRY = ("batch", "epoch")


class Truncation:
    r"""How `fit(truncated=...)` cuts sequences: pieces of `steps` steps, and how far a state is carried. Book, 13.2.2.

    >>> import wonderland as wl
    >>> series = wl.series.make_sines(2001, [25, 40])
    >>> x, y = series[:-1].reshape(4, 500, 1), series[1:].reshape(4, 500, 1)  # four rows, each a stretch of the series
    >>> wl.random.seed(0)
    >>> model = wl.models.EchoStateNetwork(1, 30, washout=0)
    >>> history = wl.train.fit(model, "mse_loss", (x, y), epochs=2, batch_size=4, truncated=50, progress=False)
    >>> history.records[-1]["step"], history["loss"][1] < history["loss"][0]
    (20, True)

    Batches are trees of arrays (rows, time, ...). With `carry="batch"`, which `truncated=50` means, the sequences of a
    batch begin with it. With `carry="epoch"` each batch goes on where the one before ended, row by row, until the epoch
    ends: the data are then in order, and all batches have the same number of rows. `begins` is a function of a piece
    that gives bools (rows,): rows where it is true begin anew with that piece, as where a document starts.

    Inside of a piece the gradient is that of the whole, \(\sum_i \tilde s_i\, \partial_\theta f(s_{i-1}, x_i)\), over
    the steps i of the piece; what came before it counts as a constant. A piece as long as the sequences is full
    backpropagation through time.
    """

    def __init__(self, steps: int, carry: str = "batch", begins: Begins | None = None) -> None:
        self.steps = as_int("Truncation", "steps", steps, 1)
        if carry not in CARRY:
            raise InputError(f"Truncation: carry={carry!r}.", '"batch" or "epoch"')
        if begins is not None and not callable(begins):
            raise InputError(f"Truncation: begins is a {type(begins).__name__}.", "a function of a piece")
        self.carry, self.begins = carry, begins

    def __repr__(self) -> str:
        return f"Truncation({self.steps}, carry={self.carry!r}{'' if self.begins is None else ', begins=...'})"


def checked_truncation(given: int | Truncation, model: Module, validation: object, accumulate: int) -> Truncation:
    """What `fit` takes, a number of steps or all settings, if it goes together with the rest."""
    found = given if isinstance(given, Truncation) else Truncation(given)
    if not reads_on(model):
        raise InputError(
            f"truncated: a {type(model).__name__} does not read on.",
            "a model with new_cache, extend and step, as wl.nn.StateLayer and wl.models.GPT have them",
        )
    if accumulate != 1:
        raise InputError(f"truncated: accumulate={accumulate} would cut the rows of the state.", "accumulate=1")
    if found.carry == "epoch" and isinstance(validation, float):
        raise InputError(
            f'truncated: validation={validation} takes examples by chance, and carry="epoch" needs their order.',
            "validation=(x, y)",
        )
    return found


def time_of(batch: object) -> int:
    """How many steps the sequences of a batch have: the second axis of its first tensor with two."""
    for leaf in trees.leaves(batch):
        if len(getattr(leaf, "shape", ())) >= 2:
            return int(leaf.shape[1])
    raise ShapeError("truncated: a batch without sequences.", "tensors (rows, time, ...)")


def pieces(batch: Batch, steps: int) -> Iterator[Batch]:
    """The batch cut along time, its second axis, in pieces of `steps` steps; the last one may be shorter.

    >>> import wonderland as wl
    >>> batch = (wl.zeros((2, 7, 3)), wl.zeros((2, 7)))
    >>> [(x.shape, y.shape) for x, y in wl.train.pieces(batch, 3)]
    [((2, 3, 3), (2, 3)), ((2, 3, 3), (2, 3)), ((2, 1, 3), (2, 1))]

    Tensors that have no such axis go with every piece. A loop of your own, in which the state goes on and the gradient
    is cut, gives the model's cache to `training_step`:

    >>> wl.random.seed(0)
    >>> model = wl.models.EchoStateNetwork(1, 30)
    >>> step, optimizer = wl.train.training_step(), wl.optim.Adam(model)
    >>> x = wl.sin(wl.arange(81) / 5.0).reshape(1, 81, 1)
    >>> cache = model.new_cache(1)
    >>> for piece in wl.train.pieces((x[:, :-1], x[:, 1:]), 20):
    ...     loss, _ = step(model, wl.nn.MSELoss(), optimizer, None, piece, cache)
    >>> cache.lengths.tolist()
    [80]
    """
    steps = as_int("pieces", "steps", steps, 1)
    rows, time = size_of(batch), time_of(batch)
    for start in range(0, time, steps):
        end = min(start + steps, time)
        yield trees.map(
            lambda leaf, a=start, b=end: leaf[:, a:b] if getattr(leaf, "shape", ())[:2] == (rows, time) else leaf, batch
        )


class Pieces:
    """A loader whose batches are pieces of the batches of another one."""

    def __init__(self, source: Loader, truncation: Truncation) -> None:
        if truncation.carry == "epoch" and isinstance(source, DataLoader) and source.shuffle:
            raise InputError(
                'truncated: a shuffled loader, and carry="epoch" needs batches in their order.', "shuffle=False"
            )
        self.source, self.truncation = source, truncation
        self.fresh = True  # whether the last piece begins all its sequences
        self.time = 0  # steps of the whole sequences that it is part of
        self._position = self._skip = 0  # pieces of the epoch, and those of a batch that were given before a resume
        self._inside: dict[str, int] | None = None  # where the source was before the batch under way

    def __iter__(self) -> Iterator[Batch]:
        skip, self._skip = self._skip, 0
        if not skip:
            self._position = 0
        batches = iter(self.source)
        while True:
            before = self.source.state_dict()
            try:
                batch = next(batches)
            except StopIteration:
                break
            self.time = time_of(batch)
            if not self.time:
                raise ShapeError(
                    "truncated: sequences of no steps.", "tensors (rows, time, ...) with a time of 1 or more"
                )
            for i, piece in enumerate(pieces(batch, self.truncation.steps)):
                if i >= skip:
                    self._inside = {**{f"source_{key}": value for key, value in before.items()}, "piece": i + 1}
                    self.fresh = i == 0 and (self.truncation.carry == "batch" or self._position == 0)
                    self._position += 1
                    yield piece
            skip = 0
        self._inside, self._position = None, 0

    def __len__(self) -> int:
        raise TypeError("how many pieces there are is known when they have been cut")

    def size_of(self, batch: object) -> int:
        """The number of tokens in a piece, since the last of a sequence may be shorter."""
        return size_of(batch) * time_of(batch)

    def state_dict(self) -> dict[str, int]:
        place = self._inside
        if place is None:
            place = {**{f"source_{key}": value for key, value in self.source.state_dict().items()}, "piece": 0}
        return {**place, "position": self._position, "steps": self.truncation.steps}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        if missing := {"piece", "position", "steps"} - state.keys():
            raise ModuleError(f"truncated: the state has no {min(missing)!r}.", "that of a run with truncated=...")
        piece, position, steps = (as_int("truncated", key, state[key], 0) for key in ("piece", "position", "steps"))
        if steps != self.truncation.steps:
            raise ModuleError(
                f"truncated: pieces of {self.truncation.steps} steps, and of {steps} before.", f"truncated={steps}"
            )
        kept = {key.removeprefix("source_"): value for key, value in state.items() if key.startswith("source_")}
        self.source.load_state_dict(kept)
        self._skip, self._position = piece, position
        self._inside = {**{f"source_{key}": value for key, value in kept.items()}, "piece": piece}


class Reading:
    """A model that goes on from a cache, called like the model itself; everything else about it is the model's."""

    def __init__(self, model: Model, cache: Cache) -> None:
        self.model, self.cache = model, cache

    def __call__(self, x: object, lengths: ArrayLike | None = None) -> object:
        extend = self.model.extend  # type: ignore[attr-defined]  # a model that reads on has it
        return (extend(x, self.cache) if lengths is None else extend(x, self.cache, lengths))[0]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


class Carried:
    """What is carried from piece to piece: a cache, new when sequences begin, the same until others do."""

    def __init__(self, loader: Pieces) -> None:
        self.loader = loader
        self.cache: Cache | None = None
        self.read = 0  # steps that the cache has seen

    def before(self, model: Module, batch: object) -> Cache:
        """The cache with which the model reads a piece that the loader gave just now."""
        assert reads_on(model)  # as `checked_truncation` saw
        rows, time = size_of(batch), time_of(batch)
        if self.cache is None or self.loader.fresh:
            self.cache, self.read = model.new_cache(rows, self._room(time)), 0
        elif self.cache.rows != rows:
            raise ShapeError(
                f"truncated: a batch of {rows} rows after one of {self.cache.rows}, whose state goes on.",
                'batches of one size (drop_last=True), or carry="batch"',
            )
        begins = self.loader.truncation.begins
        if begins is not None:
            which = np.asarray(begins(batch))
            if which.shape != (rows,) or which.dtype != np.bool_:
                raise ShapeError(f"truncated: begins gave {which.dtype}{list(which.shape)}.", f"bools ({rows},)")
            if which.any():
                self.cache.restart(which, model.new_cache(rows, self._room(time)))
        self.read += time
        self.cache.reserve(self.read)
        return self.cache

    def with_cache(self, step: Stepping) -> Stepping:
        """A step (model, ..., batch) that also gets the cache."""

        def stepped(model: Module, *rest: object) -> tuple[Tensor, object]:
            return step(model, *rest, self.before(model, rest[-1]))

        return stepped

    def _room(self, time: int) -> int:
        return self.loader.time if self.loader.truncation.carry == "batch" else time

    # --- what a checkpoint keeps

    def tensors(self) -> dict[str, Tensor]:
        return {} if self.cache is None else self.cache.state_dict()

    def state_dict(self) -> dict[str, int] | None:
        """What else a cache like this one needs, None if there is none."""
        return None if self.cache is None else {"read": self.read}

    def load(self, model: Module, state: Mapping[str, int] | None, tensors: Mapping[str, Tensor]) -> None:
        """Take up what a checkpoint kept."""
        if state is None or not reads_on(model):
            self.cache, self.read = None, 0
            return
        read = as_int("truncated", "read", state.get("read"), 0)
        if "lengths" not in tensors or tensors["lengths"].ndim != 1:
            raise ModuleError("truncated: the state of the sequences is missing.", "another checkpoint")
        cache = model.new_cache(tensors["lengths"].shape[0])
        room = max((t.shape[1] for t in tensors.values() if t.ndim > 1), default=0)
        if cache.capacity is not None and read > room:
            raise ModuleError(f"truncated: {read} steps in a cache of {room} places.", "another checkpoint")
        cache.reserve(read)
        cache.load_state_dict(tensors)
        self.cache, self.read = cache, read
