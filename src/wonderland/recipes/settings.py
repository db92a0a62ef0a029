"""The settings of a run: which model, which data, and how to train. As Python, as TOML, and as `key=value`."""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.arguments import shown
from ..core.errors import FileError, InputError
from ..optim import Plateau, schedules
from ..optim.by_name import OPTIMIZERS
from ..optim.schedules import Schedule
from ..storage.parsing import LONGEST_TOML, parse_toml

SCHEDULES = ("constant", "cosine", "one_cycle", "step", "plateau")
ONE_CYCLE_WARMUP = 0.3


@dataclass(frozen=True)
class TrainSettings:
    """How to train. Zero or false switches a thing off."""

    epochs: int = 30
    steps: int = 0  # altogether, in epochs of equal length; 0: an epoch is one pass through the data
    batch_size: int = 64
    lr: float = 3e-3
    optimizer: str = "adamw"
    weight_decay: float = 0.01  # in the optimizer's own way: part of the gradient, or decoupled (adamw, lion, muon)
    schedule: str = "one_cycle"
    warmup: float = 0.0  # the share of the steps in which the rate rises; 0.3 for one_cycle if nothing is said
    loss: str = "auto"  # cross entropy for classes, squared error for numbers
    label_smoothing: float = 0.0
    clip_norm: float = 0.0
    average: float = 0.0  # the decay of an exponential average of the weights
    augment: bool = False  # small shifts, turns and zooms of images
    noise: float = 0.0  # the standard deviation of noise on the inputs
    validation: float = 0.1  # the share of the training data that is held out
    patience: int = 0  # epochs without improvement until the run stops
    checkpoint_every: int = 0  # steps; there is always one after an epoch
    seed: int = 0

    def check(self) -> None:
        """Refuse what makes no sense."""
        limits = {
            "epochs": self.epochs >= 1,
            "steps": self.steps == 0 or self.steps >= self.epochs,
            "batch_size": self.batch_size >= 1,
            "lr": self.lr > 0,
            "weight_decay": self.weight_decay >= 0,
            "warmup": 0 <= self.warmup < 1,
            "label_smoothing": 0 <= self.label_smoothing < 1,
            "clip_norm": self.clip_norm >= 0,
            "average": 0 <= self.average < 1,
            "noise": self.noise >= 0,
            "validation": 0 <= self.validation < 1,
            "patience": self.patience >= 0,
            "checkpoint_every": self.checkpoint_every >= 0,
            "optimizer": self.optimizer in OPTIMIZERS,
            "schedule": self.schedule in SCHEDULES,
        }
        for name, sound in limits.items():
            if not sound:
                allowed = {"optimizer": OPTIMIZERS, "schedule": SCHEDULES}.get(name)
                remedy = f"one of {', '.join(allowed)}" if allowed else f"such as {_DEFAULTS[name]}"
                raise InputError(f"train.{name} = {getattr(self, name)!r}.", remedy)


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

    @classmethod
    def of(
        cls,
        model: str | None = None,
        data: str | None = None,
        file: str | os.PathLike[str] | None = None,
        changes: Iterable[str] = (),
    ) -> Settings:
        """Settings from a TOML file, then names, then changes such as `lr=0.01` or `model.hidden=[64, 32]`."""
        settings = cls() if file is None else cls.from_dict(_read(file))
        if model is not None and model != settings.model.get("name"):
            settings.model = {"name": model}
        if data is not None and data != settings.data.get("name"):
            settings.data = {"name": data}
        usual = data is None and file is None and model is not None
        if usual:
            settings.data = {}
        for change in changes:
            settings.change(change)
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
        """Change one setting; those of `train` must exist and have the right type."""
        if section == "train":
            value = _checked(name, value)
        getattr(self, section)[name] = value

    def training(self, defaults: Mapping[str, Any]) -> TrainSettings:
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
            if self.train.get(name):
                raise InputError(f"train.{name} = {self.train[name]!r} would do nothing: {reason}.", f"without {name}")
        return dataclasses.replace(how, **{name: getattr(TrainSettings, name) for name in unsuited})


def _usual_data(model: Mapping[str, Any]) -> str:
    """The data that a model is trained on if nothing is said."""
    from .catalogue import entry_for  # here: models take a while to load

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
