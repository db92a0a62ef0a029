"""`Module`: an ordinary object with parameters, state and settings, and a tree for the transformations."""

from __future__ import annotations

import copy
import fnmatch
import reprlib
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.cell import Cell
from ...core.context import current, modules, note_structure_change
from ...core.errors import DepthError, DTypeError, ModuleError, TraceError, WonderlandError
from ...core.habits import NETWORKS
from ...core.naming import refuse, without_hints
from ...core.showing import as_html
from ...core.tensor import Tensor, is_device, unrecorded
from ...core.typing import ArrayLike, DTypeLike
from .attributes import Outline, is_steady, join, outline
from .hooks import Computing, Hook, Output, P, call_with_hooks
from .lazy import Lazy
from .members import Member, cells, ends, members, walk
from .parameter import Parameter
from .state_dict import Loaded, load_state_dict, state_dict

__all__ = ["Module"]

M = TypeVar("M", bound="Module")
Static = tuple[bool, tuple[Hook, ...], tuple[tuple[str, Outline], ...]]  # the mode, the hooks, what else is set
_OWN = ("training", "_hooks")  # attributes with a default on the class
SHOWN = 50  # levels of modules in modules that `repr` shows


if TYPE_CHECKING:
    from ..analysis.summary import Summarized as Given  # what is given to modules from above, see core/giving.py
else:
    Given = object


class _Shown(threading.local):
    level = 0  # of the module that is being shown


_shown = _Shown()


