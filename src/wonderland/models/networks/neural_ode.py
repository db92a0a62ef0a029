"""Neural ordinary differential equations: residual networks with infinitely many layers. Book, section 9.4.2.

residual network   x_{t+1} = x_t + f_t(x_t)          layers t = 0, 1, ..., T - 1
shared weights     x_{t+1} = x_t + h f(x_t, t h)     Euler's method
neural ODE         dx/dt   = f(x, t)                 any solver, from x(0) = x to x(T)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_function, as_int
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.layers.fully_connected import ActivationLike
from ...nn.module.module import Module
from ...ode.adjoint import odeint_adjoint
from ...ode.integration import odeint
from .mlp import MLP


class ODEFunc(Module):
    r"""\(f(x, t)\) as a multilayer perceptron of x and t: (..., features) to (..., features). Book, section 9.4.2.

    >>> import wonderland as wl
    >>> f = wl.models.ODEFunc(2, 16)
    >>> f(wl.ones((5, 2)), 0.5).shape, f.num_parameters()
    ((5, 2), 98)

    The time is one more input of the first layer, unless `time=False`. `hidden` is a width or several.
    """

    def __init__(
        self,
        features: int,
        hidden: int | Sequence[int] = 64,
        activation: ActivationLike = "tanh",
        time: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.features = as_int("ODEFunc", "features", features, 1)
        self.time = bool(time)
        self.mlp = MLP(self.features + self.time, hidden, self.features, activation, dtype=dtype, key=key)

    def forward(self, x: ArrayLike, t: ArrayLike) -> Tensor:
        x = as_real("ODEFunc", x)
        if not x.ndim or x.shape[-1] != self.features:
            raise ShapeError(f"ODEFunc: a state of shape {x.shape}.", f"(..., {self.features})")
        if self.time:
            t = arrays.broadcast_to(arrays.astype(arrays.asarray(t), x.dtype), (*x.shape[:-1], 1))
            x = arrays.concat([x, t], axis=-1)  # (..., features + 1)
        return self.mlp(x)


class Autonomous(Module):
    """f(x) as a function of x and t which does not look at the time.

    >>> import wonderland as wl
    >>> wl.models.Autonomous(wl.tanh)(0.0, 5.0)
    tensor(0.)
    """

    def __init__(self, f: Callable[..., Tensor]) -> None:
        self.f = as_function("Autonomous", f)

    def forward(self, x: ArrayLike, t: ArrayLike) -> Tensor:
        return self.f(x)


class NeuralODE(Module):
    r"""\(x(T)\) for \(\dot x = f(x, t),\ x(0) = x\): a layer that keeps the shape. Book, section 9.4.2.

    >>> import wonderland as wl
    >>> layer = wl.models.NeuralODE(wl.models.ODEFunc(2, 16))
    >>> x = wl.ones((5, 2))
    >>> layer(x).shape, layer.trajectory(x, wl.linspace(0.0, 1.0, 11)).shape
    ((5, 2), (11, 5, 2))

    f is a module or function of x and t, as `ODEFunc` is; `Autonomous(f)` makes one of a function of x. `T`, `method`,
    `steps`, `rtol`, `atol` and `max_steps` are as in `wl.ode.odeint`. With `adjoint` gradients come from the adjoint
    equation, see `wl.ode.odeint_adjoint`: their memory does not grow with the number of steps. Without it they pass
    through the solver's steps, which needs steps of known number under `wl.jit`: `steps=...`.

    Two solutions never cross, so that the layer is invertible: `inverse(y)` integrates from T back to 0.
    """

    def __init__(
        self,
        f: Callable[..., Tensor],
        T: float = 1.0,
        method: str = "dopri5",
        steps: int | None = None,
        rtol: float = 1e-4,
        atol: float = 1e-5,
        adjoint: bool = False,
        max_steps: int = 10_000,
    ) -> None:
        self.f = as_function("NeuralODE", f)
        self.T = T
        self.method, self.steps, self.max_steps = method, steps, max_steps
        self.rtol, self.atol = rtol, atol
        self.adjoint = bool(adjoint)

    def forward(self, x: ArrayLike) -> Tensor:
        return self._solve(x, self.T)

    def trajectory(self, x: ArrayLike, t: ArrayLike) -> Tensor:
        """The states at times (n,), along a new first axis; x is the one at the first of them."""
        return self._solve(x, t)

    def inverse(self, y: ArrayLike) -> Tensor:
        """The x of which the layer makes y, up to the error of the solver."""
        return self._solve(y, arrays.asarray([self.T, 0.0]))[-1]

    def _solve(self, x: ArrayLike, t: ArrayLike) -> Tensor:
        settings: dict[str, Any] = {"steps": self.steps, "rtol": self.rtol, "atol": self.atol}
        solve = odeint_adjoint if self.adjoint else odeint
        return solve(self.f, x, t, self.method, max_steps=self.max_steps, **settings)

    def extra_repr(self) -> str:
        steps = f"steps={self.steps}" if self.steps else f"rtol={self.rtol}, atol={self.atol}"
        return f"T={self.T}, method={self.method!r}, {steps}, adjoint={self.adjoint}"
