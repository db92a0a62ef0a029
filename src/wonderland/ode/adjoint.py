"""`odeint_adjoint`: gradients of solutions by a second equation, which runs backwards. Book, section 9.4.2."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import arrays
from ..core import trees
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..nn.module.functional_call import functional_call
from ..nn.module.module import Module
from ..transforms.control.loops import scan
from ..transforms.custom import custom_vjp
from ..transforms.reverse import vjp
from .integration import Problem, Solver
from .tableaus import Leaves

Theta = tuple[dict[str, Tensor], tuple[object, ...]]  # the parameters of a module, and further arguments


def odeint_adjoint(
    f: Callable[..., object],
    x0: object,
    t: ArrayLike,
    method: str = "dopri5",
    *,
    steps: int | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-7,
    args: tuple[object, ...] = (),
    first_step: float | None = None,
    max_steps: int = 10_000,
) -> Any:
    r"""`odeint` with gradients by the adjoint equation: no memory for steps, whatever their number. Book, 9.4.2.

    >>> import wonderland as wl
    >>> decay = lambda x, t, rate: -rate * x
    >>> wl.grad(lambda rate: wl.ode.odeint_adjoint(decay, 1.0, 1.0, args=(rate,)))(2.0)  # -exp(-2)
    tensor(-0.1353)

    With \(a(t) = \partial L / \partial x(t)\) the equations

    \(\dot a = -a^\top \frac{\partial f}{\partial x}, \quad \frac{\partial L}{\partial \theta} = \int_{t_0}^{t_1} a^\top
    \frac{\partial f}{\partial \theta}\,dt\)

    are solved from the last time back to the first, together with that of x, by the same method and with the same
    settings. If several times were asked for, x starts anew at each of them.

    There are gradients for x0, the times, the parameters of f if it is a module, and `args`: trees of floating tensors
    that f gets after x and t. What else f refers to is constant: pass it by `args`. Gradients are those of the
    solution, not of the steps that approximate it; the two agree as the steps get small. It works under `wl.jit`,
    also with adaptive steps, and gradients of gradients do; for forward mode there is `odeint`.
    """
    problem = Problem("odeint_adjoint", f, x0, t)
    solver = Solver("odeint_adjoint", method, steps, problem.at_end, rtol, atol, first_step, max_steps, False)
    parameters = {}
    if isinstance(f, Module):
        parameters = {path: arrays.asarray(p) for path, p in f.named_parameters() if p.trainable}
    count = len(problem.leaves)

    def field(x: Leaves, t: Tensor, theta: Theta) -> Leaves:
        values, args = theta
        call = functools.partial(functional_call, f, values) if values else f
        return problem.slopes(lambda x, t: call(x, t, *args))(x, t)

    @custom_vjp
    def solve(x0: Leaves, times: Tensor, theta: Theta) -> tuple[Leaves, Leaves]:
        return solver(lambda x, t: field(x, t, theta), x0, times)

    def forward(
        x0: Leaves, times: Tensor, theta: Theta
    ) -> tuple[tuple[Leaves, Leaves], tuple[Leaves, Leaves, Tensor, Theta]]:
        last, others = solve(x0, times, theta)
        return (last, others), (x0, others, times, theta)

    def backward(
        residuals: tuple[Leaves, Leaves, Tensor, Theta], cts: tuple[Leaves, Leaves]
    ) -> tuple[Leaves, Tensor, Theta]:
        x0, others, times, theta = residuals
        ct_last, ct_others = cts
        weights, structure = trees.flatten(theta)
        zeros = [arrays.zeros_like(w) for w in weights]

        def slopes(state: Leaves, t: Tensor) -> Leaves:
            x, a = state[:count], state[count : 2 * count]
            k, pull = vjp(lambda x, theta: field(x, t, theta), x, theta)
            back_x, back_theta = pull([-part for part in a])
            return [*k, *back_x, *trees.flatten(back_theta)[0]]

        def interval(
            carry: tuple[Leaves, Leaves], here: tuple[Tensor, Tensor, Leaves, Leaves]
        ) -> tuple[tuple[Leaves, Leaves], Tensor]:
            a, sums = carry
            start, end, x, ct = here
            a = [part + c for part, c in zip(a, ct, strict=True)]
            speed = _inner(ct, field(x, end, theta))
            state, _ = solver(slopes, [*x, *a, *sums], arrays.stack([end, start]))
            return (state[count : 2 * count], state[2 * count :]), speed

        here = (times[:-1], times[1:], others, ct_others)
        # the result at the end counts among those of the last time
        (a, sums), speeds = scan(interval, (ct_last, zeros), here, reverse=True)
        speeds = _plus_last(speeds, _inner(ct_last, field([xs[-1] for xs in others], times[-1], theta)))
        first = -_inner(a, field(x0, times[0], theta))
        ct_times = arrays.concat([arrays.expand_dims(first, 0), speeds])
        return a, arrays.astype(ct_times, times.dtype), trees.unflatten(structure, sums)

    solve.defvjp(forward, backward)
    return problem.results(*solve(problem.leaves, problem.times, (parameters, tuple(args))))


def _inner(a: Leaves, b: Leaves) -> Tensor:
    """The sum of the products of all elements."""
    products = [arrays.sum(x * y) for x, y in zip(a, b, strict=True)]
    total = products[0]
    for product in products[1:]:
        total = total + product
    return total


def _plus_last(x: Tensor, more: Tensor) -> Tensor:
    return arrays.concat([x[:-1], arrays.expand_dims(x[-1] + more, 0)])