class Module(Given):
    r"""The base of layers and models: \(y = f(x; w)\) with \(w\) in the attributes. Book, section 6.1.

    >>> import wonderland as wl
    >>> class Scale(wl.nn.Module):
    ...     def __init__(self, size):
    ...         self.factor = wl.nn.Parameter(wl.ones(size))
    ...         self.calls = wl.nn.Buffer(0)
    ...     def forward(self, x):
    ...         self.calls = self.calls + 1
    ...         return self.factor * x
    >>> model = Scale(3)
    >>> model(wl.tensor([1.0, 2.0, 3.0]))
    tensor([1., 2., 3.])
    >>> wl.grad(lambda model, x: (model(x) ** 2).sum())(model, wl.tensor([1.0, 2.0, 3.0]))
    {'factor': tensor([ 2., 8., 18.])}
    >>> model
    Scale(factor=float32[3], calls=int64[])

    A subclass sets attributes in `__init__` and defines `forward`; calling the module runs its hooks and
    `forward`. Attributes may be `Parameter`s (trained), `Buffer`s (state), modules, lists and dicts of
    these, and settings. A tensor or a number assigned to an attribute that holds a parameter or a buffer
    goes *into* it; anything else replaces the attribute. One parameter in two places is shared: it is listed
    once, and its gradients add up.

    `wl.grad` of a function of a module gives a dict from the paths of its trainable parameters; `wl.jit` takes modules
    as arguments and writes their state back. A tensor that is neither parameter nor buffer is a constant.
    """

    training: bool = True
    _hooks: tuple[Hook, ...] = ()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; defined by subclasses."""
        raise ModuleError(f"{type(self).__name__}: has no forward pass.", "def forward(self, x): ... in the class")

    def __call__(self: Computing[P, Output], *args: P.args, **kwargs: P.kwargs) -> Output:
        called = modules.called
        depth = len(called)
        try:
            called.append(self)  # inside, as an interrupt may come right behind it
            if self._hooks:
                return call_with_hooks(self, args, kwargs)
            return self.forward(*args, **kwargs)
        except RecursionError as error:
            if depth or isinstance(error, WonderlandError):
                raise
            raise _too_deep(self) from error
        finally:
            del called[depth:]

    def __setattr__(self, name: str, value: Any) -> None:
        held = self.__dict__.get(name)
        if isinstance(held, Cell) and not isinstance(value, Cell) and arrays.is_operand(value):
            if not isinstance(value, Tensor):
                value = arrays.tensor(value, dtype=None if hasattr(value, "dtype") else held.dtype)
            held.assign(value)
            return
        if name in _RESERVED:
            raise ModuleError(
                f"{type(self).__name__}: the attribute {name!r} would hide the method of that name.",
                "another name",
            )
        note_structure_change()  # before, as an interrupt may come right after the change
        object.__setattr__(self, name, value)
        note_structure_change()  # and after, for a thread that looked in between

    def __dir__(self) -> list[str]:
        return without_hints(self, object.__dir__(self))

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        note_structure_change()

    # --- as a tree, see core/trees.py

    def _attributes(self) -> dict[str, object]:
        """What has been set on the module, except for its mode and its hooks."""
        return {name: value for name, value in vars(self).items() if name not in _OWN}

    def __tree_parts__(self) -> tuple[dict[str, Member], Static]:
        parts: dict[str, Member] = {
            name: member for name, member in members(self).items() if not isinstance(member, Lazy)
        }
        outlines = tuple([(name, outline(value)) for name, value in self._attributes().items()])
        return parts, (self.training, self._hooks, outlines)

    def __tree_steady__(self) -> bool:
        """Whether a change other than in cells always shows in `structure_version`.

        So it is if here and in its modules there is no list, dict or array that could be changed in place, no hook, and
        no stateful object of another kind.
        """
        for _, member in walk(self):
            if isinstance(member, Module):
                if member._hooks or not all(map(is_steady, member._attributes().values())):
                    return False
            elif not isinstance(member, (Cell, Lazy)):
                return False
        return True

    @classmethod
    def __tree_new__(cls: type[M]) -> M:
        return object.__new__(cls)

    def __tree_fill__(self, children: Mapping[str, object], static: Static) -> None:
        training, hooks, outlines = static
        rest = iter(children.values())
        self.__dict__.update({name: join(plan, rest) for name, plan in outlines})
        self.__dict__.update(training=training, _hooks=hooks)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_hooks"}

    def copy(self: M) -> M:
        """A deep copy with cells of its own, shared where they are shared here; without the hooks."""
        try:
            return copy.deepcopy(self)
        except RecursionError as error:
            raise _too_deep(self) from error

    # --- what is in it

    def named_modules(self) -> list[tuple[str, Module]]:
        """This module, under the path "", and all modules in it, each once.

        >>> import wonderland as wl
        >>> [path for path, _ in wl.nn.Sequential(wl.nn.Sequential(wl.nn.Linear(2, 3))).named_modules()]
        ['', '0', '0.0']
        """
        return [(path, member) for path, member in walk(self) if isinstance(member, Module)]

    def modules(self) -> list[Module]:
        """This module and all modules in it."""
        return [module for _, module in self.named_modules()]

    def named_children(self) -> list[tuple[str, Module]]:
        """The modules directly in this one, with the names that they have here."""
        unique: dict[int, tuple[str, Module]] = {}
        for name, member in members(self).items():
            if isinstance(member, Module):
                unique.setdefault(id(member), (name, member))
        return list(unique.values())

    def children(self) -> list[Module]:
        """The modules directly in this one."""
        return [module for _, module in self.named_children()]

    def get_submodule(self, path: str) -> Module:
        """The module at a path such as `blocks.3.attention`; "" is the module itself."""
        found = {p: m for p, m in walk(self, again=True) if isinstance(m, Module)}
        if path not in found:
            import difflib

            near = difflib.get_close_matches(path, found) or [p for p in found if p][:5]
            raise ModuleError(
                f"get_submodule: this {type(self).__name__} has no module {path!r}.",
                f"one of {', '.join(map(repr, near))}" if near else "the path '', as it contains no modules",
            )
        return found[path]

    def _cells(self, what: str) -> list[tuple[str, Cell]]:
        """The cells by path, all of which must exist."""
        found = ends(self)
        made = [(path, member) for path, member in found if isinstance(member, Cell)]
        if len(made) < len(found):
            raise _not_made(what, self)
        return made

    def named_parameters(self) -> list[tuple[str, Parameter]]:
        """The parameters with their paths, such as `blocks.3.attention.qkv.weight`; shared ones once.

        >>> import wonderland as wl
        >>> [(path, p.shape) for path, p in wl.nn.Sequential(wl.nn.Linear(2, 3), wl.relu).named_parameters()]
        [('0.weight', (2, 3)), ('0.bias', (3,))]
        """
        return [(path, cell) for path, cell in self._cells("named_parameters") if isinstance(cell, Parameter)]

    def parameters(self) -> list[Parameter]:
        """The parameters, shared ones once."""
        return [cell for _, cell in self._cells("parameters") if isinstance(cell, Parameter)]

    def named_buffers(self) -> list[tuple[str, Cell]]:
        """The state that is not trained, with paths: every cell that is not a parameter."""
        return [(path, cell) for path, cell in self._cells("named_buffers") if not isinstance(cell, Parameter)]

    def buffers(self) -> list[Cell]:
        """The state that is not trained."""
        return [cell for _, cell in self.named_buffers()]

    def num_parameters(self, trainable_only: bool = False) -> int:
        """The number of numbers in the parameters.

        >>> import wonderland as wl
        >>> wl.nn.Linear(10, 4).num_parameters()
        44
        """
        return sum(p.size for p in self.parameters() if p.trainable or not trainable_only)

    # --- modes

    def train(self: M, mode: bool = True) -> M:
        """Set `training` in this module and all modules in it; layers such as dropout behave accordingly."""
        for module in self.modules():
            if module.training != mode:
                module.training = mode
        return self

    def eval(self: M) -> M:
        """Leave training mode: `train(False)`."""
        return self.train(False)

    def freeze(self: M, pattern: str | None = None) -> M:
        """Exclude parameters from training: all, or those whose path is, lies below or matches `pattern`.

        >>> import wonderland as wl
        >>> model = wl.nn.Sequential(wl.nn.Linear(2, 3), wl.tanh, wl.nn.Linear(3, 1)).freeze("0")
        >>> [path for path, p in model.named_parameters() if p.trainable]
        ['2.weight', '2.bias']
        >>> model.unfreeze().freeze("*.bias").num_parameters(trainable_only=True)
        9
        """
        return self._set_trainable("freeze", pattern, False)

    def unfreeze(self: M, pattern: str | None = None) -> M:
        """Train parameters again; see `freeze`."""
        return self._set_trainable("unfreeze", pattern, True)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """`unfreeze()` or `freeze()`, by the name that tensors have for it."""
        return self._set_trainable("requires_grad_", None, requires_grad)

    def _set_trainable(self: M, what: str, pattern: str | None, trainable: bool) -> M:
        self._cells(what)
        found = [
            (path, cell)
            for path, cell in cells(self, again=True)
            if isinstance(cell, Parameter) and (pattern is None or matches(path, pattern))
        ]
        if pattern is not None and not found:
            raise ModuleError(
                f"{what}: no parameter of this {type(self).__name__} matches {pattern!r}.",
                "a path such as " + ", ".join(repr(path) for path, _ in self.named_parameters()[:3]),
            )
        for _, cell in found:
            if not trainable or dtypes.is_inexact(cell.dtype):
                cell.trainable = trainable
        return self

    def zero_grad(self) -> None:
        """Forget the gradients that `backward()` added up."""
        for parameter in self.parameters():
            parameter.grad = None

    # --- state

    def state_dict(self) -> dict[str, Tensor]:
        """The values of all parameters and persistent buffers by path, to save or to load elsewhere.

        >>> import wonderland as wl
        >>> a, b = wl.nn.Linear(2, 3), wl.nn.Linear(2, 3)
        >>> b.load_state_dict(a.state_dict())
        Loaded(missing=[], unexpected=[])
        >>> bool((a.weight == b.weight).all())
        True
        """
        self._cells("state_dict")
        return state_dict(self)

    def load_state_dict(self, values: Mapping[str, ArrayLike], strict: bool = True) -> Loaded:
        """Put saved values (tensors or arrays) into the cells.

        Shapes and dtypes have to agree. Everything that does not fit is listed in one error, and then
        nothing is changed. Unless `strict`, missing and unexpected names are returned instead.
        """
        self._cells("load_state_dict")
        return load_state_dict(self, values, strict)

    def astype(self: M, dtype: DTypeLike) -> M:
        """Convert the floating (and complex) parameters and buffers in place.

        >>> import wonderland as wl
        >>> wl.nn.Linear(2, 3).astype(wl.float64).weight.dtype
        dtype('float64')
        """
        wanted = dtypes.as_dtype(dtype)
        if not dtypes.is_floating(wanted):
            raise DTypeError(
                f"astype: modules compute with floating types, not with {wanted}.", "wl.float32 or wl.float64"
            )
        if current().trace is not None:
            raise TraceError("astype: a module cannot change its dtype inside a transformation.", "convert it outside")
        for _, cell in self._cells("astype"):
            if not dtypes.is_inexact(cell.dtype):
                continue
            target = dtypes.complex_of(wanted) if dtypes.is_complex(cell.dtype) else wanted
            if cell.dtype != target:
                cell.zero_grad()
                cell.value = arrays.astype(cell.value, target)
                note_structure_change()
        return self

    def to(self: M, target: DTypeLike) -> M:
        """This module with another dtype, or on a device: `model.to(wl.float64)`, `model.to("gpu:0")`."""
        if is_device(target):
            for _, cell in self._cells("to"):
                cell.value = unrecorded(cell.value.to_device(str(target)))
            return self
        return self.astype(target)

    def apply(self: M, f: Callable[[Module], object]) -> M:
        """Call `f` on every module in this one and on itself, the inner ones first."""
        seen: set[int] = set()
        waiting: list[tuple[Module, bool]] = [(self, False)]  # the next one last, and whether its children are done
        while waiting:
            module, ready = waiting.pop()
            if ready:
                f(module)
            elif id(module) not in seen:
                seen.add(id(module))
                waiting += [(module, True), *((child, False) for child in reversed(module.children()))]
        return self

    # --- hooks

    def register_forward_pre_hook(self, hook: Callable[[Module, tuple[Any, ...]], object]) -> Hook:
        """Call `hook(module, args)` before the forward pass; its result, if not None, is the new args."""
        return Hook(self, hook, after=False)

    def register_forward_hook(self, hook: Callable[[Module, tuple[Any, ...], Any], object]) -> Hook:
        """Call `hook(module, args, output)` after the forward pass; its result, if not None, replaces it.

        >>> import wonderland as wl
        >>> model = wl.nn.Sequential(wl.nn.Linear(2, 3), wl.nn.Linear(3, 1))
        >>> seen = []
        >>> with model[0].register_forward_hook(lambda module, args, output: seen.append(output.shape)):
        ...     _ = model(wl.ones((5, 2)))
        >>> seen
        [(5, 3)]

        The result has `remove()`. Under `jit` a hook sees traced values, once.
        """
        return Hook(self, hook, after=True)

    # --- looking at it

    def multiply_adds(self, args: tuple[Any, ...], output: Any) -> int | None:
        """The multiply-adds of a forward pass, without those of inner modules; None if they are not known."""
        return None

    def extra_repr(self) -> str:
        """The settings shown by `repr`; by default numbers, texts, functions and the kinds of cells."""
        shown = []
        for name, value in vars(self).items():
            if name in _OWN or name.startswith("_"):
                continue
            if isinstance(value, Tensor):
                shown.append(f"{name}={value.dtype}{list(value.shape)}")
            elif isinstance(value, (bool, int, float, complex, str, np.dtype, Lazy)):
                shown.append(f"{name}={value!r}")
            elif callable(value) and not isinstance(value, Module):
                shown.append(f"{name}={getattr(value, '__name__', value)}")
        return ", ".join(shown)

    def _changed(self, **defaults: object) -> list[str]:
        """The settings that are not the default, as `repr` shows them."""
        return [f"{name}={getattr(self, name)!r}" for name, value in defaults.items() if getattr(self, name) != value]

    def _shown(self) -> list[tuple[str, object]]:
        """The parts that get a line in `repr`."""
        return list(self.named_children())

    def _describe(self) -> str:
        """The module in one line, without what is in it."""
        return f"{type(self).__name__}({self.extra_repr()})"

    def _repr_html_(self) -> str | None:
        return as_html("module", self)

    @reprlib.recursive_repr()
    def __repr__(self) -> str:
        parts = self._shown()
        if not parts:
            return self._describe()
        settings = self.extra_repr()
        lines = [f"{type(self).__name__}({settings}{',' if settings else ''}"]
        level = _shown.level
        if level == SHOWN:
            return f"{lines[0]}...)"
        _shown.level = level + 1
        try:
            for name, part in parts:
                text = repr(part) if isinstance(part, Module) else getattr(part, "__name__", repr(part))
                lines += f"{name}: {text}".splitlines()
        finally:
            _shown.level = level
        return "\n  ".join(lines) + "\n)"


def _too_deep(module: object) -> DepthError:
    """The error for modules in modules that Python's stack has no room for."""
    name, levels = type(module).__name__, sys.getrecursionlimit()
    return DepthError(
        f"{name}: calls inside calls, more than the {levels:,} levels of Python's stack.",
        "one list of modules, as in a flat Sequential, or sys.setrecursionlimit",
    )


_RESERVED = frozenset(name for name, value in vars(Module).items() if callable(value)) - {"forward"}
refuse(Module, NETWORKS)


def _not_made(what: str, root: Module) -> ModuleError:
    """The error for a module whose parameters still wait for the first input."""
    for path, module in root.named_modules():
        if lazy := [name for name, member in members(module).items() if isinstance(member, Lazy)]:
            where = f"the {module._describe()} at {path!r}" if path else f"this {module._describe()}"
            what += f": {where} has no {' and no '.join(lazy)} yet; the first input decides the shape."
            break
    return ModuleError(what, "call the model once on an example, or give the sizes to the constructor")


def matches(path: str, pattern: str) -> bool:
    """Whether a path is, lies below or matches a pattern."""
    return fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(path, f"{pattern}.*")
