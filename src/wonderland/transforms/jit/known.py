"""Is this a call that we know? What a function remembers of its calls, and how it looks among that.

A trace holds for one state of the function's *environment* (what its code refers to besides the arguments) and for one
*key* (what the arguments are, but for the numbers in tensors). There are three answers, the quickest first:

1. the environment is as it was, and the call is like the last one: `recent.py` compares the arguments themselves;
2. else their key is made, and looked for among the `Traces` of this environment;
3. if the environment has changed: those of an environment that was there before are taken up again, or new ones begun.

Everything is bounded, so a function that meets ever new shapes, or whose globals change for ever, does not grow.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from .arguments import Arguments
from .environment import Environment
from .recent import Recent
from .traced import Traced

ENVIRONMENTS = 8  # that a function remembers traces for
# An equation takes a kilobyte in a trace: at most half a gigabyte for a function, and less than one for a function of
# few equations. Making a trace again takes milliseconds to seconds.
TRACES = 1000
EQUATIONS = 500_000
FEWEST = 8  # stay however large they are


class Traces(dict[Hashable, Traced]):
    """Traces by what they were made for, the one used last at the end."""

    def find(self, key: Hashable) -> Traced | None:
        """The trace, None if there is none. It counts as used."""
        found = self.pop(key, None)
        if found is not None:
            self[key] = found
        return found

    def keep(self, key: Hashable, traced: Traced) -> None:
        """Remember a trace, and forget others if there are too many."""
        self.pop(key, None)
        self[key] = traced
        equations = sum(len(known.graph.equations) for known in self.values())
        while len(self) > TRACES or (len(self) > FEWEST and equations > EQUATIONS):
            equations -= len(self.pop(next(iter(self))).graph.equations)


class Known:
    """The calls that a function knows. Who asks holds the lock of `traced.py`."""

    def __init__(self, f: Callable[..., object]) -> None:
        self._f = f
        self._environment: Environment | None = None
        self._remembered: dict[Hashable, Traces] = {}  # by the state of the environment
        self.recent: Recent | None = None
        self.traces = Traces()  # those for the present environment

    def __len__(self) -> int:
        return sum(len(traces) for traces in self._remembered.values())

    def clear(self) -> None:
        self._environment = self.recent = None
        self._remembered.clear()

    def environment(self) -> Environment:
        """The environment as it is now; `traces` are those that hold in it."""
        if self._environment is None or self._environment.changed():
            environment = Environment(self._f)
            traces = self._remembered.pop(environment.key, None) or Traces()
            self._remembered[environment.key] = traces
            if len(self._remembered) > ENVIRONMENTS:
                del self._remembered[next(iter(self._remembered))]
            self.traces, self._environment = traces, environment  # both or neither: nothing is called in between
        return self._environment

    def again(self, args: tuple[object, ...], environment: Environment) -> tuple[Traced, Arguments] | None:
        """The trace of the last call, if this one is like it."""
        return None if self.recent is None else self.recent.again(args, environment)

    def last(self, args: tuple[object, ...], arguments: Arguments, traced: Traced, environment: Environment) -> None:
        """Remember a call as the last one."""
        self.recent = Recent.of(args, arguments, traced, environment)

    def forget_last(self) -> None:
        self.recent = None
