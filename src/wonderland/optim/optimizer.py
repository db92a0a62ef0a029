"""The base of optimizers: groups of parameters, their state, and how gradients find them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from .. import arrays
from ..core import dtypes, trees
from ..core.errors import GradientError, InputError, ModuleError, ShapeError
from ..core.interpreter import assign, read
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..nn.module.module import Module
from ..nn.module.parameter import Buffer, Parameter
from ..nn.module.state_dict import Loaded, load_state_dict, state_dict
from ..transforms.imperative import no_grad
from . import compiled, few_parameters
from .settings import COMMON, Limits, check_range, refuse_complex

Scalars: TypeAlias = tuple[Tensor, ...]
# What an optimizer is made from: a module, a tree of parameters, pairs of names and parameters, or groups of these.
Parameters: TypeAlias = (
    Module
    | Parameter
    | Mapping[str, object]
    | Iterable[Module | Parameter | tuple[str, Parameter] | Mapping[str, object]]
)
DEFAULTS: dict[str, object] = {"weight_decay": 0.0, "decay": "coupled", "maximize": False}


class Rated(Module):
    """A module with a learning rate, which takes tensors of any floating type, as schedules compute them."""

    if TYPE_CHECKING:  # what is read is a cell, and what is written its value

        @property
        def lr(self) -> Buffer: ...
        @lr.setter
        def lr(self, value: float | Tensor) -> None: ...
    else:
        lr: Buffer

    def __setattr__(self, name: str, value: object) -> None:
        if name == "lr" and isinstance(value, Tensor) and not isinstance(value, Buffer):
            value = arrays.astype(value, dtypes.float64)
        super().__setattr__(name, value)


class Group(Rated):
    """Parameters that share settings. `group["lr"]` is another way to write `group.lr`.

    >>> import wonderland as wl
    >>> optimizer = wl.optim.SGD(wl.nn.Linear(2, 3), lr=0.1, momentum=0.9)
    >>> optimizer.groups[0].momentum
    0.9
    """

    params: dict[str, Parameter]
    state: dict[str, dict[str, Buffer]]  # by kind, such as "momentum", then by the parameter's name
    shared: dict[str, Buffer]  # state that all parameters of the group share

    def __init__(self, lr: Buffer, params: dict[str, Parameter], settings: Mapping[str, object]) -> None:
        self.lr = lr
        self.params = params
        self.state = {}
        self.shared = {}
        for name, value in settings.items():
            setattr(self, name, value)

    def __getitem__(self, name: str) -> Any:
        return list(self.params.values()) if name == "params" else getattr(self, name)

    def __setitem__(self, name: str, value: object) -> None:
        if name == "params" or name not in vars(self):
            known = ", ".join(repr(n) for n in vars(self) if n not in ("params", "state", "shared"))
            raise InputError(f"optimizer: a group has no setting {name!r} to change.", f"one of {known}")
        setattr(self, name, value)

    def extra_repr(self) -> str:
        hidden = ("lr", "params", "state", "shared", *(["decay"] if not self["weight_decay"] else []))
        settings = {name: value for name, value in vars(self).items() if name not in hidden}
        parts = [f"lr={self.lr.item():g}", *(f"{name}={value!r}" for name, value in settings.items())]
        return ", ".join([*parts, f"parameters={len(self.params)}"])


class Optimizer(Rated):
    r"""The base of optimizers: \(w_{t+1} = w_t - \eta\, u(g_1, \dots, g_t)\). Book, section 2.3.2.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear.from_matrix([[2.0]])
    >>> optimizer = wl.optim.SGD(model, lr=0.25)
    >>> @wl.jit
    ... def step(model, optimizer, x):
    ...     loss, grads = wl.value_and_grad(lambda model, x: (model(x) ** 2).sum())(model, x)
    ...     optimizer.step(grads)
    ...     return loss
    >>> print(step(model, optimizer, wl.ones(1)), step(model, optimizer, wl.ones(1)))
    tensor(4.) tensor(1.)

    The imperative style works, too:

    >>> loss = (model(wl.ones(1)) ** 2).sum()
    >>> loss.backward()
    >>> optimizer.step()
    >>> optimizer.zero_grad()
    >>> model.weight
    parameter([[0.25]])

    `parameters` is a module, a list or tree of parameters, pairs of names and parameters as `named_parameters()` gives
    them, or a list of groups: dicts with such `"params"` and settings of their own, as in
    `[{"params": model.body}, {"params": model.head, "lr": 1e-4}]`.

    `optimizer.lr = 0.01` changes the learning rate of the groups that have none of their own; compiled steps go on
    with the new one, without another trace. All that changes (moments, `count`, learning rates) is in `state_dict()`.

    Every rule has `maximize`, which ascends, and `weight_decay` \(\lambda\), whose form is `decay` (book, section
    9.2.1): "coupled" adds \(\lambda w\) to the gradient, as a penalty \(\frac\lambda2\|w\|^2\) would; "decoupled"
    multiplies the weights by \(1 - \eta\lambda\) beside the step, as AdamW does; "independent" by \(1 - \lambda\), as
    the book prints it, whatever the learning rate. `wl.optim.convert_weight_decay` goes from one to another.

    Parameters of 16 bits have their state, and a copy of themselves, in float32, so that small steps add up.

    A subclass defines `init` (which state a parameter has), `scalars` (numbers that one step shares) and `update`; the
    arguments of its constructor are its settings, and it hands all of them on.
    """

    count: Buffer  # the steps taken
    groups: tuple[Group, ...]

    def __init__(self, parameters: Parameters, lr: float | Tensor, **settings: object) -> None:
        name = type(self).__name__
        settings = {**settings, **{k: v for k, v in DEFAULTS.items() if k not in settings}}
        self.lr = _rate(name, lr)
        self.count = Buffer(0, dtypes.int64)
        listed = _listed_if_iterator(parameters)
        groups = []
        for given in listed if _is_groups(listed) else [{"params": listed}]:
            own = {key: value for key, value in given.items() if key not in ("params", "lr")}
            if unknown := [key for key in own if key not in settings]:
                known = ", ".join(["'params'", "'lr'", *map(repr, settings)])
                raise InputError(f"{name}: a group has the setting {unknown[0]!r}.", f"settings among {known}")
            rate = _rate(name, given["lr"]) if "lr" in given else self.lr
            params = _listed_if_iterator(given["params"])
            group = Group(rate, _named(name, params), {**settings, **own})
            for what, limit in {**COMMON, **self._limits}.items():
                group[what] = limit(name, what, group[what])
            self.check(group)
            groups.append(group)
        self.groups = tuple(groups)
        self._ordered = len(groups) == 1 and isinstance(params, (list, tuple))  # a list knows no names, only an order
        found = [p for group in self.groups for p in group.params.values()]
        if not found:
            raise InputError(f"{name}: there are no parameters to optimize.", "a model with parameters, or a list")
        if len({id(p) for p in found}) < len(found):
            raise InputError(f"{name}: a parameter is in two groups.", "each parameter in one group")
        for group in self.groups:
            group.shared = {kind: Buffer(value) for kind, value in self.init_shared(group).items()}
            for path, parameter in group.params.items():
                if not self._takes_complex:
                    refuse_complex(name, parameter)
                made = {kind: _widened(value) for kind, value in self.init(group, parameter).items()}
                if dtypes.is_half(parameter.dtype):
                    made["master"] = _widened(parameter)
                for kind, value in made.items():
                    group.state.setdefault(kind, {})[path] = Buffer(value)

    # --- what a subclass defines

    _limits: ClassVar[Limits] = {}  # what its settings may be
    _takes_complex = True

    def check(self, group: Group) -> None:
        """Refuse settings that make no sense together."""

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        """The state of a parameter before the first step, by kind."""
        return {}

    def init_shared(self, group: Group) -> dict[str, Tensor]:
        """The state that the parameters of a group share, before the first step; `scalars` may change it."""
        return {}

    def scalars(self, group: Group) -> Scalars:
        """Numbers that all updates of a step share, in float64; `count` is the number of this step, from 1."""
        return (group.lr,)

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        """The new value of a parameter; new state goes into the dict.

        Here `w` and `g` have been through `maximize` and weight decay.
        """
        raise ModuleError(
            f"{type(self).__name__}: has no update rule.", "def update(self, group, w, g, state, *scalars)"
        )

    # --- steps

    def step(self, grads: object = None) -> None:
        """Move the parameters by their gradients: those of `wl.grad`, or without them those that `backward()` left.

        `grads` is a dict from parameter names, or a tree like the one of the parameters; for an optimizer made from
        a list, any tree with the gradients in the order of the list. Parameters that are not trainable stay.
        """
        if few_parameters.again(self, grads):
            return
        chosen = self._left_by_backward() if grads is None else self._matched(grads)
        every = [chosen.get(id(p)) for group in self.groups for p in group.params.values()]
        if not compiled.advance(self, every, grads):
            with no_grad():
                self._advance(every)

    def _advance(self, gradients: Sequence[Tensor | None]) -> None:
        """One step of all groups, with a gradient for each of their parameters in order; None: it stays."""
        assign(self.count, read(self.count) + 1)
        left = iter(gradients)
        for group in self.groups:
            self._step_group(group, dict(zip(group.params, left, strict=False)))

    def _step_group(self, group: Group, gradients: dict[str, Tensor | None]) -> None:
        exact, keep = self.scalars(group), self.kept(group)
        cast: dict[dtypes.DType, tuple[Scalars, Scalars]] = {}  # rounded once per dtype, not once per parameter
        for name, parameter in group.params.items():
            g = gradients[name]
            if g is None:
                continue
            cells = {kind: buffers[name] for kind, buffers in group.state.items() if name in buffers}
            before = {kind: read(cell) for kind, cell in cells.items()}
            values = dict(before)
            w = read(parameter)
            master = values.pop("master", None)
            if master is not None:
                # somebody else may have set the parameter since
                w = arrays.where(arrays.astype(master, w.dtype) == w, master, arrays.astype(w, master.dtype))
                g = arrays.astype(g, master.dtype)
            if w.dtype not in cast:
                real = dtypes.real_of(w.dtype)
                cast[w.dtype] = _rounded(exact, real), _rounded(keep, real)
            scalars, kept = cast[w.dtype]
            w, g = self.decayed(group, w, g, *kept)
            try:
                new = self.update(group, w, g, values, *scalars)
            except KeyError as missing:
                raise InputError(
                    f"{type(self).__name__}: a setting that was changed needs the state {missing}, which was not made.",
                    "a new optimizer with these settings",
                ) from missing
            if master is not None:
                values["master"] = new
                new = arrays.astype(new, parameter.dtype)
            assign(parameter, new)
            for kind, cell in cells.items():
                if values[kind] is not before[kind]:
                    assign(cell, values[kind])

    def kept(self, group: Group) -> Scalars:
        """What a decay beside the step leaves of the weights, in float64; empty without one."""
        rate = group["weight_decay"]
        if not rate or group["decay"] == "coupled":
            return ()
        return (1.0 - group.lr * rate if group["decay"] == "decoupled" else arrays.full_like(group.lr, 1.0 - rate),)

    def decayed(self, group: Group, w: Tensor, g: Tensor, *keep: Tensor) -> tuple[Tensor, Tensor]:
        """The weights and the gradient that the rule sees."""
        if group["maximize"]:
            g = -g
        if group["weight_decay"] and group["decay"] == "coupled":
            g = g + group["weight_decay"] * w
        return keep[0] * w if keep else w, g

    def _left_by_backward(self) -> dict[int, Tensor]:
        found = {id(p): p.grad for group in self.groups for p in group.params.values() if p.trainable}
        left = {key: g for key, g in found.items() if g is not None}
        if not left:
            raise GradientError(
                f"{type(self).__name__}.step: no parameter has a gradient.",
                "loss.backward() first, or step(grads) with the gradients of wl.grad",
            )
        return left

    def _matched(self, grads: object) -> dict[int, Tensor]:
        """The gradients by the identity of their parameters."""
        if type(grads) is dict and set(map(type, grads.values())) == {Tensor}:
            given = {str(name): g for name, g in grads.items()}  # as `grad` gives them
        else:
            given = {".".join(map(str, path)): g for path, g in trees.flatten_with_paths(grads)[0]}
        for table in self._tables():
            if given.keys() >= table.keys():
                return {id(p): _checked(self, name, p, given[name]) for name, p in table.items()}
        trained = {name: p for name, p in self.groups[0].params.items() if p.trainable}
        if self._ordered and len(trained) == len(given):
            if isinstance(grads, dict):  # flattened by key, but made in the order of the parameters
                given = {str(name): g for name, g in grads.items()}
            pairs = zip(trained.items(), given.items(), strict=True)
            return {id(p): _checked(self, name, p, g) for (_, p), (name, g) in pairs}
        names = [name for table in self._tables()[:1] for name in table]
        missing = [name for name in names if name not in given]
        raise GradientError(
            f"{type(self).__name__}.step: received gradients for {_listed(sorted(given))}; "
            f"there is none for {_listed(missing)}.",
            "gradients with respect to the module, or the tree of parameters, that the optimizer was made from; "
            'for groups, "params" with the names of the whole model: pairs of model.named_parameters()',
        )

    def _tables(self) -> list[dict[str, Parameter]]:
        """The names under which gradients of the trainable parameters may come: their own, or with the group's."""
        own: list[tuple[str, Parameter]] = []
        numbered: list[tuple[str, Parameter]] = []
        for i, group in enumerate(self.groups):
            trained = [(name, p) for name, p in group.params.items() if p.trainable]
            own += trained
            numbered += [(f"{i}.{name}", p) for name, p in trained]
        candidates = [own, numbered] if len(self.groups) > 1 else [own]
        return [dict(pairs) for pairs in candidates if len(dict(pairs)) == len(pairs)]

    # --- state

    @property
    def param_groups(self) -> tuple[Group, ...]:
        """`groups`, by the name that it has elsewhere."""
        return self.groups

    def _state(self) -> Module:
        """All that changes but the parameters, as a module."""
        holder = State()
        holder.lr, holder.count = self.lr, self.count
        holder.groups = [{"lr": group.lr, **group.shared, **group.state} for group in self.groups]
        return holder

    def _buffers_of_rule(self) -> list[Buffer]:
        """The state besides the learning rates and the count of steps."""
        cells = [cell for group in self.groups for cell in group.shared.values()]
        return cells + [cell for group in self.groups for kind in group.state.values() for cell in kind.values()]

    def state_size(self) -> int:
        """The numbers that the rule remembers, besides the parameters: none for gradient descent, twice the
        parameters for Adam. Book, section 2.3.2.

        >>> import wonderland as wl
        >>> model = wl.nn.Linear(10, 4)
        >>> makes = (wl.optim.SGD, wl.optim.HeavyBall, wl.optim.Adam)
        >>> [make(model).state_size() / model.num_parameters() for make in makes]
        [0.0, 1.0, 2.0]
        """
        return sum(cell.size for cell in self._buffers_of_rule())

    def state_bytes(self) -> int:
        """The bytes of what the rule remembers."""
        return sum(cell.size * cell.dtype.itemsize for cell in self._buffers_of_rule())

    def effective_lr(self) -> dict[str, Tensor]:
        r"""What a constant gradient of size one would now move every weight per step, by the names of the parameters.

        >>> import wonderland as wl
        >>> w = wl.nn.Parameter([1.0])
        >>> wl.optim.SGD([w], lr=0.1, momentum=0.9).effective_lr()["0"]
        tensor(1., dtype=float64)

        With momentum \(\gamma\) it is \(\eta/(1-\gamma)\), the limit; rules that adapt divide by what they have seen.
        """
        found: dict[str, Tensor] = {}
        for i, group in enumerate(self.groups):
            for name in group.params:
                state = {kind: read(buffers[name]) for kind, buffers in group.state.items() if name in buffers}
                key = name if len(self.groups) == 1 else f"{i}.{name}"
                found[key] = self.effective(group, state)
        return found

    def effective(self, group: Group, state: dict[str, Tensor]) -> Tensor:
        """The effective learning rate of one parameter, from its state."""
        return read(group.lr)

    def state_dict(self) -> dict[str, Tensor]:
        """The learning rates, the count of steps and the moments by path; not the parameters, nor fixed settings.

        >>> import wonderland as wl
        >>> optimizer = wl.optim.SGD(wl.nn.Linear(2, 3, bias=False), lr=0.1, momentum=0.9)
        >>> list(optimizer.state_dict())
        ['lr', 'count', 'groups.0.momentum.weight']
        """
        return state_dict(self._state())

    def load_state_dict(self, values: Mapping[str, ArrayLike], strict: bool = True) -> Loaded:
        """Put a saved state into an optimizer that was made with the same settings."""
        return load_state_dict(self._state(), values, strict)

    # --- as a tree

    def __tree_steady__(self) -> bool:
        """Nobody changes the dicts of a group in place, so that changes show in `structure_version`."""
        return not self._hooks

    def __repr__(self) -> str:
        groups = ", ".join(f"Group({group.extra_repr()})" for group in self.groups)
        inside = self.groups[0].extra_repr() if len(self.groups) == 1 else groups
        return f"{type(self).__name__}({inside})"


