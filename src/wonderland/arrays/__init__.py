"""The functions of the top-level namespace, a file per family: they convert arguments and call primitives."""

# ruff: noqa: F403, F405 - every file has an exact `__all__`, and a test compares them with the one below

from ..tensor import Tensor as Tensor
from .activations import *
from .arithmetic import *
from .assignment import assign_item as assign_item
from .calculus import *
from .complexes import *
from .composed import *
from .conversion import *
from .conversion import is_operand as is_operand
from .counting import *
from .creation import *
from .einstein import *
from .gathering import *
from .indexing import getitem as getitem
from .joining import *
from .logic import *
from .manipulation import *
from .missing import *
from .namespace import *
from .positions import *
from .products import *
from .quantiles import *
from .rearrangement import *
from .reductions import *
from .running import *
from .scattering import *
from .segments import *
from .similarity import *
from .sorting import *
from .splitting import *
from .statistics import *
from .stopping import *
from .transcendental import *
from .types import *
from .updates import At as At

# The table of contents, family by family. Type checkers read a literal list only.
# fmt: off
__all__ = [
    # conversion
    "array", "asarray", "from_dlpack", "tensor",
    # creation
    "arange", "diag", "empty", "empty_like", "eye", "full", "full_like", "linspace", "logspace",
    "meshgrid", "one_hot", "ones", "ones_like", "tri", "tril", "triu", "zeros", "zeros_like",
    # types
    "can_cast", "finfo", "iinfo", "isdtype", "result_type",
    # namespace
    "__array_api_version__", "__array_namespace_info__", "e", "inf", "nan", "newaxis", "pi",
    # arithmetic
    "abs", "absolute", "add", "ceil", "clip", "copysign", "divide", "floor", "floor_divide", "hypot",
    "maximum", "minimum", "multiply", "nan_to_num", "negative", "nextafter", "positive", "pow", "power",
    "reciprocal", "remainder", "round", "rsqrt", "sign", "signbit", "sqrt", "square", "subtract", "trunc",
    # transcendental
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "erfc", "erfinv",
    "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "logaddexp", "sin", "sinh", "tan", "tanh",
    # composed
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cbrt", "conjugate", "deg2rad",
    "degrees", "fabs", "float_power", "fmod", "heaviside", "invert", "iscomplex", "isneginf", "isposinf",
    "isreal", "left_shift", "logaddexp2", "mod", "rad2deg", "radians", "right_shift", "rint", "select",
    "sinc", "true_divide",
    # complexes
    "angle", "complex", "conj", "imag", "real",
    # logic
    "allclose", "array_equal", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "equal", "greater", "greater_equal", "isclose", "isfinite",
    "isinf", "isnan", "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor",
    "not_equal", "where",
    # reductions
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum",
    "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var",
    # missing
    "fmax", "fmin", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin",
    "nanprod", "nanstd", "nansum", "nanvar",
    # running
    "cummax", "cummin", "logcumsumexp",
    # statistics
    "average", "corrcoef", "cov", "ptp",
    # quantiles
    "argpartition", "median", "nanmedian", "nanpercentile", "nanquantile", "partition", "percentile",
    "quantile",
    # counting
    "bincount", "bucketize", "digitize", "histogram", "histogram_bin_edges",
    # sorting
    "argsort", "isin", "sort", "top_k", "topk", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values",
    # manipulation
    "astype", "atleast_1d", "atleast_2d", "broadcast_arrays", "broadcast_shapes", "broadcast_to",
    "expand_dims", "flatten", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "reshape",
    "squeeze", "swapaxes", "transpose", "unsqueeze",
    # joining
    "block_diag", "concat", "concatenate", "flip", "hstack", "pad", "roll", "split", "stack", "tile",
    "unstack", "vstack",
    # splitting
    "append", "array_split", "atleast_3d", "block", "column_stack", "delete", "dsplit", "dstack", "fliplr",
    "flipud", "hsplit", "insert", "resize", "rot90", "vsplit",
    # rearrangement
    "rearrange", "reduce", "repeat",
    # gathering
    "diagonal", "dynamic_slice", "dynamic_update_slice", "masked_fill", "nonzero", "put_along_axis",
    "searchsorted", "take", "take_along_axis",
    # scattering
    "gather", "index_add", "index_copy", "index_fill", "index_select", "scatter", "scatter_add",
    "scatter_reduce",
    # positions
    "argwhere", "diag_indices", "flatnonzero", "ravel_multi_index", "tril_indices", "triu_indices",
    "unravel_index",
    # segments
    "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum",
    # calculus
    "ediff1d", "gradient", "interp", "lerp", "polyval", "trapezoid", "vander",
    # products
    "cross", "dot", "inner", "kron", "matmul", "outer", "tensordot", "trace", "vecdot",
    # einstein
    "einsum", "einsum_path",
    # similarity
    "cdist", "cosine_similarity", "is_binary", "is_simplex", "norm", "normalize", "pairwise_sq_distances",
    "sq_norm",
    # activations
    "log_sigmoid", "log_softmax", "logit", "logsumexp", "relu", "sigmoid", "softmax", "softplus", "xlogy",
    # stopping
    "stop_gradient",
]
# fmt: on
