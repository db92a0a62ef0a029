"""The formulas of one step, on tensors: simple units, GRU, LSTM and its relatives, Li-GRU. Book, section 13.2.

All take u, what the inputs give to the gates, side by side (..., gates x n), and the state before the step (..., n),
and return the state after it with the gates, which cost nothing more. Cells and layers compute with them.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import arrays
from ...core.tensor import Tensor

Gates = dict[str, Tensor]


class Peepholes(NamedTuple):
    """Weights (n,) by which the gates of an LSTM see its memory: i and f that before the step, o that after it."""

    i: Tensor | None = None
    f: Tensor | None = None
    o: Tensor | None = None


BLIND = Peepholes()


def simple_step(u: Tensor, h: Tensor, weight: Tensor, nonlinearity: str) -> Tensor:
    r"""\(h_t = \phi(u + h_{t-1} U)\) with tanh or relu."""
    u = u + arrays.matmul(h, weight)
    return arrays.tanh(u) if nonlinearity == "tanh" else arrays.relu(u)


def gru_step(
    u: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None, reset: str = "after", update: str = "keeps"
) -> tuple[Tensor, Gates]:
    r"""The gates r, z and the candidate n: \(h_t = (1 - z)\,n + z\,h_{t-1}\).

    With reset="after" \(n = \tanh(u_n + r\,(h_{t-1} U_n + b_n))\), with "before"
    \(n = \tanh(u_n + (r\,h_{t-1}) U_n + b_n)\). With update="updates" the gate z is where the candidate comes in.
    """
    n = h.shape[-1]
    product = weight if reset == "after" else weight[:, : 2 * n]
    v = arrays.matmul(h, product)
    if bias is not None:
        v = v + (bias if reset == "after" else bias[: 2 * n])
    r = arrays.sigmoid(u[..., :n] + v[..., :n])
    z = arrays.sigmoid(u[..., n : 2 * n] + v[..., n : 2 * n])
    if reset == "after":
        new = arrays.tanh(u[..., 2 * n :] + r * v[..., 2 * n :])
    else:
        w = arrays.matmul(r * h, weight[:, 2 * n :])
        new = arrays.tanh(u[..., 2 * n :] + (w if bias is None else w + bias[2 * n :]))
    after = new + z * (h - new) if update == "keeps" else h + z * (new - h)
    return after, {"r": r, "z": z}


def lstm_step(
    u: Tensor,
    h: Tensor,
    c: Tensor,
    weight: Tensor,
    peepholes: Peepholes = BLIND,
    coupled: bool = False,
    projection: Tensor | None = None,
) -> tuple[Tensor, Tensor, Gates]:
    r"""\(c_t = f\,c_{t-1} + i\,g,\ h_t = o\tanh c_t\), from u in the order i, f, g, o, or f, g, o with i = 1 - f."""
    n = c.shape[-1]
    u = u + arrays.matmul(h, weight)
    at = 0 if coupled else n  # where the part of f begins
    i = None if coupled else arrays.sigmoid(_seeing(u[..., :n], c, peepholes.i))
    f = arrays.sigmoid(_seeing(u[..., at : at + n], c, peepholes.f))
    g = arrays.tanh(u[..., at + n : at + 2 * n])
    o = u[..., at + 2 * n :]
    if peepholes.o is None:
        o = arrays.sigmoid(o)
    i = 1 - f if i is None else i
    c = f * c + i * g
    if peepholes.o is not None:
        o = arrays.sigmoid(_seeing(o, c, peepholes.o))
    h = o * arrays.tanh(c)
    if projection is not None:
        h = arrays.matmul(h, projection)
    return h, c, {"i": i, "f": f, "o": o}


def _seeing(u: Tensor, c: Tensor, weight: Tensor | None) -> Tensor:
    return u if weight is None else u + c * weight


def light_step(u: Tensor, h: Tensor, weight: Tensor, nonlinearity: str, update: str) -> tuple[Tensor, Gates]:
    r"""One gate z and a candidate n: \(h_t = z\,n + (1 - z)\,h_{t-1}\), or with update="keeps" the other way round."""
    n = h.shape[-1]
    u = u + arrays.matmul(h, weight)
    z, new = arrays.sigmoid(u[..., :n]), u[..., n:]
    if nonlinearity != "linear":
        new = arrays.relu(new) if nonlinearity == "relu" else arrays.tanh(new)
    # both products, rather than a difference: with z = 0 or z = 1 one of the two counts for nothing, to the last bit
    after = z * new + (1 - z) * h if update == "updates" else z * h + (1 - z) * new
    return after, {"z": z}
