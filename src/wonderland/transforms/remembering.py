"""The traces that a function remembers: those used last. So a function that meets ever new shapes does not grow."""

from __future__ import annotations

from typing import Any

# An equation takes a kilobyte in a trace: at most half a gigabyte for a function, and less than one for a function of
# few equations. Making a trace again takes milliseconds to seconds.
TRACES = 1000
EQUATIONS = 500_000
FEWEST = 8  # stay however large they are


class Traces(dict[Any, Any]):
    """Traces by what they were made for, the one used last at the end."""

    def find(self, key: Any) -> Any:
        """The trace, None if there is none. It counts as used."""
        found = self.pop(key, None)
        if found is not None:
            self[key] = found
        return found

    def keep(self, key: Any, traced: Any) -> None:
        """Remember a trace, and forget others if there are too many."""
        self.pop(key, None)
        self[key] = traced
        equations = sum(len(known.graph.equations) for known in self.values())
        while len(self) > TRACES or (len(self) > FEWEST and equations > EQUATIONS):
            equations -= len(self.pop(next(iter(self))).graph.equations)
