"""Which changes keep the label: a mirrored photograph shows the same animal, a 6 that is turned around is a 9."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...core.errors import InputError

# task: the changes that can alter or destroy its labels, and why
TASKS: dict[str, dict[str, str]] = {
    "photographs": {},
    "digits": {
        "vertical_flip": "a 6 upside down resembles a 9, a 2 a 5",
        "horizontal_flip": "mirrored digits are no digits, and a 2 resembles a 5",
        "large_rotation": "a 6 turned by 180 degrees is a 9",
    },
    "text": {
        "vertical_flip": "b becomes p, and M becomes W",
        "horizontal_flip": "b becomes d, and writing runs from right to left",
        "large_rotation": "M becomes W, and N becomes Z",
    },
    "left_right": {
        "horizontal_flip": "left and right are the label, or tell it (arrows, signs, organs)",
        "large_rotation": "directions are the label, or tell it",
    },
    "orientation": {
        "horizontal_flip": "the direction is the label",
        "vertical_flip": "the direction is the label",
        "rotation": "the direction is the label",
        "large_rotation": "the direction is the label",
    },
    "sequences": {
        "vertical_flip": "time has a direction: sound played backwards is another sound",
        "horizontal_flip": "channels or frequencies change places",
    },
    "colors": {"color": "the colour is the label, or tells it (fruit, traffic lights)"},
    "position": dict.fromkeys(
        ("translation", "crop", "scale", "shear", "rotation", "large_rotation", "horizontal_flip", "vertical_flip"),
        "the position is the label",
    ),
}


class Unsafe(NamedTuple):
    """A change that may alter the label: which transform makes it, and why it matters."""

    transform: str
    change: str
    reason: str


def check_label_safety(
    transform: Callable[..., object],
    task: str | None = None,
    *,
    allow: Iterable[str] | None = None,
    deny: Iterable[str] = (),
    strict: bool = False,
) -> list[Unsafe]:
    """The changes of a transform that may alter the label for a task; an empty list if it is safe. Book, section 9.2.3.

    >>> import wonderland as wl
    >>> T = wl.data.transforms
    >>> pipeline = T.Compose([T.RandomVerticalFlip(), T.RandomRotation(10)])
    >>> T.check_label_safety(pipeline, "digits")
    [Unsafe(transform='RandomVerticalFlip', change='vertical_flip', reason='a 6 upside down resembles a 9, a 2 a 5')]
    >>> T.check_label_safety(pipeline, "photographs")
    []

    `task` is a key of `TASKS`. `allow` without a task lists all changes that are safe (anything else is reported), with
    a task those to let pass; `deny` adds to the unsafe ones. With `strict=True` an unsafe transform raises. This knows
    what transforms declare in `changes`; whether a change keeps your labels, only you can say: look at `preview`.
    """
    if task is not None and task not in TASKS:
        raise InputError(f"check_label_safety: no task {task!r}.", f"one of {', '.join(TASKS)}, or allow=, deny=")
    allowed = None if allow is None else frozenset(allow)
    reasons = dict(TASKS[task]) if task is not None else {}
    for change in allowed or ():
        reasons.pop(change, None)
    reasons.update(dict.fromkeys(deny, "denied"))
    found = []
    for part in getattr(transform, "transforms", [transform]):
        for change in sorted(getattr(part, "changes", frozenset())):
            if change in reasons:
                found.append(Unsafe(type(part).__name__, change, reasons[change]))
            elif task is None and allowed is not None and change not in allowed:
                found.append(Unsafe(type(part).__name__, change, "not among the allowed changes"))
    if found and strict:
        first = found[0]
        raise InputError(
            f"check_label_safety: {first.transform} makes the change {first.change!r}: {first.reason}.",
            f"leave it out, or allow=[{first.change!r}] if the label survives",
        )
    return found
