"""The Mamba-2 block: one decay for each head, and a gated norm before the last layer. Book, section 13.4.3."""

from __future__ import annotations

from ... import arrays
from ...core.arguments import as_int, as_number
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.linear import Linear
from ..layers.weighted import as_weight_dtype
from ..module.lazy import at_once
from ..module.module import Module
from ..module.parameter import Parameter
from ..sequences.state_layer import State, StateLayer
from .causal_conv import CausalDepthwiseConv
from .selective import start_step_bias
from .ssd import MODES, ssd

__all__ = ["GatedRMSNorm", "Mamba2Block"]


class GatedRMSNorm(Module):
    r"""\(\mathrm{RMSNorm}(x \odot \mathrm{silu}(z))\), the mean of squares within each of `groups` groups of features.

    >>> import wonderland as wl
    >>> wl.nn.GatedRMSNorm(4)(wl.ones(4), wl.ones(4))
    tensor([0.9999906, 0.9999906, 0.9999906, 0.9999906])
    """

    def __init__(self, features: int, groups: int = 1, eps: float = 1e-5, dtype: DTypeLike | None = None) -> None:
        self.features, self.groups = (
            as_int("GatedRMSNorm", "features", features, 1),
            as_int("GatedRMSNorm", "groups", groups, 1),
        )
        if self.features % self.groups:
            raise InputError(f"GatedRMSNorm: {features} features in {groups} groups.", "groups of one size")
        self.eps = eps
        self.weight = Parameter(arrays.ones(self.features, dtype=dtype))

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        h, size = x * F.silu(z), self.features // self.groups
        parts = arrays.reshape(h, (*h.shape[:-1], self.groups, size))
        return arrays.reshape(F.rms_norm(parts, (size,), None, self.eps), h.shape) * self.weight

    def extra_repr(self) -> str:
        return f"{self.features}, groups={self.groups}, eps={self.eps}"


class Mamba2Block(StateLayer):
    r"""\(\mathrm{norm}(\mathrm{SSD}(\sigma(\mathrm{conv}(X W_x, X W_B, X W_C))),\; X W_z)\, W_o\). Book, 13.4.3.

    >>> import wonderland as wl
    >>> block = wl.nn.Mamba2Block(16, heads=4, state=8)
    >>> y, cache = block.extend(wl.ones((2, 5, 16)), None)
    >>> y.shape, cache.window.shape, cache.s.shape  # (b, k - 1, d + 2 g n) and (b, heads, d/heads, n), d = 2 e
    ((2, 5, 16), (2, 3, 48), (2, 4, 8, 8))
    >>> block.num_parameters()  # e (2 d + 2 g n + h) + (k + 1)(d + 2 g n) + 3 h + d + d e
    2140

    (..., time, e) to the same. All that a token chooses, gate, values, B, C and the step of each head, comes from one
    linear layer, and the transition of a head is one number: so the state can be larger, and chunks of tokens are
    products of matrices (see `ssd`). Heads share the B and C of their group. `mode` is "chunked" or "loop", `chunk` the
    size of the chunks.
    """

    def __init__(
        self,
        e: int,
        heads: int,
        state: int = 64,
        *,
        expand: float = 2,
        groups: int = 1,
        conv: int = 4,
        activation: ActivationLike = "silu",
        bias: bool = False,
        conv_bias: bool = True,
        eps: float = 1e-5,
        chunk: int = 64,
        mode: str = "chunked",
        step_min: float = 0.001,
        step_max: float = 0.1,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "Mamba2Block"
        self.e, self.heads = as_int(name, "e", e, 1), as_int(name, "heads", heads, 1)
        self.state, self.groups = as_int(name, "state", state, 1), as_int(name, "groups", groups, 1)
        d = int(as_number(name, "expand", expand) * self.e)
        if d % self.heads or self.heads % self.groups:
            raise InputError(
                f"{name}: {d} units in {heads} heads in {groups} groups.", "heads and groups that divide them"
            )
        if mode not in MODES:
            raise InputError(f"{name}: mode={mode!r}.", "'chunked' or 'loop'")
        self.inner, self.chunk, self.mode = d, as_int(name, "chunk", chunk, 1), mode
        kind, drawn = as_weight_dtype(name, dtype), take_key(name, key)
        keys = split(drawn, 4)
        mixed = d + 2 * self.groups * self.state
        self.input = Linear(self.e, d + mixed + self.heads, bias, dtype=dtype, key=keys[0])
        self.conv = CausalDepthwiseConv(mixed, conv, conv_bias, dtype=dtype, key=keys[1])
        self.activation = as_activation(name, activation)
        with at_once(drawn):
            self.step_bias = Parameter(start_step_bias((self.heads,), step_min, step_max, keys[2], kind))
            self.A_log = Parameter(arrays.log(arrays.astype(arrays.arange(1, self.heads + 1), kind)))
            self.D = Parameter(arrays.ones(self.heads, dtype=kind))
        self.norm = GatedRMSNorm(d, self.groups, eps, dtype=dtype)
        self.output = Linear(d, self.e, bias, dtype=dtype, key=keys[3])

    def features(self) -> int:
        return self.e

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return self.conv.state_shapes() | {"s": (self.heads, self.inner // self.heads, self.state)}

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        (b, t, _), d, h, g, n = x.shape, self.inner, self.heads, self.groups, self.state
        all_of_it = self.input(x)
        gate, mixed, steps = all_of_it[..., :d], all_of_it[..., d:-h], all_of_it[..., -h:]
        mixed, window = self.conv.run(mixed, state, real)
        mixed = self.activation(mixed)
        delta = arrays.softplus(steps + self.step_bias)  # (b, t, h)
        if real is not None:  # a step of size 0 leaves the state as it is
            delta = arrays.where(real[..., None], delta, 0.0)
        values = arrays.reshape(mixed[..., :d], (b, t, h, d // h))
        B = arrays.reshape(mixed[..., d : d + g * n], (b, t, g, n))
        C = arrays.reshape(mixed[..., d + g * n :], (b, t, g, n))
        A = -arrays.exp(self.A_log)
        y, s = ssd(values, delta, A, B, C, self.D, state["s"], chunk=self.chunk, mode=self.mode)
        return self.output(self.norm(arrays.reshape(y, (b, t, d)), gate)), window | {"s": s}

    def extra_repr(self) -> str:
        return f"{self.e}, heads={self.heads}, state={self.state}, groups={self.groups}"
