"""The training loop: `fit`, and the `Trainer` that it is made of. Book, sections 3.2, 5.3 and 9.2."""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

import numpy as np

from .. import arrays
from ..core import trees
from ..core.dtypes import DType, as_dtype, float32, is_half
from ..core.errors import ArgumentError, DTypeError, InputError, NonFiniteError
from ..core.naming import keyword_hint
from ..core.tensor import Tensor
from ..core.typing import DTypeLike
from ..nn.module.module import Module
from ..optim.adam import Adam
from ..optim.averaging import Averaged
from ..optim.by_name import optimizer_named
from ..optim.loss_scaling import GradScaler, scaler_for
from ..optim.optimizer import Optimizer
from ..optim.schedules import Schedule
from ..random.streams import default_stream
from ..storage.locking import locked
from . import progress as progress_of
from .callbacks import Callback, Callbacks
from .checkpoints import CheckpointFolder
from .evaluation import Metrics, evaluate, named_metrics, plain
from .feeding import Data, Loader, as_loader, hold_out, size_of
from .history import History, Record
from .resuming import resume
from .step import Loss, Objective, as_loss, evaluation_step, supervised, training_step
from .together import Together, group_for
from .truncation import Carried, Pieces, Truncation, checked_truncation
from .watching import look_at_first_batch

INTERRUPTED = "interrupted"
SMALLEST_FACTOR = 2.0**-10  # of a scaled loss: with a smaller one, it is not the scaling that makes gradients infinite


