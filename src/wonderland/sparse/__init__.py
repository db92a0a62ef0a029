"""Sparse matrices, `wl.sparse`: patterns of nonzeros, products, reductions over lines. Book, sections 12.1.2, 12.2.4.

A `Pattern` says where the nonzeros are; values are tensors beside it, so they are differentiated like any others. All
functions have derivatives of any order, and cost and memory are O(nonzeros).
"""

from .matrices import COO, CSR, Sparse
from .patterns import Incidence, Pattern
from .products import matmul, sampled_matmul
from .segments import (
    gather,
    segment_logsumexp,
    segment_max,
    segment_mean,
    segment_min,
    segment_softmax,
    segment_sum,
)

__all__ = [
    "COO",
    "CSR",
    "Incidence",
    "Pattern",
    "Sparse",
    "gather",
    "matmul",
    "sampled_matmul",
    "segment_logsumexp",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_softmax",
    "segment_sum",
]
