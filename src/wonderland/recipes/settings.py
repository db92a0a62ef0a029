"""The settings of a run: which model, which data, and how to train. As Python, as TOML, and as `key=value`."""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..core.arguments import shown
from ..core.errors import FileError, InputError
from ..optim import Plateau, schedules
from ..optim.by_name import OPTIMIZERS
from ..optim.schedules import Schedule
from ..storage.parsing import LONGEST_TOML, parse_toml
from .catalogue import entry_for
from .choosing import suited_model
from .inputs import Options

SCHEDULES = ("constant", "cosine", "one_cycle", "step", "plateau")
WEIGHTS = ("none", "balanced")
FREEZE = ("none", "backbone")
PRECISIONS = ("float32", "bfloat16", "float16")
ONE_CYCLE_WARMUP = 0.3
Value = TypeVar("Value")


def said(default: Value, meaning: str, allowed: str, sound: Callable[[Value], bool] = lambda value: True) -> Value:
    """A setting: its default, a sentence, what is allowed in words, and whether a value is."""
    return field(default=default, metadata={"meaning": meaning, "allowed": allowed, "sound": sound})


def _chosen(default: str, meaning: str, names: Iterable[str]) -> str:
    return said(default, meaning, f"one of {', '.join(names)}", lambda value: value in names)


_FROM_0 = ("0 or more", lambda value: value >= 0)
_FROM_1 = ("1 or more", lambda value: value >= 1)
_SHARE = ("from 0 to less than 1", lambda value: 0 <= value < 1)


@dataclass(frozen=True)
class TrainSettings:
    """How to train. Zero or false switches a thing off. `wonderland list settings` shows what each one means."""

    epochs: int = said(30, "passes through the training data", *_FROM_1)
    steps: int = said(
        0, "steps altogether, in epochs of equal length; 0: an epoch is a pass through the data", "0, or epochs or more"
    )
    batch_size: int = said(
        64, "examples in a step; 0: by their number, from 64 for 10,000 and fewer up to 4096", *_FROM_0
    )
    lr: float = said(3e-3, "the highest learning rate", "above 0", lambda value: value > 0)
    optimizer: str = _chosen("adamw", "what makes a step of a gradient", OPTIMIZERS)
    weight_decay: float = said(
        0.01, "how fast weights shrink: as a part of the gradient, or beside it (adamw, lion, muon)", *_FROM_0
    )
    schedule: str = _chosen("one_cycle", "how the learning rate changes from step to step", SCHEDULES)
    warmup: float = said(
        0.0, "the share of the steps in which the rate rises; 0.3 for one_cycle if nothing is said", *_SHARE
    )
    loss: str = said(
        "auto",
        "what becomes small: cross entropy for classes, the squared error in units of the deviation for numbers",
        'auto, or a loss of wl.nn.functional, as "huber_loss"',
    )
    class_weights: str = _chosen(
        "none", "whether examples of rare classes count more in the loss: balanced gives all classes the same", WEIGHTS
    )
    label_smoothing: float = said(0.0, "the share of a target that is spread over all classes", *_SHARE)
    clip_norm: float = said(0.0, "the largest norm of a gradient; 0: any", *_FROM_0)
    precision: str = _chosen(
        "float32", "the type that products are computed in; float16 with a loss that is scaled", PRECISIONS
    )
    average: float = said(
        0.0, "the decay of an exponential average of the weights, which is kept; 0: the last weights are", *_SHARE
    )
    augment: bool = said(False, "small shifts, turns and zooms of images", "true or false")
    noise: float = said(0.0, "the standard deviation of noise on the inputs", *_FROM_0)
    validation: float = said(0.1, "the share of the training data that is held out to watch the run", *_SHARE)
    patience: int = said(
        0, "epochs without improvement until the run stops and takes the best weights; 0: it never stops", *_FROM_0
    )
    freeze: str = _chosen("none", "what is not trained: backbone is all that model.from=RUN has brought", FREEZE)
    checkpoint_every: int = said(0, "steps between checkpoints; there is always one after an epoch", *_FROM_0)
    seed: int = said(0, "another one gives other splits, weights and orders", "a whole number")

    def check(self) -> None:
        """Refuse what makes no sense."""
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            sound = self.steps == 0 or self.steps >= self.epochs if entry.name == "steps" else True
            if not sound or not entry.metadata["sound"](value):
                raise InputError(f"train.{entry.name} = {value!r}.", entry.metadata["allowed"])


