"""What to write instead, for errors that Python itself raises: arguments that a function does not have, imports.

Python checks the arguments of a call before any of our code runs, so such an error cannot be raised with a hint, and a
check in every function would slow every call. The hint is added when an error that nobody caught is shown, as Python
does with its own ("Did you mean ...").
"""

from __future__ import annotations

import linecache
import re
import sys
from types import TracebackType

from .naming import keyword_hint, remedy
from .tensor import Tensor

_KEYWORD = re.compile(r"([\w.<>]+)\(\) got an unexpected keyword argument '(\w+)'")
_POSITIONAL = re.compile(r"([\w.<>]+)\(\) got some positional-only arguments passed as keyword arguments: '([\w, ]+)'")
_IMPORT = re.compile(r"cannot import name '(\w+)' from '(?:wonderland)((?:\.\w+)*)'")
_CALLED = re.compile(r"(\w+)\.(size|shape|ndim|dtype|device)\(")
_PROPERTIES = {
    "size": "x.shape for the sizes, x.shape[0] for one; x.size is the number of elements",
    "shape": "x.shape, without a call",
    "ndim": "x.ndim, without a call",
    "dtype": "x.dtype, without a call; x.astype(dtype) for another one",
    "device": "x.device",
}


def advise(error: BaseException) -> None:
    """Add a note with the remedy to an error of Python's about a call or an import of ours; others stay as they are."""
    found = hint_for(error)
    note = f"  try: {found}"
    if found and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def hint_for(error: BaseException) -> str | None:
    """What to write instead; None for errors about something else.

    >>> import wonderland as wl
    >>> try:
    ...     wl.sum(wl.ones(3), dim=0)
    ... except TypeError as error:
    ...     print(hint_for(error))
    axis=
    """
    text = str(error)
    if isinstance(error, ImportError) and (found := _IMPORT.search(text)):
        place = found[2].lstrip(".")
        module = sys.modules.get(f"wonderland{found[2]}")
        return remedy(place, found[1], dir(module))
    if type(error) is not TypeError:
        return None
    if found := _KEYWORD.match(text):
        names = _arguments(found[1], error.__traceback__)
        return None if names is None else keyword_hint(found[2], names)
    if (found := _POSITIONAL.match(text)) and _arguments(found[1], error.__traceback__) is not None:
        return f"it without its name: {found[2]} goes by position"
    if text.endswith("object is not callable"):
        return _called_property(error.__traceback__)
    return None


def _arguments(name: str, traceback: TracebackType | None) -> list[str] | None:
    """The names of the arguments of a function of ours by its qualified name; None if it is another's."""
    if _is_the_users(name, traceback):
        return None
    for place, module in list(sys.modules.items()):
        if place.partition(".")[0] != "wonderland":
            continue
        found: object = module
        for part in name.split("."):
            found = vars(found).get(part) if hasattr(found, "__dict__") else None
        code = getattr(getattr(found, "__wrapped__", found), "__code__", None)
        if code is not None and str(getattr(found, "__module__", "")).partition(".")[0] == "wonderland":
            return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    return None


def _is_the_users(name: str, traceback: TracebackType | None) -> bool:
    """Whether the line that failed knows a function of that name which is not ours."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return False
    known = {**traceback.tb_frame.f_globals, **traceback.tb_frame.f_locals}
    found = known.get(name.partition(".")[0])
    return found is not None and str(getattr(found, "__module__", "wonderland")).partition(".")[0] != "wonderland"


def _called_property(traceback: TracebackType | None) -> str | None:
    """The hint for `x.size(0)` and its like, where x is a tensor."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return None
    frame = traceback.tb_frame
    line = linecache.getline(frame.f_code.co_filename, traceback.tb_lineno)
    known = {**frame.f_globals, **frame.f_locals}
    for name, attribute in _CALLED.findall(line):
        if isinstance(known.get(name), Tensor):
            return _PROPERTIES[attribute]
    return None