class Trainer:
    """A model, its data, and all that changes while it is trained. `fit` makes one and runs it.

    >>> import wonderland as wl
    >>> x = wl.linspace(-1.0, 1.0, 64).reshape(64, 1)
    >>> trainer = wl.train.Trainer(
    ...     wl.nn.Linear(1, 1), wl.nn.MSELoss(), (x, 3 * x), optimizer=wl.optim.Adam, lr=0.1, progress=False
    ... )
    >>> history = trainer.fit(epochs=60)
    >>> trainer.epoch, trainer.step, f"{history['loss'][-1]:.3f}"
    (60, 120, '0.000')

    The arguments are those of `fit`. To write your own loop, take its parts: `wl.train.training_step`,
    `wl.train.evaluate`, `wl.train.CheckpointFolder`.
    """

    def __init__(
        self,
        model: Module,
        loss: Loss,
        data: Data,
        *,
        optimizer: Optimizer | type[Optimizer] | str | None = None,
        lr: float | None = None,
        batch_size: int = 32,
        validation: Data | float | None = None,
        metrics: Metrics = None,
        schedule: Schedule | None = None,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        regularizer: Callable[[Any], Tensor] | None = None,
        accumulate: int = 1,
        truncated: int | Truncation | None = None,
        average: Averaged | None = None,
        precision: DTypeLike | None = None,
        loss_scale: float | str | GradScaler | None = None,
        callbacks: Iterable[Callback] = (),
        checkpoint: str | os.PathLike[str] | CheckpointFolder | None = None,
        checkpoint_every: int | None = None,
        resume: bool = True,
        monitor: str | None = None,
        seed: int = 0,
        progress: str | bool | None = None,
        objective: Objective = supervised,
        jit: bool = True,
        check: bool = True,
        distributed: bool | None = None,
    ) -> None:
        self.together = Together(group_for(distributed), model, jit)
        cut = None if truncated is None else checked_truncation(truncated, model, validation, accumulate)
        if isinstance(validation, float):
            data, validation = hold_out(data, validation, seed)
        self.model, self.loss_function = model, as_loss(loss)
        in_order = cut is not None and cut.carry == "epoch"
        self.loader: Loader | Pieces = as_loader(data, batch_size, shuffle=not in_order, seed=seed)
        self.validation = None if validation is None else as_loader(validation, 256, shuffle=False, seed=seed)
        self.together.share(self.loader, self.validation, cut=cut)
        self.optimizer = _optimizer(optimizer, model, lr)
        self.metrics = named_metrics(metrics, self.loss_function)
        self.schedule: Any = schedule  # a function, or an object such as Plateau with a state of its own
        self.average = average
        self.precision = _precision(precision)
        self.scaler = scaler_for("fit", loss_scale, self.precision)
        self.callbacks = Callbacks(callbacks, writing=self.together.first)
        if checkpoint is not None and not isinstance(checkpoint, CheckpointFolder):
            checkpoint = CheckpointFolder(checkpoint)
        self.checkpoints, self.checkpoint_every, self.resume = checkpoint, checkpoint_every, resume
        self.monitor = monitor or ("loss" if self.validation is None else "validation_loss")
        self.check = check
        self.progress = progress_of.make(progress if self.together.first else False)
        self.progress.running = self._running_metrics
        self.measures_training = bool(self.metrics) and accumulate == 1  # pieces of a batch have no outputs as a whole
        step_function = training_step(
            objective,
            clip_norm=clip_norm,
            clip_value=clip_value,
            regularizer=regularizer,
            accumulate=accumulate,
            precision=self.precision,
            scaler=self.scaler,
            outputs=self.measures_training,
            compiled=jit,
            group=self.together.group if self.together.parts else None,
        )
        self.objective, self.evaluation_function = objective, evaluation_step(objective, jit, self.precision)
        self.carried: Carried | None = None  # the state between pieces of sequences
        self.size_of: Callable[[object], int] = size_of
        if self.together.parts:
            step_function, self.size_of = self.together.step(step_function, self.loader)
        if cut is not None:
            self.loader = Pieces(self.loader, cut)
            self.carried, self.size_of = Carried(self.loader), self.loader.size_of
            step_function = self.carried.with_cache(step_function)
        self.step_function = step_function

        self.history = History()
        self.epoch = self.step = 0  # how many are done
        self.loss = math.nan  # of the last step
        self.batch: Any = None
        self._total, self._count = 0.0, 0  # of the losses of the epoch, and of its examples
        self._stop: str | None = None
        self._saved_at = -1

    # --- the loop

    def fit(self, epochs: int = 10) -> History:
        """Train until so many epochs are done, counting those before a resume; see `wl.train.fit`."""
        if isinstance(epochs, bool) or not isinstance(epochs, (int, np.integer)) or epochs < 1:
            raise InputError(f"fit: epochs={epochs!r}.", "a number of epochs, 1 or more")
        with contextlib.ExitStack() as held:
            if (folder := self.checkpoints) is not None:
                self.together.group.by_first("fit", lambda: held.enter_context(locked(folder.path)))
            self._stop = self.history.stopped = None
            if self.resume and folder is not None and self.step == 0:
                resume(self, folder)
            self.together.agree_on_start(self, epochs)
            held.enter_context(self.together.on_mesh(self))
            self.callbacks.tell("on_fit_start", self)
            with _stopping_on_interrupt(self) as interrupted, contextlib.closing(self.progress):
                while self.epoch < epochs and self._stop is None:
                    self._run_epoch(epochs)
                if interrupted or self._stop == INTERRUPTED:  # here, or in another process
                    self.save()
                    raise KeyboardInterrupt(f"after epoch {self.epoch}, step {self.step}")
            self.history.stopped = self._stop
            self.callbacks.tell("on_fit_end", self)
        return self.history

    def _run_epoch(self, epochs: int) -> None:
        fresh = self._count == 0  # not in the middle of an epoch that a checkpoint interrupted
        if fresh:
            for metric in self.metrics.values():
                metric.reset()
            self.callbacks.tell("on_epoch_start", self)
        else:  # go on in the middle; a loader would start a new epoch
            self.loader.load_state_dict(self.loader.state_dict())
        good = self._snapshot()
        self.model.train()
        total = _length(self.loader)
        self.progress.epoch(self.epoch + 1, epochs, total, 0 if fresh else self.loader.state_dict()["position"])
        start = time.perf_counter()
        model, loss, optimizer, average = self.model, self.loss_function, self.optimizer, self.average
        measured = self.metrics.values() if self.measures_training else ()
        tell, show = self.callbacks.listeners["on_step_end"], self.progress.step
        every = self.checkpoint_every if self.checkpoints is not None else None
        for batch in self.loader:
            if self.step == 0 and self.check and self.together.can_look(model):
                look_at_first_batch(model, loss, self.objective, batch)
            if self.schedule is not None:
                optimizer.lr = self.schedule(self.step)
            self.batch = batch
            batch = self.together.spread(batch, self.loader)
            found, outputs = self.step_function(model, loss, optimizer, average, batch)
            self.loss = value = float(found)
            if not math.isfinite(value):
                self._restore(good)
                raise _not_finite(value, self.epoch, self.step, self.batch)
            if self.scaler is not None:
                self._look_at(self.scaler)
            size = self.size_of(batch)
            self._total += value * size
            self._count += size
            self.step += 1
            for metric in measured if self.together.has_rows(self.loader) else ():
                metric.update(outputs, self.together.whole(batch[1]))
            for listener in tell:
                listener(self)
            show(value)
            if every is not None and self.step % every == 0:
                self.save()
            self._stop = self.together.stop(self._stop)
            if self._stop is not None and not _was_last(self.loader, total):
                return  # in the middle of the epoch
        if not self._count:
            raise InputError(
                "fit: the data have no batches.", "data that are not empty; drop_last=False if they are few"
            )
        try:
            self._finish_epoch(start)
        except NonFiniteError:  # the last step was one too many
            self._restore(good)
            raise

    def _finish_epoch(self, start: float) -> None:
        record: Record = {"epoch": self.epoch + 1, "step": self.step, "loss": self._total / self._count}
        if self.measures_training:
            self.together.add_up(self.metrics)
            record |= {name: plain(metric.compute()) for name, metric in self.metrics.items()}
        if self.validation is not None:
            record |= {f"validation_{name}": plain(value) for name, value in self.evaluate(self.validation).items()}
        record["lr"] = float(self.optimizer.lr)
        record["seconds"] = time.perf_counter() - start
        self.epoch += 1
        self._total, self._count = 0.0, 0
        self.history.records.append(record)
        observe = getattr(self.schedule, "step", None)  # a schedule such as plateau, which looks at the results
        if observe is not None:
            before = self.schedule(self.step)
            observe(record[self.monitor])
            if (now := self.schedule(self.step)) != before:
                self.mark(f"learning rate {now:.3g}")
        self.callbacks.tell("on_epoch_end", self, record)
        self._stop = self.together.stop(self._stop)
        self.progress.end(record)
        if self.checkpoints is not None:
            self.save()

    def _running_metrics(self) -> dict[str, float]:
        """The metrics over the epoch's batches so far, those that are one number."""
        if not self.measures_training:
            return {}
        found = {name: metric.compute() for name, metric in self.metrics.items()}
        return {name: value for name, value in found.items() if isinstance(value, float)}

    def _look_at(self, scaler: GradScaler) -> None:
        """Say that a step was left out; end a run in which no step is possible any more."""
        if bool(scaler.finite):
            return
        factor = scaler.get_scale()
        if factor < SMALLEST_FACTOR:
            raise NonFiniteError(
                f"fit: the gradients are not finite in epoch {self.epoch + 1}, step {self.step + 1}, though the loss "
                f"is scaled by no more than {factor:.3g}.",
                'a smaller learning rate, clip_norm=1.0, precision="bfloat16"',
            )
        text = f"step left out: gradients are not finite; loss scaled by {factor:.6g}"
        self.mark(text)
        self.progress.note(f"{text} (epoch {self.epoch + 1}, step {self.step + 1})")

    # --- what callbacks use

    def stop(self, reason: str) -> None:
        """End the run after this step; the history keeps the reason."""
        self._stop = reason

    def mark(self, text: str) -> None:
        """Note an event, such as a reduced learning rate, in the history."""
        self.history.events.append({"step": self.step, "epoch": self.epoch, "text": text})

    def evaluate(self, data: Data) -> dict[str, Any]:
        """The loss and the metrics on other data, with the averaged weights if there are some."""
        kept = {name: metric.state_dict() for name, metric in self.metrics.items()}
        step, size = self.evaluation_function, size_of
        if self.carried is not None:
            carried = Carried(Pieces(as_loader(data, 256, shuffle=False, seed=0), self.carried.loader.truncation))
            data, step, size = carried.loader, carried.with_cache(step), carried.loader.size_of
        with self.as_measured():
            found = evaluate(
                self.model, self.loss_function, data, metrics=self.metrics, step=step, size=size, together=self.together
            )
        for name, metric in self.metrics.items():
            metric.load_state_dict(kept[name])
        return found

    def as_measured(self) -> contextlib.AbstractContextManager[object]:
        """Inside `with trainer.as_measured():` the model has the weights that validation sees: the averaged ones."""
        return contextlib.nullcontext() if self.average is None else self.average.swapped(self.model)

    # --- nothing is lost

    def save(self) -> str | None:
        """Write a checkpoint of this step, unless there is one; the path of its record."""
        if self.checkpoints is None or self._saved_at == self.step:
            return None
        tensors = {f"model.{name}": t for name, t in self.model.state_dict().items()}
        tensors |= {f"optimizer.{name}": t for name, t in self.optimizer.state_dict().items()}
        if self.average is not None:
            tensors |= {f"average.{name}": t for name, t in self.average.state_dict().items()}
        if self.scaler is not None:
            tensors |= {f"scaler.{name}": t for name, t in self.scaler.state_dict().items()}
        if self.carried is not None:
            tensors |= {f"carried.{name}": t for name, t in self.carried.tensors().items()}
        self.together.add_up(self.metrics, keep=True)
        for name, metric in self.metrics.items():
            tensors |= {f"metrics.{name}.{key}": arrays.asarray(v) for key, v in metric.state_dict().items()}
        states = {}
        for name, callback in zip(self.callbacks.names(), self.callbacks.all, strict=True):
            states[name] = callback.state_dict()
            tensors |= {f"callbacks.{name}.{key}": t for key, t in callback.tensors().items()}
        record = {
            "model": type(self.model).__name__,
            "optimizer": type(self.optimizer).__name__,
            "epoch": self.epoch,
            "step": self.step,
            "stopped": None if self._stop == INTERRUPTED else self._stop,
            "running": {"total": self._total, "count": self._count},
            "loader": self.loader.state_dict(),
            "carried": None if self.carried is None else self.carried.state_dict(),
            "random": np.asarray(default_stream.value).tolist(),
            "schedule": self.schedule.state_dict() if hasattr(self.schedule, "state_dict") else None,
            "callbacks": states,
            "history": self.history.state_dict(),
        }
        folder, name = self.checkpoints, f"step-{self.step:08}"
        path = folder.save(name, tensors, record, self.together.group)
        self._saved_at = self.step
        return path

    def _snapshot(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return self.model.state_dict(), self.optimizer.state_dict()

    def _restore(self, good: tuple[dict[str, Tensor], dict[str, Tensor]]) -> None:
        self.model.load_state_dict(good[0])
        self.optimizer.load_state_dict(good[1])
        if self.carried is not None:
            self.carried.cache = None  # its states were computed by what is given up


def fit(model: Module, loss: Loss, data: Data, epochs: int = 10, **settings: Any) -> History:
    """Train a model: minimize the mean loss over the data, epoch by epoch; returns the history.

    >>> import wonderland as wl
    >>> wl.random.seed(0)
    >>> x = wl.random.normal((256, 2))
    >>> y = (x[:, 0] * x[:, 1] > 0).astype(wl.int64)
    >>> model = wl.models.MLP(2, [32], 2)
    >>> history = wl.train.fit(
    ...     model, "cross_entropy", (x, y), epochs=60, optimizer="adam", lr=0.02, metrics=["accuracy"], progress=False
    ... )
    >>> history["accuracy"][-1] > 0.9
    True

    - `model`: a module. `loss`: a module or a function `(outputs, targets) -> loss`, or a name such as
      "cross_entropy" or "mse".
    - `data`: a tuple `(x, y)` of arrays, frames of numbers (pandas, polars), dicts of columns or lists; a frame and the
      name of its target, `(frame, "price")`; a dataset, a `wl.data.DataLoader`, or a list of batches. `batch_size` and
      `seed` are for those that are not batched yet; they are shuffled anew each epoch.
    - `optimizer`: an optimizer, its class or its name ("adamw"), which then get the learning rate `lr`; Adam if nothing
      is said.
    - `validation`: data like the others, or a share of them to hold out; measured after each epoch.
    - `metrics`: of `wl.metrics` or names of them, as `["accuracy"]`, measured on the training batches and on the
      validation data.
    - `schedule`: a function from the step to the learning rate, as in `wl.optim.schedules`.
    - `clip_norm`, `clip_value`: limits of the gradients. `regularizer`: a function of the model that is added to the
      loss. `accumulate`: in how many pieces a batch goes through the model. `average`: a `wl.optim.EMA` that follows
      the model and stands in for it in validation.
    - `precision`: "bfloat16" or "float16": the model and the loss run in `wl.autocast`, parameters stay as they are.
      `loss_scale`: "dynamic" (for float16 if nothing is said), a number, or a `wl.optim.GradScaler`; a step whose
      gradients are not finite is left out, and the history says so.
    - `truncated`: cut sequences in pieces of so many steps, each a step of training; the state goes on from piece to
      piece, the gradient does not (truncated backpropagation through time). See `wl.train.Truncation`.
    - `callbacks`: see `wl.train.Callback`. `monitor`: what callbacks and schedules watch if not told otherwise.
    - `checkpoint`: a folder. A checkpoint is written after each epoch, and every `checkpoint_every` steps; if the
      folder has one, the run goes on from there (unless `resume=False`), to the same bits as one without a break.
    - `progress`: "bar", "lines", False, or None to choose by the terminal.
    - `objective`: `(model, loss, batch) -> (loss, outputs)` for batches that are not pairs; `jit=False` runs eagerly.
    - `check`: look at the gradients of the first batch and warn of what cannot be learned.
    - `distributed`: train with the other processes that `wonderland launch` has started, or that have joined by
      `wl.distributed.init()`; False trains alone. `batch_size` is that of all of them, and each has its rows.

    A loss that is not finite ends the run with an error that says where it comes from; the model is then as it was
    before that epoch. Ctrl-C ends it after the step, with a checkpoint.
    """
    known = list(inspect.signature(Trainer).parameters)
    for name in settings:
        if name not in known:
            others = [other for other in [*known, "epochs"] if other not in settings]
            hint = "data=(x, y)" if name in ("x", "y") else keyword_hint(name, others)
            raise ArgumentError(f"fit: there is no setting {name!r}.", hint or f"one of {', '.join(known)}")
    return Trainer(model, loss, data, **settings).fit(epochs)


def _optimizer(optimizer: Any, model: Module, lr: float | None) -> Optimizer:
    if optimizer is None:
        optimizer = Adam
    if isinstance(optimizer, str):
        return optimizer_named(optimizer, model, lr)
    if isinstance(optimizer, type):
        return optimizer(model) if lr is None else optimizer(model, lr=lr)
    if lr is not None:
        raise InputError(
            "fit: lr is for an optimizer that is still to be made.", "optimizer.lr = ..., or the class as `optimizer`"
        )
    return optimizer


def _precision(precision: DTypeLike | None) -> DType | None:
    """The type of `autocast`, None for float32."""
    low = float32 if precision is None else as_dtype(precision)
    if low != float32 and not is_half(low):
        raise DTypeError(f"fit: precision={precision!r}.", '"float32", "bfloat16" or "float16"')
    return None if low == float32 else low


def _length(loader: Loader | Pieces) -> int | None:
    try:
        return len(loader)
    except TypeError:  # a stream
        return None


def _was_last(loader: Loader | Pieces, total: int | None) -> bool:
    """Whether the batch was the last of its epoch, so that the loader may as well come to its end."""
    return total is not None and loader.state_dict()["position"] == total


def _not_finite(value: float, epoch: int, step: int, batch: object) -> NonFiniteError:
    """The error for a loss that is NaN or infinite, with a look at where it may come from."""
    for path, leaf in trees.flatten_with_paths(batch)[0]:
        values = np.asarray(leaf)
        if values.dtype.kind in "fc" and not (finite := np.isfinite(values)).all():
            where = np.argwhere(~finite)[0]
            name = {"0": "inputs", "1": "targets"}.get(".".join(map(str, path)), ".".join(map(str, path)))
            cause = f"the {name} of the batch have {values[tuple(where)]} at {tuple(where.tolist())}"
            remedy = "data without NaN and infinities; wl.data.DataReport finds them"
            break
    else:
        cause = "the data of the batch are finite, so the parameters or the loss overflowed"
        remedy = "a smaller learning rate, clip_norm=1.0; jit=False inside `with wl.debug.nans():` finds the operation"
    return NonFiniteError(
        f"fit: the loss is {value} in epoch {epoch + 1}, step {step + 1}: {cause}. "
        f"The model is as it was when the epoch began.",
        remedy,
    )


@contextlib.contextmanager
def _stopping_on_interrupt(trainer: Trainer) -> Iterator[list[int]]:
    """Ctrl-C lets the step end first, so that what is saved is whole; a second one ends at once."""
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield caught  # only the main thread hears signals
        return
    before = signal.getsignal(signal.SIGINT)

    def hear(number: int, frame: FrameType | None) -> None:
        if caught:
            raise KeyboardInterrupt
        caught.append(number)
        trainer.stop(INTERRUPTED)

    if before is not signal.default_int_handler:  # somebody else takes care of it
        yield caught
        return
    signal.signal(signal.SIGINT, hear)
    try:
        yield caught
    finally:
        signal.signal(signal.SIGINT, before)
