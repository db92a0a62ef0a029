"""Autoencoders: networks that learn codes by predicting their own input. Notes, sections 2.3.4, 2.3.5 and 2.4.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ... import arrays, linalg
from ...arrays.conversion import as_real
from ...core.arguments import as_int
from ...core.errors import InputError, ModuleError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.functional import mse_loss, step
from ...nn.layers.linear import Linear
from ...nn.module.containers import Layer, Sequential
from ...nn.module.module import Module
from ...optim.optimizer import Optimizer
from ...random.continuous import normal
from ...random.discrete import bernoulli
from ...random.keys import split
from ...random.streams import Source, Stream, take_key
from ..classical.descent import Callback, descend
from ..classical.pca import PCA
from ..classical.points import as_training_points


class Autoencoder(Module):
    r"""\(\hat x = g(f(x))\), an encoder f and a decoder g trained to make \(\|\hat x - x\|^2\) small. Notes, 2.3.4.

    >>> import wonderland as wl
    >>> encoder = wl.nn.Sequential(wl.nn.Linear(8, 5), wl.tanh, wl.nn.Linear(5, 2))
    >>> model = wl.models.Autoencoder(encoder)
    >>> X = wl.random.normal((64, 8), key=wl.random.key(0))
    >>> losses = model.fit(X, epochs=20, lr=0.02).history
    >>> losses[-1] < losses[0], model.encode(X).shape, model.reconstruct(X).shape
    (True, (64, 2), (64, 8))

    Without a decoder it is the mirror of the encoder. Afterwards `model.encoder` serves as a feature detector, its
    codes for clusters or pictures; the decoder can be thrown away.
    """

    encoder: Any
    decoder: Any

    def __init__(
        self, encoder: Callable[..., Tensor], decoder: Callable[..., Tensor] | None = None, key: KeyLike = None
    ) -> None:
        self.encoder = encoder
        self.decoder = mirror(encoder, key=key) if decoder is None else decoder
        self.history: tuple[float, ...] = ()

    def encode(self, x: ArrayLike) -> Tensor:
        """The codes z = f(x), (..., Z)."""
        return self.encoder(arrays.asarray(x))

    def decode(self, z: ArrayLike) -> Tensor:
        """The inputs g(z) that codes stand for."""
        return self.decoder(arrays.asarray(z))

    def reconstruct(self, x: ArrayLike) -> Tensor:
        """g(f(x)), of the shape of x."""
        return self(arrays.asarray(x))

    def forward(self, x: ArrayLike) -> Tensor:
        return self.decoder(self.encoder(x))

    def loss(self, x: ArrayLike) -> Tensor:
        """What `fit` makes small: the mean squared error of the reconstruction."""
        return mse_loss(self(x), x)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        epochs: int = 100,
        batch_size: int | None = 64,
        lr: float = 1e-3,
        optimizer: Optimizer | None = None,
        callback: Callback | None = None,
        key: KeyLike = None,
    ) -> Self:
        """Train on inputs (n, ...); `history` gets the mean loss of each epoch. Settings as in `descend`."""
        X = as_real(type(self).__name__, arrays.asarray(X))
        settings: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "lr": lr, "optimizer": optimizer}
        name = f"{type(self).__name__}.fit"
        self.history = ()  # not a new setting in every trace of the step
        self.history = tuple(descend(self, type(self).loss, X, **settings, callback=callback, key=key, name=name))
        return self

    def extra_repr(self) -> str:
        return ""


def mirror(encoder: Layer, key: KeyLike = None) -> Sequential:
    """A decoder whose layers run backwards through the widths of a chain of linear layers and functions.

    >>> import wonderland as wl
    >>> mirror(wl.nn.Sequential(wl.nn.Linear(8, 5), wl.tanh, wl.nn.Linear(5, 2)))
    Sequential(
      0: Linear(in_features=2, out_features=5, bias=True)
      1: tanh
      2: Linear(in_features=5, out_features=8, bias=True)
    )

    The weights are new. Functions and layers without parameters stay between the layers where they were; those after
    the last layer of the encoder shape the code, and have no counterpart.
    """
    entries = list(encoder) if isinstance(encoder, Sequential) else [encoder]
    while entries and not isinstance(entries[-1], Linear):
        if _has_parameters(entries.pop()):
            raise _no_mirror(encoder)
    keys = split(take_key("mirror", key), len(entries) + 1)
    layers: list[Layer] = []
    for i, entry in enumerate(reversed(entries)):
        if isinstance(entry, Linear) and entry.in_features is not None:
            bias = entry.bias is not None
            layers.append(Linear(entry.out_features, entry.in_features, bias, dtype=entry.dtype, key=keys[i]))
        elif _has_parameters(entry):
            raise _no_mirror(encoder)
        else:
            layers.append(entry)
    if not layers:
        raise _no_mirror(encoder)
    return Sequential(*layers)


def _has_parameters(entry: object) -> bool:
    return isinstance(entry, Linear) or (isinstance(entry, Module) and bool(entry.parameters()))


def _no_mirror(encoder: Layer) -> ModuleError:
    return ModuleError(
        f"mirror: {type(encoder).__name__} is not a chain of linear layers of known sizes and functions.",
        "a decoder of your own: Autoencoder(encoder, decoder)",
    )


class LinearAutoencoder(Autoencoder):
    r"""\(\hat x = (x W + b) V + c\) with a code of Z < D numbers. Notes, section 2.3.5.

    >>> import wonderland as wl
    >>> X = wl.random.normal((50, 5), key=wl.random.key(0))
    >>> model = wl.models.LinearAutoencoder(5, 2).fit(X, method="closed")
    >>> s = wl.linalg.svdvals(X - X.mean(axis=0))
    >>> bool(wl.isclose(((model(X) - X) ** 2).sum(), (s[2:] ** 2).sum(), rtol=1e-4))
    True

    At the optimum its squared error is that of PCA, the sum of the squared singular values (of the data without its
    mean, or with `bias=False` of the data as it is) beyond the first Z, and V spans the space of the first Z
    principal directions; W and V themselves are determined up to an invertible matrix between them.
    """

    def __init__(
        self, features: int, code: int, bias: bool = True, dtype: DTypeLike | None = None, key: KeyLike = None
    ) -> None:
        features = as_int("LinearAutoencoder", "features", features, 1)
        code = as_int("LinearAutoencoder", "code", code, 1)
        first, second = split(take_key("LinearAutoencoder", key), 2)
        encoder = Linear(features, code, bias, dtype=dtype, key=first)
        super().__init__(encoder, Linear(code, features, bias, dtype=dtype, key=second))

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, method: str = "gradient", **settings: Any) -> Self:
        """By gradient descent with the settings of `Autoencoder.fit`, or at once with `method="closed"`."""
        if method not in ("closed", "gradient"):
            raise InputError(f"LinearAutoencoder: method={method!r}.", '"closed" or "gradient"')
        if method == "gradient":
            return super().fit(X, **settings)
        X = as_training_points("LinearAutoencoder", X, 2)
        code = self.encoder.out_features
        if self.encoder.bias is None:
            if code > min(X.shape):
                raise InputError(f"LinearAutoencoder: a code of {code} for data of shape {X.shape}.", "a smaller code")
            directions = linalg.svd(X, full_matrices=False)[2][:code]
        else:
            model = PCA(code).fit(X)
            directions = arrays.asarray(model.components_)
            self.encoder.bias = arrays.astype(-(directions @ model.mean_), self.encoder.dtype)
            self.decoder.bias = arrays.astype(model.mean_, self.decoder.dtype)
        self.encoder.weight = arrays.astype(directions.mT, self.encoder.dtype)
        self.decoder.weight = arrays.astype(directions, self.decoder.dtype)
        return self


class DenoisingAutoencoder(Autoencoder):
    r"""An autoencoder that sees a noisy \(\tilde x\) and predicts the clean x. Notes, section 2.3.4.

    >>> import wonderland as wl
    >>> encoder = wl.nn.Sequential(wl.nn.Linear(8, 16), wl.relu)
    >>> model = wl.models.DenoisingAutoencoder(encoder, wl.nn.Linear(16, 8), noise=0.5, key=wl.random.key(0))
    >>> model.corrupt(wl.zeros((3, 8))).shape
    (3, 8)

    `noise` is the standard deviation of Gaussian noise, or a function of x and a key such as `masking(0.3)`, which
    draws new noise in every step. `reconstruct` and `encode` take their input as it is.
    """

    def __init__(
        self,
        encoder: Callable[..., Tensor],
        decoder: Callable[..., Tensor] | None = None,
        noise: float | Callable[..., Tensor] = 0.1,
        key: Source = None,
    ) -> None:
        if not callable(noise) and not noise >= 0:
            raise InputError(f"DenoisingAutoencoder: noise={noise!r}.", "a standard deviation, or a function(x, key)")
        self.stream = key if isinstance(key, Stream) else Stream(key)
        super().__init__(encoder, decoder, key=self.stream)
        self.noise = noise

    def corrupt(self, x: ArrayLike, key: KeyLike = None) -> Tensor:
        """x with noise."""
        x = arrays.asarray(x)
        key = self.stream.next_key() if key is None else key
        if callable(self.noise):
            return self.noise(x, key)
        return x + self.noise * normal(x.shape, key=key, dtype=x.dtype)

    def loss(self, x: ArrayLike) -> Tensor:
        """The squared error of what is made of a noisy x, against the clean one."""
        return mse_loss(self(self.corrupt(x)), x)


def masking(p: float) -> Callable[[Tensor, KeyLike], Tensor]:
    """The noise that sets each number to 0 with probability p.

    >>> import wonderland as wl
    >>> wl.unique(masking(0.5)(wl.ones(100), wl.random.key(0)))
    tensor([0., 1.])
    """
    if not 0.0 <= p <= 1.0:
        raise InputError(f"masking: p={p} is not a probability.", "a number from 0 to 1")

    def mask(x: Tensor, key: KeyLike) -> Tensor:
        return arrays.where(bernoulli(x.shape, 1.0 - p, key=key), x, 0.0)

    return mask


class BinaryAutoencoder(Autoencoder):
    r"""\(z = 1[x W + b \ge 0]\), \(\hat x = z V + c\): a code of m bits. Notes, section 2.4.4.

    >>> import wonderland as wl
    >>> X = wl.tensor([[0.0, 0.1], [0.1, 0.0], [4.0, 4.1], [4.1, 4.0]])
    >>> model = wl.models.BinaryAutoencoder(2, 1, key=wl.random.key(1)).fit(X, epochs=100, lr=0.05)
    >>> sorted(model.encode(X)[:, 0].tolist())
    [0.0, 0.0, 1.0, 1.0]

    Each bit cuts the space by a hyperplane. One bit gives two cells, and the best decoder answers with their means,
    which is K-means with K = 2 and a linear border. m bits give up to \(2^m\) cells, but their reconstructions
    are sums \(c + \sum_k z_k v_k\), not centres of their own.

    The step has no useful derivative, so in training that of the sigmoid stands in for it (straight-through). At the
    end of `fit` the decoder is replaced by the best one for the codes, by least squares.
    """

    def __init__(self, features: int, bits: int, dtype: DTypeLike | None = None, key: KeyLike = None) -> None:
        features = as_int("BinaryAutoencoder", "features", features, 1)
        bits = as_int("BinaryAutoencoder", "bits", bits, 1)
        first, second = split(take_key("BinaryAutoencoder", key), 2)
        encoder = Sequential(Linear(features, bits, dtype=dtype, key=first), threshold)
        super().__init__(encoder, Linear(bits, features, dtype=dtype, key=second))

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **settings: Any) -> Self:
        """Train the encoder by straight-through gradients, then solve for the decoder."""
        X = as_training_points("BinaryAutoencoder", X)
        # borders start through the middle of the data, where they cut something
        first = self.encoder[0]
        first.bias = arrays.astype(-(arrays.mean(X, axis=0) @ first.weight), first.dtype)
        super().fit(X, **settings)
        z = self.encode(X)
        A = arrays.concat([z, arrays.ones((z.shape[0], 1), dtype=z.dtype)], axis=1)
        solution = linalg.pinv(A) @ arrays.astype(X, z.dtype)  # of all best decoders the smallest, if codes are few
        self.decoder.weight, self.decoder.bias = solution[:-1], solution[-1]
        return self


def threshold(x: ArrayLike) -> Tensor:
    r"""\(1[x \ge 0] = 1[\sigma(x) \ge \frac12]\), with the derivative of \(\sigma\) in the place of its own, 0.

    >>> import wonderland as wl
    >>> threshold(wl.tensor([-1.0, 2.0])), wl.grad(threshold)(wl.tensor(0.0))
    (tensor([0., 1.]), tensor(0.25))
    """
    return step(arrays.sigmoid(x) - 0.5, "straight-through")