_DEFAULTS = {f.name: f.default for f in dataclasses.fields(TrainSettings)}


@dataclass
class Settings:
    """A run: `model` and `data` have a `name` and the options of what makes them, `train` is as in `TrainSettings`.

    >>> settings = Settings.of(model="mlp", data="digits", changes=["lr=0.01", "model.hidden=[64, 32]"])
    >>> settings.model, settings.train["lr"]
    ({'name': 'mlp', 'hidden': [64, 32]}, 0.01)
    """

    model: dict[str, Any] = field(default_factory=lambda: {"name": "cnn"})
    data: dict[str, Any] = field(default_factory=lambda: {"name": "digits"})
    train: dict[str, Any] = field(default_factory=dict)  # only what was said; the model has defaults of its own
    chosen: str = field(default="", compare=False)  # which model was chosen by the data, and why

    @classmethod
    def of(
        cls,
        model: str | None = None,
        data: object = None,
        file: str | os.PathLike[str] | None = None,
        changes: Iterable[str] = (),
    ) -> Settings:
        """Settings from a TOML file, then names, then changes such as `lr=0.01` or `model.hidden=[64, 32]`.

        Data are a name, a path, or what a program has in memory: a DataFrame, columns by name, arrays. With data and
        without a model, the model is one that suits the data; `chosen` then says why.
        """
        table = {} if file is None else _read(file)
        settings = cls.from_dict(table)
        if model is not None and model != settings.model.get("name"):
            settings.model = {"name": model}
        data = os.fspath(data) if isinstance(data, os.PathLike) else data
        if data is not None and not (isinstance(data, str) and data == settings.data.get("name")):
            settings.data = {"name": data}
        usual = data is None and file is None and model is not None
        if usual:
            settings.data = {}
        named = model is not None or "model" in table
        if by_data := not named and (data is not None or "data" in table):
            settings.model = {}
        for change in changes:
            settings.change(change)
        if model is None and file is None and "from" in settings.model:
            settings.model = {n: v for n, v in settings.model.items() if n != "name"}  # it is that of the other run
        if by_data and settings.model.keys().isdisjoint({"name", "from"}):
            name, why = suited_model(settings.data)
            settings.model, settings.chosen = {"name": name, **settings.model}, f"{name}: the data are {why}"
        if usual and "name" not in settings.data:  # which may depend on the task that the changes say
            settings.data = {"name": _usual_data(settings.model), **settings.data}
        return settings

    @classmethod
    def from_dict(cls, table: Mapping[str, object]) -> Settings:
        """Settings from the sections `model`, `data` and `train`; the first two may be names alone."""
        settings = cls()
        for section, values in table.items():
            if section in ("model", "data") and isinstance(values, str):
                values = {"name": values}
            if section not in ("model", "data", "train") or not isinstance(values, Mapping):
                raise InputError(f"settings: there is no section {section!r}.", "[model], [data] and [train]")
            if section != "train":
                setattr(settings, section, {**getattr(settings, section), **values})
            for key, value in values.items():
                if section == "train":
                    settings.set("train", key, value)
        return settings

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The three sections as plain data."""
        return {"model": dict(self.model), "data": dict(self.data), "train": dict(self.train)}

    def change(self, text: str) -> None:
        """Apply `key=value`: the value is written as in TOML (a text may go without quotes); `lr` means `train.lr`."""
        key, equals, value = (part.strip() for part in text.partition("="))
        section, dot, name = key.partition(".")
        if not dot:
            section, name = "train", key
        if not equals or not name or section not in ("model", "data", "train"):
            raise InputError(f"settings: {text!r}.", "key=value, such as lr=0.01 or model.hidden=[64,32]")
        self.set(section, name, as_value(value))

    def set(self, section: str, name: str, value: object) -> None:
        """Change one setting; those of `train` must exist and have the right type.

        A name may lead into a table: `columns.age` of `data` is the entry `age` of its `columns`, whatever dots follow.
        """
        if section == "train":
            value = _checked(name, value)
        owner = getattr(self, section)
        table, dot, inner = name.partition(".")
        if dot and section != "train":
            entries = owner.get(table, {})
            if not isinstance(entries, Mapping) or not inner:
                raise InputError(
                    f"settings: {section}.{name}: {section}.{table} is no table.", f"{section}.{table}=..."
                )
            name, value = table, {**entries, inner: value}
        owner[name] = value

    def training(self, defaults: Options) -> TrainSettings:
        """All training settings: what was said, else the defaults given, else those of `TrainSettings`."""
        known = {**defaults, **self.train}
        if "epochs" in self.train and "steps" not in self.train:
            known.pop("steps", None)  # who counts epochs means passes through the data
        if known.get("schedule", TrainSettings.schedule) == "one_cycle":
            known.setdefault("warmup", ONE_CYCLE_WARMUP)
        found = TrainSettings(**known)
        found.check()
        return found

    def suited(self, how: TrainSettings, unsuited: Mapping[str, str]) -> TrainSettings:
        """The settings without those that would do nothing here; one that was asked for is refused with the reason."""
        for name, reason in unsuited.items():
            if name in self.train and self.train[name] not in (0, getattr(TrainSettings, name)):
                raise InputError(f"train.{name} = {self.train[name]!r} would do nothing: {reason}.", f"without {name}")
        return dataclasses.replace(how, **{name: getattr(TrainSettings, name) for name in unsuited})


def _usual_data(model: Options) -> str:
    """The data that a model is trained on if nothing is said."""
    found = entry_for(model, {}).data
    if found is None:
        raise InputError(f"the model {model['name']} has no data of its own.", "--data with the path of a file")
    return found


def _checked(name: str, value: object) -> object:
    if name not in _DEFAULTS:
        near = difflib.get_close_matches(name, _DEFAULTS, 1)
        raise InputError(
            f"settings: there is no train.{name}.", f"{near[0]}?" if near else f"one of {', '.join(_DEFAULTS)}"
        )
    kind = type(_DEFAULTS[name])
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind:
        raise InputError(f"settings: train.{name} = {value!r} is no {kind.__name__}.", f"such as {_DEFAULTS[name]!r}")
    return value


def as_value(text: str) -> Any:
    """A value as it is written in TOML; what is none, such as a bare word, is a text. So are nan and inf: no setting
    is such a number, and one, on_missing, is such a word."""
    try:
        found = parse_toml(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    except ValueError as error:
        raise InputError(f"settings: the value {shown(text)}: {error}.", "a value as in TOML") from None
    value = found["value"]
    plain = found.keys() == {"value"} and _is_plain(value)
    return value if plain and not (isinstance(value, float) and not math.isfinite(value)) else text


def _is_plain(value: object) -> bool:
    """Whether a value can be written as JSON, as the settings of a run are: TOML has dates as well."""
    if isinstance(value, (list, dict)):
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (str, bool, int, float))


def _read(file: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        with open(file, "rb") as stream:
            found = parse_toml(stream.read(LONGEST_TOML + 1))
    except OSError as error:
        raise FileError(f"cannot read {os.fspath(file)}: {error.strerror}.", "the path of a TOML file") from None
    except ValueError as error:
        raise InputError(f"{os.fspath(file)} is no TOML: {error}.", "[train] and key = value lines") from None
    if not _is_plain(found):
        raise InputError(f"{os.fspath(file)} has dates, which are no settings.", "texts and numbers")
    return found


def schedule_of(train: TrainSettings, steps: int) -> Schedule:
    """The function from the step to the learning rate: up in the share `warmup` of the steps, then as it is named."""
    if train.schedule == "one_cycle":  # which rises in its own way
        return schedules.one_cycle(train.lr, max(steps, 2), pct_start=train.warmup)
    warm = max(round(train.warmup * steps), 1) if train.warmup else 0
    if train.schedule == "plateau":
        return Plateau(train.lr, patience=3, warmup_steps=warm)
    rest = max(steps - warm, 1)
    rates = {
        "constant": lambda: schedules.constant(train.lr),
        "cosine": lambda: schedules.cosine(train.lr, rest),
        "step": lambda: schedules.step(train.lr, max(rest // 3, 1)),
    }[train.schedule]()
    return schedules.warmup(warm, rates) if warm else rates
