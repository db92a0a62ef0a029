"""Functions that are called with a module's inputs or outputs. Book, section 6.4.2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from .module import Module

__all__ = ["Hook"]

P = ParamSpec("P")
Output = TypeVar("Output", covariant=True)


class Computing(Protocol[P, Output]):
    """A module as one that is called: what `forward` takes and gives, a call takes and gives."""

    _hooks: tuple[Hook, ...]

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> Output: ...

    def named_modules(self) -> list[tuple[str, Module]]: ...


class Hook:
    """A function attached to a module; `remove()` detaches it, and so does the end of a `with` block."""

    __slots__ = ("after", "function", "module")

    def __init__(self, module: Module, function: Callable[..., Any], *, after: bool) -> None:
        self.module = module
        self.function = function
        self.after = after  # the forward pass
        module._hooks = (*module._hooks, self)

    def remove(self) -> None:
        """Detach the function; a second time changes nothing."""
        if self in self.module._hooks:
            self.module._hooks = tuple(hook for hook in self.module._hooks if hook is not self)

    def __enter__(self) -> Hook:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def call_with_hooks(
    module: Computing[..., Output],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    forward: Callable[..., Output] | None = None,
) -> Output:
    """The forward pass (or another one) between its hooks; what a hook returns, if not None, replaces what it got."""
    hooks = module._hooks
    for hook in hooks:
        if not hook.after and (changed := hook.function(module, args)) is not None:
            args = changed if isinstance(changed, tuple) else (changed,)
    output = (forward or module.forward)(*args, **kwargs)
    for hook in hooks:
        if hook.after and (changed := hook.function(module, args, output)) is not None:
            output = changed
    return output
