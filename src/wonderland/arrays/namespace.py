"""What the Array API standard asks of the namespace itself: its version, its constants and what it can do."""

from __future__ import annotations

import math

from ..core import dtypes
from ..core.dtypes import DType
from .conversion import check_device
from .types import Kind, isdtype

__all__ = ["__array_api_version__", "__array_namespace_info__", "e", "inf", "nan", "newaxis", "pi"]

__array_api_version__ = "2024.12"

e: float = math.e
inf: float = math.inf
nan: float = math.nan
pi: float = math.pi
newaxis: None = None


class NamespaceInfo:
    """Answers to the questions of the standard about capabilities, devices and dtypes."""

    def capabilities(self) -> dict[str, bool | int]:
        """Data-dependent shapes (masks, `nonzero`, `unique`) work on computed values, not inside `jit` or `vmap`."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Where tensors are made if no device is named."""
        return "cpu"

    def devices(self) -> list[str]:
        """All devices there are."""
        return ["cpu"]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """The types that Python's numbers take, and that of indices."""
        check_device("default_dtypes", device)
        return {
            "real floating": dtypes.default_float,
            "complex floating": dtypes.default_complex,
            "integral": dtypes.default_int,
            "indexing": dtypes.int64,
        }

    def dtypes(self, *, device: str | None = None, kind: Kind | None = None) -> dict[str, DType]:
        """The standard's types of a kind (see `isdtype`) by name; all of them if none is named.

        The sixteen-bit floating types are ours beyond the standard, which asks for its own names alone.
        """
        check_device("dtypes", device)
        return {d.name: d for d in dtypes.ALL if not dtypes.is_half(d) and (kind is None or isdtype(d, kind))}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807 - the standard's name
    """What the namespace can do.

    >>> import wonderland as wl
    >>> info = wl.__array_namespace_info__()
    >>> info.default_dtypes()["real floating"], sorted(info.dtypes(kind="complex floating"))
    (dtype('float32'), ['complex128', 'complex64'])
    """
    return NamespaceInfo()
