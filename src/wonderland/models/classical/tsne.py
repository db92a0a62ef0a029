"""t-SNE: pictures of points in many dimensions, in which neighbours stay neighbours. Notes, section 4.2."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ... import arrays
from ...arrays.similarity import pairwise_sq_distances
from ...core import dtypes
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike
from ...random.continuous import normal
from ...random.streams import take_key
from ...transforms.jit.jit import jit
from ...viz import Curve, plot, scatter
from .pca import PCA
from .points import as_training_points

CAUTION = "t-SNE: distances between groups, and the sizes of groups, mean nothing"


def conditional_affinities(X: ArrayLike, perplexity: float = 30.0, *, steps: int = 100) -> tuple[Tensor, Tensor]:
    r"""\(p_{j|i} \propto \exp(-\|x_i - x_j\|^2 / 2\sigma_i^2)\), and the \(\sigma_i\). Notes, section 4.2.

    >>> import wonderland as wl
    >>> P, sigma = conditional_affinities(wl.tensor([[0.0], [1.0], [2.0], [9.0]]), perplexity=2.0)
    >>> bool(wl.allclose(P.sum(axis=1), wl.ones(4))), bool(sigma[3] > sigma[1])
    (True, True)

    Rows sum to 1, and \(p_{i|i} = 0\). Each \(\sigma_i\) is found by bisection so that the effective number of
    neighbours, \(2^{H(p_{\cdot|i})}\), is the perplexity: small where points are dense, large where they are sparse.
    """
    X = arrays.astype(as_training_points("tsne", X, 3), dtypes.float64)
    n = X.shape[0]
    if not 1 <= as_number("tsne", "perplexity", perplexity) < n - 1:
        raise InputError(f"tsne: perplexity={perplexity} for {n} points.", f"from 1 to less than {n - 1}")
    X = X - arrays.mean(X, axis=0)
    D = pairwise_sq_distances(X, X).numpy()
    others = ~np.eye(n, dtype=bool)
    nearest = np.where(others, D, np.inf).min(axis=1, keepdims=True)
    D = np.where(others, D - nearest, np.inf)  # the same probabilities, and the largest term is 1
    scale = np.where(others, D, 0.0).sum(axis=1, keepdims=True) / (n - 1)
    precision = 1.0 / np.where(scale > 0, scale, 1.0)  # 1 / (2 sigma^2)
    low, high = np.zeros((n, 1)), np.full((n, 1), np.inf)
    target = math.log(perplexity)
    for _ in range(steps):
        P = np.exp(-D * precision)
        total = P.sum(axis=1, keepdims=True)
        P /= total
        entropy = np.log(total) + precision * (np.where(others, D, 0.0) * P).sum(axis=1, keepdims=True)
        apart = entropy - target
        if np.abs(apart).max() < 1e-10:
            break
        low, high = np.where(apart > 0, precision, low), np.where(apart > 0, high, precision)
        # points at one place keep their entropy, whatever the precision; it must not run away
        precision = np.minimum(np.where(np.isinf(high), precision * 2, (low + high) / 2), 1e300)
    return arrays.asarray(P), arrays.asarray(np.sqrt(0.5 / precision[:, 0]))


def joint_affinities(X: ArrayLike, perplexity: float = 30.0) -> Tensor:
    r"""\(p_{ij} = (p_{j|i} + p_{i|j}) / 2n\): symmetric, with sum 1.

    >>> import wonderland as wl
    >>> print(joint_affinities(wl.tensor([[0.0], [1.0], [2.0], [9.0]]), 2.0).sum())
    tensor(1., dtype=float64)
    """
    P, _ = conditional_affinities(X, perplexity)
    return (P + P.mT) / (2 * P.shape[0])


def tsne_affinities(Y: Tensor) -> tuple[Tensor, Tensor]:
    r"""\(q_{ij} \propto w_{ij} = 1/(1 + \|y_i - y_j\|^2)\) of a map (n, d), and w; 0 on the diagonal.

    >>> import wonderland as wl
    >>> tsne_affinities(wl.tensor([[0.0], [1.0]]))[0]
    tensor([[0. , 0.5],
            [0.5, 0. ]])

    The heavy tails of this density (Student's t with one degree of freedom) let moderate distances become large ones.
    """
    w = (1.0 - arrays.eye(Y.shape[0], dtype=Y.dtype)) / (1.0 + pairwise_sq_distances(Y, Y))
    return w / arrays.sum(w), w


def tsne_loss(P: Tensor, Y: Tensor) -> Tensor:
    r"""\(\mathrm{KL}(P \,\|\, Q) = \sum_{ij} p_{ij} \ln (p_{ij}/q_{ij})\) of a map Y (n, d).

    >>> import wonderland as wl
    >>> print(tsne_loss(wl.tensor([[0.0, 0.5], [0.5, 0.0]]), wl.tensor([[0.0], [1.0]])))
    tensor(0.)
    """
    Q, _ = tsne_affinities(Y)
    tiny = arrays.finfo(Q.dtype).smallest_normal
    return arrays.sum(P * (arrays.log(arrays.maximum(P, tiny)) - arrays.log(arrays.maximum(Q, tiny))))


def tsne_gradient(P: Tensor, Y: Tensor) -> Tensor:
    r"""The gradient of `tsne_loss`: \(4 \sum_j (p_{ij} - q_{ij})(y_i - y_j)/(1 + \|y_i - y_j\|^2)\).

    >>> import wonderland as wl
    >>> tsne_gradient(wl.tensor([[0.0, 0.5], [0.5, 0.0]]), wl.tensor([[0.0], [1.0]]))
    tensor([[0.],
            [0.]])

    A pair attracts where \(p_{ij} > q_{ij}\), and repels where \(p_{ij} < q_{ij}\).
    """
    Q, w = tsne_affinities(Y)
    force = (P - Q) * w
    return 4.0 * (arrays.sum(force, axis=1, keepdims=True) * Y - force @ Y)


def tsne_force(high: ArrayLike, low: ArrayLike, sigma: float = 1.0) -> Tensor:
    r"""The attraction (repulsion, if negative) of a pair at distance `high` in the data and `low` in the map.

    >>> import wonderland as wl
    >>> near, far = tsne_force(wl.tensor([0.1, 5.0]), wl.tensor([2.0, 0.5]))
    >>> bool(near > 0), bool(far < 0)
    (True, True)

    \((p - q)\,d_y/(1 + d_y^2)\) with \(p = e^{-d_x^2/2\sigma^2}\) and \(q = 1/(1 + d_y^2)\), without the sums over
    other pairs that normalise p and q.
    """
    high, low = arrays.asarray(high), arrays.asarray(low)
    q = 1.0 / (1.0 + low * low)
    return (arrays.exp(-high * high / (2 * sigma**2)) - q) * low * q


def tsne_force_plot(distances: Sequence[float] = (0.0, 0.5, 1.0, 2.0, 4.0)) -> str:
    """`tsne_force` over the distance in the map, a curve per distance in the data, as SVG text.

    >>> tsne_force_plot().count("<polyline")
    5
    """
    low = arrays.linspace(0.0, 6.0, 121)
    curves = [Curve(low, tsne_force(arrays.full_like(low, d), low), f"distance {d:g} in the data") for d in distances]
    return plot(curves, title="t-SNE pulls (above 0) and pushes", x_label="distance in the map", y_label="attraction")


class TSNE:
    r"""A map Y (n, 2) of points X (n, d) with small \(\mathrm{KL}(P \,\|\, Q)\). Notes, section 4.2.

    >>> import wonderland as wl
    >>> X = wl.concat([wl.random.normal((15, 5), key=wl.random.key(0)) + c for c in (0.0, 20.0)])
    >>> model = wl.models.TSNE(perplexity=5, max_iter=100, key=wl.random.key(0))
    >>> model.fit_transform(X).shape
    (30, 2)

    P are `joint_affinities` of the data, Q those of the map, `tsne_affinities`. Gradient descent with momentum (0.5,
    later 0.8) and a gain per coordinate; for the first 250 steps (a quarter of them, if there are fewer than 1000) P is
    multiplied by `early_exaggeration`, so that groups form before they spread. The step is compiled.
    `init` is "pca", "random" or a map to start from; `learning_rate` is a number or "auto", max(n / exaggeration / 4,
    50). `callback(step, loss)` is called every 50 steps. Every pair of points is looked at, so n is limited to
    some thousands.

    After `fit`: `embedding_`, `kl_divergence_`, `history_` (pairs of step and loss without exaggeration). Distances
    between groups and sizes of groups in the map mean nothing; `plot()` says so below the picture.
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30.0,
        early_exaggeration: float = 12.0,
        learning_rate: float | str = "auto",
        max_iter: int = 1000,
        init: str | ArrayLike = "pca",
        callback: Callable[[int, float], object] | None = None,
        key: KeyLike = None,
    ) -> None:
        self.n_components = as_int("TSNE", "n_components", n_components, 1)
        self.perplexity = as_number("TSNE", "perplexity", perplexity)
        self.early_exaggeration = as_number("TSNE", "early_exaggeration", early_exaggeration)
        if self.early_exaggeration < 1:
            raise InputError(f"TSNE: early_exaggeration={early_exaggeration}.", "1 or more")
        if learning_rate != "auto" and not as_number("TSNE", "learning_rate", learning_rate) > 0:
            raise InputError(f"TSNE: learning_rate={learning_rate}.", 'a number above 0, or "auto"')
        if isinstance(init, str) and init not in ("pca", "random"):
            raise InputError(f"TSNE: init={init!r}.", '"pca", "random", or a map (n, n_components)')
        self.learning_rate = learning_rate
        self.max_iter = as_int("TSNE", "max_iter", max_iter, 1)
        self.init = init
        self.callback = callback
        self.key = key
        self.embedding_: Tensor | None = None
        self.kl_divergence_ = math.nan
        self.history_: list[tuple[int, float]] = []

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> TSNE:
        """Find the map of points (n, d)."""
        X = as_training_points("TSNE", X, 3)
        P = arrays.astype(joint_affinities(X, self.perplexity), dtypes.float32)
        Y = arrays.astype(self._start(X), dtypes.float32)
        rate = self.learning_rate
        if isinstance(rate, str):
            rate = max(X.shape[0] / self.early_exaggeration / 4, 50.0)
        velocity, gain = arrays.zeros_like(Y), arrays.ones_like(Y)
        exaggerated = min(250, self.max_iter // 4)
        self.history_ = []
        for i in range(self.max_iter):
            early = i < exaggerated
            settings = (self.early_exaggeration if early else 1.0, 0.5 if early else 0.8, rate)
            Y, velocity, gain = _step(P, Y, velocity, gain, arrays.tensor(settings, dtype=dtypes.float32))
            if (i + 1) % 50 == 0 or i + 1 == self.max_iter:
                self.history_.append((i + 1, float(_loss(P, Y))))
                if self.callback is not None:
                    self.callback(*self.history_[-1])
        self.embedding_, self.kl_divergence_ = Y, self.history_[-1][1]
        return self

    def _start(self, X: Tensor) -> Tensor:
        shape = (X.shape[0], self.n_components)
        if not isinstance(self.init, str):
            given = arrays.asarray(self.init)
            if given.shape != shape:
                raise ShapeError(f"TSNE: init of shape {given.shape}.", f"a map of shape {shape}")
            return given
        if self.init == "pca" and self.n_components <= min(X.shape):
            Y = PCA(self.n_components).fit_transform(X)
            spread = arrays.std(Y[:, 0])
            return Y / arrays.where(spread > 0, spread, 1.0) * 1e-4
        return 1e-4 * normal(shape, key=take_key("TSNE", self.key))

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None) -> Tensor:
        """`fit`, then the map (n, n_components)."""
        self.fit(X)
        assert self.embedding_ is not None
        return self.embedding_

    def plot(self, labels: ArrayLike | None = None, *, names: Sequence[str] | None = None, title: str = "") -> str:
        """The map as SVG text, coloured by labels, with a caption that says what it does not show."""
        if self.embedding_ is None:
            raise InputError("TSNE: there is no map yet.", "fit(X) first")
        return scatter(self.embedding_[:, :2], labels, names=names, title=title, x_label=CAUTION)


@jit
def _step(P: Tensor, Y: Tensor, velocity: Tensor, gain: Tensor, settings: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    exaggeration, momentum, rate = settings[0], settings[1], settings[2]
    gradient = tsne_gradient(exaggeration * P, Y)
    # coordinates that keep their direction go faster, those that swing slower
    swings = (gradient > 0) == (velocity > 0)
    gain = arrays.maximum(arrays.where(swings, gain * 0.8, gain + 0.2), 0.01)
    velocity = momentum * velocity - rate * gain * gradient
    Y = Y + velocity
    return Y - arrays.mean(Y, axis=0), velocity, gain


_loss = jit(tsne_loss)
