"""The Mamba block: a selective state-space model between two linear layers, gated. Book, section 13.4.3."""

from __future__ import annotations

from ... import arrays
from ...core.arguments import as_int, as_number
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.linear import Linear
from ..sequences.state_layer import State, StateLayer
from .causal_conv import CausalDepthwiseConv
from .selective import SelectiveSSM

__all__ = ["MambaBlock"]


class MambaBlock(StateLayer):
    r"""\((\mathrm{SSM}(\sigma(\mathrm{conv}(X W_1))) \odot \sigma(X W_2))\, W_3\). Book, F.13.4.

    >>> import wonderland as wl
    >>> block = wl.nn.MambaBlock(16)
    >>> y, cache = block.extend(wl.ones((2, 5, 16)), None)
    >>> y.shape, cache.window.shape, cache.s.shape  # (b, k - 1, d) and (b, d, n), d = 2 e
    ((2, 5, 16), (2, 3, 32), (2, 32, 16))
    >>> block.num_parameters()  # 2 e d + (k + 1) d + d (r + 2 n) + (r + 1) d + d n + d + d e
    3360

    (..., time, e) to the same. There is no MLP beside it. `input` makes both branches of d = `expand` e units, W_1 |
    W_2; one goes through a causal convolution of `conv` tokens in each channel, the `activation` and a `SelectiveSSM`
    of `state` numbers per channel; the other one, through the activation, gates it. The original \(\sigma\) is "silu";
    the caption in the book has "sigmoid". The norm and the residual are outside: `SSMBlock(MambaBlock(e), e, None,
    norm="rms")`. Reading on keeps the last conv - 1 tokens of the branch and the state. `bias` and `conv_bias` are
    those of the linear layers and of the convolution, the rest is that of `SelectiveSSM`.
    """

    def __init__(
        self,
        e: int,
        expand: float = 2,
        conv: int = 4,
        state: int = 16,
        *,
        rank: int | None = None,
        activation: ActivationLike = "silu",
        bias: bool = False,
        conv_bias: bool = True,
        mode: str = "loop",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.e = as_int("MambaBlock", "e", e, 1)
        d = int(as_number("MambaBlock", "expand", expand) * self.e)
        rank = max(1, -(-self.e // 16)) if rank is None else rank
        keys = split(take_key("MambaBlock", key), 4)
        self.input = Linear(self.e, 2 * d, bias, dtype=dtype, key=keys[0])
        self.conv = CausalDepthwiseConv(d, conv, conv_bias, dtype=dtype, key=keys[1])
        self.activation = as_activation("MambaBlock", activation)
        self.ssm = SelectiveSSM(d, state, rank=rank, mode=mode, dtype=dtype, key=keys[2])
        self.output = Linear(d, self.e, bias, dtype=dtype, key=keys[3])

    def features(self) -> int:
        return self.e

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return self.conv.state_shapes() | self.ssm.state_shapes()

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        branch, gate = arrays.split(self.input(x), 2, axis=-1)  # (b, t, d) each
        branch, window = self.conv.run(branch, state, real)
        y, s = self.ssm.run(self.activation(branch), state, real)
        return self.output(y * self.activation(gate)), window | s
