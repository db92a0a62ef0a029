"""Arguments that are part of what a trace is made for: `static_argnums` and `static_argnames`."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ...core.errors import InputError, TraceError
from ...core.tensor import Tracer
from .arguments import static

# The function of the arguments that are left, those arguments, and what is kept of the others.
Split = tuple[Callable[..., object], tuple[object, ...], dict[str, object], Hashable]


class StaticArguments:
    """Which arguments of a function are static, by position and by name."""

    def __init__(self, f: Callable[..., object], numbers: tuple[int, ...], names: tuple[str, ...]) -> None:
        self._f = f
        self._numbers, self._names = _static_parameters(f, numbers, names)

    def split(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Split:
        """Take the static arguments out."""
        if not self._numbers and not self._names:
            return self._f, args, kwargs, ()
        places = {n + len(args) if n < 0 else n for n in self._numbers}
        fixed_args = {i: args[i] for i in sorted(places) if 0 <= i < len(args)}
        named = {k: kwargs[k] for k in self._names if k in kwargs}
        for what in (*fixed_args.values(), *named.values()):
            if isinstance(what, Tracer):
                raise TraceError(
                    "jit: a static argument is a traced value.", "a Python value, or an argument that is not static"
                )

        def f(*rest: object, **kw: object) -> object:
            dynamic = iter(rest)
            full = [fixed_args[i] if i in fixed_args else next(dynamic) for i in range(len(args))]
            return self._f(*full, **kw, **named)

        kept = (
            tuple((i, static(v)) for i, v in fixed_args.items()),
            tuple((k, static(v)) for k, v in named.items()),
        )
        remaining = tuple(a for i, a in enumerate(args) if i not in fixed_args)
        return f, remaining, {k: v for k, v in kwargs.items() if k not in named}, kept


def _static_parameters(
    f: Callable[..., object], numbers: tuple[int, ...], names: tuple[str, ...]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the static arguments: each may be passed either way."""
    if not numbers and not names:
        return numbers, names
    import inspect  # takes a while to load

    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):  # a built-in function that does not say
        return numbers, names
    kinds = {p.kind for p in parameters}
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if inspect.Parameter.VAR_POSITIONAL not in kinds and any(
        not -len(positional) <= n < len(positional) for n in numbers
    ):
        raise InputError(
            f"jit: static_argnums={numbers} for a function of {len(positional)} arguments.", "positions of arguments"
        )
    known = {p.name for p in parameters}
    if inspect.Parameter.VAR_KEYWORD not in kinds and (unknown := [n for n in names if n not in known]):
        raise InputError(
            f"jit: static_argnames={unknown}, but the arguments are {sorted(known)}.", "names of arguments"
        )
    numbers = tuple(n + len(positional) if n < 0 and -n <= len(positional) else n for n in numbers)
    both = [positional[n] for n in numbers if 0 <= n < len(positional)]
    places = [positional.index(name) for name in names if name in positional]
    return tuple(dict.fromkeys([*numbers, *places])), tuple(dict.fromkeys([*names, *both]))
