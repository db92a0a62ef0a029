"""The light gated recurrent unit: one gate between a layer and a skip. Book, section 13.2.3."""

from __future__ import annotations

from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ..init.naming import InitializerLike
from ..layers.normalization import LayerNorm
from .cell import CellStep, State, StateLike
from .cells import one_of
from .steps import light_step
from .weighted_cell import WeightedCell

__all__ = ["LiGRUCell"]

FORMS = {"book": ("linear", "updates"), "original": ("relu", "keeps")}


class LiGRUCell(WeightedCell):
    r"""\(s_i = \gamma\,(A s_{i-1} + B x_i) + (1 - \gamma)\,s_{i-1}\) with a gate \(\gamma\). Book, section 13.2.3.

    \(\gamma = \sigma(V s_{i-1} + U x_i)\)

    >>> import wonderland as wl
    >>> cell = wl.nn.LiGRUCell(3, 5)
    >>> cell(wl.ones((2, 3)), wl.zeros((2, 5))).shape, cell.num_parameters()
    ((2, 5), 80)

    A step is a convex combination of a layer and of the state as it was: where the gate is 0 a unit keeps its value and
    its derivative is 1, where it is 1 the unit is updated. This is `form="book"`: the new value is linear, and nothing
    bounds the state if A does not. `form="original"` (Ravanelli et al. 2018) has a ReLU, and its gate z means the
    opposite, \(h_t = z\,h_{t-1} + (1 - z)\operatorname{relu}(\dots)\); there the inputs are normalized after their
    product, here with `norm="layer"`, since statistics of batches would mix sequences. `nonlinearity` ("linear", "tanh"
    or "relu") and `update` ("updates" or "keeps") choose one by one what the form says.

    The gate stands before the candidate in `weight_ih` (c, 2e) and `weight_hh` (e, 2e): \(2(e^2 + ec)\) parameters,
    with `bias` \(4e\) more, and `norm` has 4e of its own. The rest is as in `RNNCell`.
    """

    blocks = 2

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = False,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        form: str = "book",
        nonlinearity: str | None = None,
        update: str | None = None,
        norm: str | None = None,
        init: InitializerLike | None = None,
    ) -> None:
        name = "LiGRUCell"
        self.form = one_of(name, "form", form, tuple(FORMS))
        phi, sense = FORMS[form]
        self.nonlinearity = one_of(name, "nonlinearity", nonlinearity or phi, ("linear", "tanh", "relu"))
        self.update = one_of(name, "update", update or sense, ("updates", "keeps"))
        if norm not in (None, "layer"):
            raise InputError(f"{name}: norm={norm!r}.", '"layer", or None')
        super().__init__(input_size, hidden_size, bias, dtype, key, init=init)
        self.norm = None if norm is None else LayerNorm(2 * self.hidden_size, dtype=self.dtype)

    def prepare(self, x: Tensor) -> Tensor:
        u = super().prepare(x)
        return u if self.norm is None else self.norm(u)

    def advance(self, u: Tensor, state: State) -> CellStep:
        h, gates = light_step(u, state["h"], self.weight_hh, self.nonlinearity, self.update)
        return CellStep(h, {"h": h}, gates)

    def forward(self, x: ArrayLike, state: StateLike | None = None) -> Tensor:
        return self.take(x, state).state["h"]

    def extra_repr(self) -> str:
        phi, sense = FORMS[self.form]
        head = f"{self.input_size}, {self.hidden_size}"
        return ", ".join([head, *self._changed(bias=False, form="book", nonlinearity=phi, update=sense)])
