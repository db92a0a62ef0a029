"""The exceptions that Wonderland raises, see core/errors.py."""

# ruff: noqa: F403 - the file has an exact `__all__`

from .core.errors import *
from .core.naming import offer as _offer

_offer(globals())
