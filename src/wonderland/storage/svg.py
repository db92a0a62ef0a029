"""A picture: the text of an SVG file, which notebooks show and which can be saved."""

from __future__ import annotations

from typing import Self

from ..core.errors import InputError
from ..core.typing import PathLike
from .atomic import write_atomically


class SVG(str):
    """The text of an SVG picture. A notebook shows the picture, `save` writes a file, and it is a text like any other.

    >>> import wonderland as wl
    >>> picture = wl.viz.plot([([0, 1], [0, 1])], title="a line")
    >>> picture
    SVG(640 x 400, 'a line')
    >>> picture.startswith("<svg")
    True
    """

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str.__str__(self)

    def save(self, path: PathLike) -> Self:
        """Write the picture to a file; it is there whole or not at all. Returns the picture."""
        if not str(path).lower().endswith(".svg"):
            raise InputError(f"save: {str(path)!r} is no name of an SVG picture.", "a name that ends in .svg")
        write_atomically(path, str.__str__(self))
        return self

    def __repr__(self) -> str:
        """Its size and what it shows: all of its text would fill the screen."""
        size = " x ".join(self._between(f' {side}="', '"') for side in ("width", "height"))
        return f"SVG({size}, {self._between('<title>', '</title>')!r})"

    def _between(self, start: str, end: str) -> str:
        return self.partition(start)[2].partition(end)[0]
