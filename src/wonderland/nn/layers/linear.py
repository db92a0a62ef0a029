"""The linear layer. Book, sections 2.1.2 and 5.1."""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core import dtypes
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ..functional.affine import affine
from ..init.naming import InitializerLike
from ..module.parameter import Parameter
from .weighted import Weighted, as_weight_dtype

__all__ = ["Linear", "LazyLinear"]


class Linear(Weighted):
    r"""\(y = x W + b\) on the last axis: (..., in_features) to (..., out_features). Book, E.2.4, section 5.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.Linear(64, 10)
    >>> layer
    Linear(in_features=64, out_features=10, bias=True)
    >>> layer(wl.ones((32, 64))).shape, layer.weight.shape
    ((32, 10), (64, 10))

    `weight` is (in_features, out_features) and `bias` (out_features,), or None without one. Both start from
    \(U(-1/\sqrt{c}, 1/\sqrt{c})\) with c = in_features, drawn with `key` or one from the global stream.

    `init` is another initialiser of the weight, and `bias_init` of the bias; see `wl.nn.init`.

    >>> wl.nn.Linear(2, 3, init=wl.nn.init.kaiming_normal(), bias_init="zeros").bias
    parameter([0., 0., 0.])

    With `in_features=None` the layer is lazy: its first input decides in_features and makes the parameters.

    >>> layer = wl.nn.Linear(None, 10)
    >>> layer(wl.ones((32, 64))).shape, layer.weight.shape
    ((32, 10), (64, 10))
    """

    def __init__(
        self,
        in_features: int | None,
        out_features: int,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        init: InitializerLike | None = None,
        bias_init: InitializerLike | None = None,
    ) -> None:
        for name, size in (("in_features", in_features), ("out_features", out_features)):
            lazy = size is None and name == "in_features"
            if not lazy and not (isinstance(size, int) and size >= 0):
                raise InputError(f"Linear: {name}={size!r} is not a size.", "Linear(in_features, out_features)")
        self.in_features = in_features
        self.out_features = out_features
        remedy = "a floating dtype, or Linear.from_matrix for complex numbers of your own"
        self.dtype = as_weight_dtype("Linear", dtype, remedy)
        self._wait("Linear", bias, key, init, bias_init)
        if in_features is not None:
            self._build(in_features)

    @classmethod
    def from_matrix(cls, weight: ArrayLike, bias: ArrayLike | None = None, *, layout: str = "in out") -> Linear:
        r"""A layer with given numbers; `layout="out in"` for a matrix that is applied as \(W x + b\).

        >>> import wonderland as wl
        >>> layer = wl.nn.Linear.from_matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], layout="out in")
        >>> layer(wl.ones(3))
        tensor([ 6., 15.])
        """
        matrix = arrays.asarray(weight)
        if matrix.ndim != 2 or layout not in ("in out", "out in"):
            raise ShapeError(
                f"Linear.from_matrix: received a weight of shape {matrix.shape} with layout={layout!r}.",
                'a matrix, with layout="in out" or layout="out in"',
            )
        matrix = matrix if layout == "in out" else matrix.mT
        vector = None if bias is None else arrays.asarray(bias, dtype=matrix.dtype)
        if vector is not None and vector.shape != matrix.shape[1:]:
            raise ShapeError(
                f"Linear.from_matrix: a bias of shape {vector.shape} does not fit {matrix.shape[1]} outputs.",
                f"a bias of shape {matrix.shape[1:]}",
            )
        layer = cls.__tree_new__()  # not by __init__, which takes random numbers
        layer.in_features, layer.out_features = matrix.shape
        layer.dtype = matrix.dtype
        layer.weight = Parameter(matrix)
        layer.bias = None if vector is None else Parameter(vector)
        layer._key = layer._init = layer._bias_init = None
        return layer

    def _build(self, in_features: int) -> None:
        """Make the parameters."""
        shape = (in_features, self.out_features)
        self._make(shape, (self.out_features,), in_features, in_features=in_features)

    def forward(self, x: ArrayLike) -> Tensor:
        x = as_tensor("Linear", x)
        shape = x.shape
        if self.in_features is None and shape:
            self._build(shape[-1])
        if not shape or shape[-1] != self.in_features:
            got = f"has {shape[-1]} features along its last axis" if shape else "has no axis of features"
            raise ShapeError(
                f"{self._describe()}: an input of shape {shape} {got}.",
                f"an input of shape (..., {'features' if self.in_features is None else self.in_features})",
            )
        return arrays.matmul(x, self.weight) if self.bias is None else affine(x, self.weight, self.bias)

    @property
    def weight_dtype(self) -> dtypes.DType:
        """The dtype of the numbers that inputs are multiplied by."""
        return self.weight.dtype

    def multiply_adds(self, args: tuple[Tensor, ...], output: Tensor) -> int | None:
        return output.size * self.in_features if self.in_features is not None else None

    def extra_repr(self) -> str:
        text = f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        return text if self.dtype == dtypes.default_float else f"{text}, dtype={self.dtype}"


class LazyLinear(Linear):
    """`LazyLinear(out)` is `Linear(None, out)`: its first input decides `in_features`. Book, section 6.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.LazyLinear(10)
    >>> layer
    LazyLinear(in_features=None, out_features=10, bias=True)
    >>> _ = layer(wl.ones((2, 3)))
    >>> layer.num_parameters()
    40
    """

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        init: InitializerLike | None = None,
        bias_init: InitializerLike | None = None,
    ) -> None:
        super().__init__(None, out_features, bias, dtype, key, init=init, bias_init=bias_init)
