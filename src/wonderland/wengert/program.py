"""A trace as a program without branches: replay it, push tangents forward, pull adjoints back."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .. import arrays
from ..core import trees
from ..core.dtypes import is_floating, is_inexact
from ..core.errors import GradientError, InputError
from ..core.primitive import Primitive
from ..core.tangents import tangent_of
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives.creation import ones_like, zeros_like
from ..transforms.inputs import check_like
from ..transforms.reverse import vjp
from . import tables


@dataclass(frozen=True, eq=False)
class Step:
    """One line of a trace: `name = primitive(*args, **params)`. An argument is a name or a constant."""

    name: str
    primitive: Primitive
    args: tuple[str | Tensor, ...]
    params: Mapping[str, object]
    value: Any  # a list for a primitive with several results

    @property
    def outputs(self) -> dict[str, Tensor]:
        """The results by name; several of them are called v3[0], v3[1], ..."""
        if not self.primitive.multiple:
            return {self.name: self.value}
        return {f"{self.name}[{i}]": value for i, value in enumerate(self.value)}

    @property
    def uses(self) -> tuple[str, ...]:
        """The names among the arguments."""
        return tuple(arg for arg in self.args if isinstance(arg, str))

    @property
    def expression(self) -> str:
        """The right-hand side as text."""
        return tables.expression(self)

    def __str__(self) -> str:
        return f"{self.name} = {self.expression}"


@dataclass(frozen=True, eq=False)
class Contribution:
    """One addition of the reverse sweep: `step` adds `value` to the adjoint of `target`, now `total`.

    Between scalars, `partial` is the derivative of the step's result with respect to the target, and value
    is the result's adjoint times partial.
    """

    step: Step
    target: str
    partial: Tensor | None
    value: Tensor
    total: Tensor


if TYPE_CHECKING:
    from .picture import Drawn as Given  # what is given to the class below from above, see core/giving.py
else:
    Given = object


class Trace(Given):
    """The primitives that a computation ran, with their values; made by `wengert.trace`.

    `inputs` maps names to values, `steps` lists the primitives in order, `outputs` names the results (or
    holds a result that does not depend on the inputs).
    """

    def __init__(
        self,
        inputs: dict[str, Tensor],
        steps: list[Step],
        outputs: list[str | Tensor],
        structure: trees.Structure,
        title: str,
    ) -> None:
        self.inputs = inputs
        self.steps = steps
        self.outputs = outputs
        self.structure = structure
        self.title = title

    def __str__(self) -> str:
        return self.table(forward=False, reverse=False)

    @functools.cached_property
    def values(self) -> dict[str, Tensor]:
        """Every value by name: the inputs, then the results of the steps."""
        found = dict(self.inputs)
        for step in self.steps:
            found |= step.outputs
        return found

    @property
    def value(self) -> Any:
        """What the function returned."""
        known = self.values
        return trees.unflatten(self.structure, [known[o] if isinstance(o, str) else o for o in self.outputs])

    @property
    def scalar(self) -> bool:
        """Whether the result is one real scalar, so that it has a gradient."""
        results = trees.leaves(self.value)
        return len(results) == 1 and results[0].shape == () and is_floating(results[0].dtype)

    # --- the three sweeps

    def replay(self, /, **values: ArrayLike) -> Any:
        """Run the recorded steps again, with other values for some of the inputs.

        >>> import wonderland as wl
        >>> from wonderland import wengert
        >>> t = wengert.trace("x**2 - 1.5*x", x=0.5)
        >>> t.replay(x=1.0).item(), wl.grad(lambda x: t.replay(x=x))(wl.tensor(0.5, dtype=wl.float64)).item()
        (-0.5, -0.5)

        Shapes and types must be those of the recording, and the branches are the recorded ones. The steps
        are ordinary primitives, so all transformations apply.
        """
        known = dict(self.inputs) | self._like_inputs("replay", "value", values)
        for step in self.steps:
            out = step.primitive(*[known[a] if isinstance(a, str) else a for a in step.args], **step.params)
            known |= replace(step, value=out).outputs
        return trees.unflatten(self.structure, [known[o] if isinstance(o, str) else o for o in self.outputs])

    def tangents(self, /, **direction: ArrayLike) -> dict[str, Tensor]:
        r"""Forward mode: the tangent \(\dot v\) of every value, when the inputs move in a direction.

        >>> from wonderland import wengert
        >>> tangents = wengert.trace("log(x1) + x1*x2 - sin(x2)", x1=2, x2=5).tangents(x1=1.0)
        >>> {name: t.item() for name, t in tangents.items()}
        {'x1': 1.0, 'x2': 0.0, 'v1': 0.5, 'v2': 5.0, 'v3': 0.0, 'v4': 5.5, 'v5': 5.5}

        Inputs that are not named stand still. Book, section 6.2.
        """
        if not direction:
            raise GradientError("tangents: no input moves.", "a direction such as trace.tangents(x1=1.0)")
        moved = self._like_inputs("tangents", "tangent", direction)
        tangents = {name: moved.get(name, zeros_like(value)) for name, value in self.inputs.items()}
        values = self.values
        for step in self.steps:
            primals = [values[a] if isinstance(a, str) else a for a in step.args]
            incoming = [tangents.get(a) if isinstance(a, str) else None for a in step.args]
            out = None
            if any(t is not None for t in incoming):
                out = tangent_of(step.primitive, primals, incoming, step.value, dict(step.params))
            outs = out if isinstance(out, list | tuple) else [out] * len(step.outputs)
            for (name, value), t in zip(step.outputs.items(), outs, strict=True):
                if is_inexact(value.dtype):
                    tangents[name] = zeros_like(value) if t is None else t
        return tangents

    def contributions(self, seed: object = None) -> list[Contribution]:
        """Reverse mode: what each step, from the last to the first, adds to the adjoints of its arguments.

        `seed` is the adjoint of the result, 1 for a scalar. Steps that the result does not depend on add
        nothing. Book, section 6.3.
        """
        adjoints = self._seeds(seed)
        values = self.values
        found = []
        for step in reversed(self.steps):
            cts = [adjoints.get(name) for name in step.outputs]
            if all(ct is None for ct in cts):
                continue
            cts = [zeros_like(v) if ct is None else ct for ct, v in zip(cts, step.outputs.values(), strict=True)]
            pull, targets = _pull(step, values)
            partials = _partials(step, values, pull, len(targets))
            for target, part, ct in zip(targets, partials, pull(cts), strict=True):
                total = ct if target not in adjoints else adjoints[target] + ct
                adjoints[target] = total
                found.append(Contribution(step, target, part, ct, total))
        return found

    def adjoints(self, seed: object = None) -> dict[str, Tensor]:
        r"""Reverse mode: the adjoint \(\bar v\), the derivative of the result with respect to every value.

        >>> from wonderland import wengert
        >>> adjoints = wengert.trace("log(x1) + x1*x2 - sin(x2)", x1=2, x2=5).adjoints()
        >>> print(f"{adjoints['x1'].item():.3f} {adjoints['x2'].item():.3f}")
        5.500 1.716

        Zero where the result does not depend on the value. Book, section 6.3.
        """
        found = self._seeds(seed)
        for contribution in self.contributions(seed):
            found[contribution.target] = contribution.total
        inexact = {name: value for name, value in self.values.items() if is_inexact(value.dtype)}
        return {name: found[name] if name in found else zeros_like(value) for name, value in inexact.items()}

    def partials(self, step: Step) -> list[tuple[str, Tensor | None]]:
        """The names that a step uses with its derivative by each of them; None unless both are scalars."""
        values = self.values
        pull, targets = _pull(step, values)
        return list(zip(targets, _partials(step, values, pull, len(targets)), strict=True))

    # --- order

    def levels(self) -> list[list[Step]]:
        """The steps by level: those of one level do not need each other and could run at the same time."""
        level = dict.fromkeys(self.inputs, 0)
        found: list[list[Step]] = []
        for step in self.steps:
            n = 1 + max(level[name] for name in step.uses)
            level |= dict.fromkeys(step.outputs, n)
            if n > len(found):
                found.append([])
            found[n - 1].append(step)
        return found

    def by_level(self) -> Trace:
        """The same trace in the order of the levels, numbered anew."""
        ordered = [step for level in self.levels() for step in level]
        renamed = {name: name for name in self.inputs}
        steps = []
        for old, place in zip(ordered, self.steps, strict=True):
            args = tuple(renamed[a] if isinstance(a, str) else a for a in old.args)
            new = replace(old, name=place.name, args=args)
            renamed |= dict(zip(old.outputs, new.outputs, strict=True))
            steps.append(new)
        outputs = [renamed[o] if isinstance(o, str) else o for o in self.outputs]
        return Trace(self.inputs, steps, outputs, self.structure, self.title)

    # --- what people look at

    def table(self, *, forward: bool = True, reverse: bool = True, precision: int = 6) -> str:
        """The primal trace and, if wanted, the tangent and adjoint traces as aligned text."""
        return tables.text(self, forward=forward, reverse=reverse, precision=precision)

    def data(self, *, forward: bool = True, reverse: bool = True) -> dict[str, Any]:
        """The same as plain Python values, ready for JSON."""
        return tables.data(self, forward=forward, reverse=reverse)

    # --- checks

    def _like_inputs(self, name: str, what: str, values: Mapping[str, ArrayLike]) -> dict[str, Tensor]:
        for key in values:
            if key not in self.inputs:
                raise InputError(f"{name}: the trace has no input {key!r}.", f"one of {', '.join(self.inputs)}")
        made = {
            key: x if isinstance(x, Tensor) else arrays.asarray(x, dtype=self.inputs[key].dtype)
            for key, x in values.items()
        }
        return {key: check_like(name, what, x, self.inputs[key]) for key, x in made.items()}

    def _seeds(self, seed: object) -> dict[str, Tensor]:
        """The adjoints of the outputs before the sweep."""
        known = self.values
        results = [known[o] if isinstance(o, str) else o for o in self.outputs]
        if seed is None:
            if not self.scalar:
                got = ", ".join(f"{r.dtype}{list(r.shape)}" for r in results)
                raise GradientError(
                    f"adjoints: the result is {got}, not one real scalar.",
                    "a seed: the adjoint of the result",
                )
            leaves = [ones_like(results[0])]
        else:
            leaves, structure = trees.flatten(seed, open_objects=False)
            if structure != self.structure:
                raise GradientError(
                    f"adjoints: the seed has structure {structure}, the result {self.structure}.",
                    "a seed in the same tree as the result",
                )
        seeds: dict[str, Tensor] = {}
        for output, result, leaf in zip(self.outputs, results, leaves, strict=True):
            ct = leaf if isinstance(leaf, Tensor) else arrays.asarray(leaf, dtype=result.dtype)
            check_like("adjoints", "seed", ct, result)
            if isinstance(output, str) and is_inexact(result.dtype):
                seeds[output] = seeds[output] + ct if output in seeds else ct
        return seeds


def _pull(step: Step, values: Mapping[str, Tensor]) -> tuple[Any, list[str]]:
    """Reverse mode of one step: from adjoints of its outputs to those of the arguments that it names."""
    places = [i for i, a in enumerate(step.args) if isinstance(a, str) and is_inexact(values[a].dtype)]
    args = [values[a] if isinstance(a, str) else a for a in step.args]

    def alone(*xs: Tensor) -> Any:
        filled = list(args)
        for i, x in zip(places, xs, strict=True):
            filled[i] = x
        return step.primitive(*filled, **step.params)

    targets = [str(step.args[i]) for i in places]
    if not places:
        return (lambda cts: ()), targets
    _, pull = vjp(alone, *[args[i] for i in places])
    return (lambda cts: pull(list(cts) if step.primitive.multiple else cts[0])), targets


def _partials(step: Step, values: Mapping[str, Tensor], pull: Any, count: int) -> list[Tensor | None]:
    scalar = not step.primitive.multiple and step.value.shape == () and is_inexact(step.value.dtype)
    if not scalar or any(values[name].shape != () for name in step.uses):
        return [None] * count
    return list(pull([ones_like(step.value)]))