class State(Module):
    """The state of an optimizer on its way to or from a dict."""

    lr: Buffer
    count: Buffer
    groups: list[dict[str, object]]


def _widened(value: Tensor) -> Tensor:
    """State in 16 bits would lose small squares and small steps."""
    return arrays.astype(value, dtypes.float32) if dtypes.is_half(value.dtype) else value


def _rounded(scalars: Scalars, dtype: dtypes.DType) -> Scalars:
    return tuple([arrays.astype(s, dtype) for s in scalars])


def _rate(name: str, lr: Any) -> Buffer:
    """A learning rate in a cell, in float64 so that parameters of any dtype get it exactly."""
    check_range(name, "lr", lr, lambda v: v >= 0, "a learning rate, 0 or more")
    return Buffer(float(lr), dtypes.float64)


def _listed_if_iterator(parameters: Any) -> Any:
    return list(parameters) if isinstance(parameters, Iterator) else parameters


def _is_groups(parameters: object) -> bool:
    return (
        isinstance(parameters, (list, tuple))
        and bool(parameters)
        and all(isinstance(entry, dict) and "params" in entry for entry in parameters)
    )


def _named(name: str, parameters: Any) -> dict[str, Parameter]:
    """The parameters of a module or a tree by name; one that is reached twice once."""
    if isinstance(parameters, (list, tuple)) and parameters and all(map(_is_pair, parameters)):
        parameters = dict(parameters)
    found: dict[str, Parameter] = {}
    seen: set[int] = set()
    for path, leaf in trees.flatten_with_paths(parameters, open_objects=False)[0]:
        prefix = ".".join(map(str, path))
        inside = leaf.named_parameters() if isinstance(leaf, Module) else [("", leaf)]
        for inner, parameter in inside:
            if not isinstance(parameter, Parameter):
                raise InputError(
                    f"{name}: a {type(parameter).__name__} is not a parameter.",
                    "a model, model.parameters(), or tensors wrapped in wl.nn.Parameter",
                )
            if id(parameter) not in seen:
                seen.add(id(parameter))
                found[".".join(part for part in (prefix, inner) if part) or "0"] = parameter
    return found


def _is_pair(entry: object) -> bool:
    return isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)


def _checked(optimizer: Optimizer, name: str, parameter: Parameter, g: ArrayLike) -> Tensor:
    if not isinstance(g, Tensor):
        g = arrays.asarray(g, dtype=parameter.dtype)
    if (g.shape, g.dtype) != (parameter.shape, parameter.dtype):
        raise ShapeError(
            f"{type(optimizer).__name__}.step: the gradient {name!r} is {g.dtype}{list(g.shape)}, its parameter "
            f"{parameter.dtype}{list(parameter.shape)}.",
            "gradients in the order and with the shapes of the parameters",
        )
    return g


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:3]))
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown or "nothing"
