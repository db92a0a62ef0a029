r"""Losses for very many classes that look at the right class and a few others. Notes, section 4.5.2.

The gradient of \(\ln p_y = \eta_y - \ln\sum_c e^{\eta_c}\) is \(\nabla\eta_y - \mathrm E_{c \sim p}[\nabla\eta_c]\),
whose second part costs O(C). All losses here take codes z (..., d), class vectors `weight` (C, d) and `bias` (C,) or
None, classes y (...), and `samples`: (k,) classes for all examples or (..., k) for each, drawn from a distribution q.
Only the rows of the classes and samples are read, and only they get gradients.
"""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import as_real, as_tensor
from ...core.dtypes import is_integer
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from .lookup import counted_from_zero

__all__ = ["nce_loss", "negative_sampling_loss", "sampled_softmax_loss"]


def sampled_softmax_loss(
    z: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    y: ArrayLike,
    samples: ArrayLike,
    log_q: ArrayLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""\(-\eta_y + \ln\bigl(e^{\eta_y} + \sum_{s \ne y} e^{\eta_s} / (k\,q_s)\bigr)\) over k samples s.

    >>> import wonderland as wl
    >>> z, W, y = wl.tensor([[1.0, 0.0]]), wl.eye(2), wl.tensor([0])
    >>> samples = wl.tensor([0, 1])
    >>> print(sampled_softmax_loss(z, W, None, y, samples, wl.log(wl.tensor([0.5, 0.5]))))
    tensor(0.313262)

    `log_q` is \(\ln q_s\), of the shape of the samples. With it the sum is an unbiased estimate of the sum over the
    other classes, whatever q, and the loss tends to that of the full softmax as k grows. Without it the samples count
    as if they were all classes there are (as in the notes, with uniform samples): the loss is that of a smaller
    problem, and its gradient is biased. Samples equal to y are left out.
    """
    name = "sampled_softmax_loss"
    right, wrong, hits, log_q, k = _scores(name, z, weight, bias, y, samples, None, log_q)
    if log_q is not None:
        wrong = wrong - log_q - arrays.log(arrays.asarray(float(k), dtype=wrong.dtype))
    wrong = arrays.where(hits, -arrays.inf, wrong)
    both = arrays.concat([right[..., None], wrong], axis=-1)
    return _reduced(name, arrays.logsumexp(both, axis=-1) - right, reduction)


def nce_loss(
    z: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    y: ArrayLike,
    samples: ArrayLike,
    log_q_y: ArrayLike,
    log_q: ArrayLike,
    reduction: str = "mean",
) -> Tensor:
    r"""Noise contrastive estimation: tell data from noise, by \(\sigma(\eta_c - \ln k q_c)\).

    \(-\ln\sigma(\eta_y - \ln k q_y) - \sum_s \ln(1 - \sigma(\eta_s - \ln k q_s))\)

    >>> import wonderland as wl
    >>> z, W, half = wl.tensor([[0.0, 0.0]]), wl.eye(2), wl.log(wl.tensor([0.5]))
    >>> print(nce_loss(z, W, None, wl.tensor([0]), wl.tensor([1]), half, half))
    tensor(1.504077)

    `log_q_y` (...) and `log_q` (the shape of the samples) are \(\ln q\) of the classes and samples. Its minimum over
    free \(\eta\) is at \(\eta_c = \ln p_c\) of the data: what is learned is normalised by itself.
    """
    name = "nce_loss"
    right, wrong, _, _, k = _scores(name, z, weight, bias, y, samples, log_q_y, log_q)
    log_k = arrays.log(arrays.asarray(float(k), dtype=wrong.dtype))
    right = right - as_real(name, log_q_y) - log_k
    return _told_apart(name, right, wrong - as_real(name, log_q) - log_k, None, reduction)


def negative_sampling_loss(
    z: ArrayLike, weight: ArrayLike, bias: ArrayLike | None, y: ArrayLike, samples: ArrayLike, reduction: str = "mean"
) -> Tensor:
    r"""\(-\ln\sigma(\eta_y) - \sum_{s \ne y} \ln\sigma(-\eta_s)\): the negative sampling of word2vec (SGNS).

    >>> import wonderland as wl
    >>> print(negative_sampling_loss(wl.zeros((1, 2)), wl.eye(2), None, wl.tensor([0]), wl.tensor([1])))
    tensor(1.386294)

    Samples come from the frequencies of words to the power 0.75, as a rule. The scores that it learns are no
    log-probabilities: at the optimum \(\eta_c = \ln p_c - \ln k q_c\), but for samples equal to y, which are left out.
    """
    name = "negative_sampling_loss"
    right, wrong, hits, _, _ = _scores(name, z, weight, bias, y, samples, None, None)
    return _told_apart(name, right, wrong, hits, reduction)


def _scores(
    name: str,
    z: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    y: ArrayLike,
    samples: ArrayLike,
    log_q_y: ArrayLike | None,
    log_q: ArrayLike | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, int]:
    """The logits of the classes (...) and samples (..., k), where samples are y, and ln q."""
    z, weight = as_real(name, z), as_real(name, weight)
    y, samples = as_tensor(name, y), as_tensor(name, samples)
    if weight.ndim != 2 or not z.ndim or z.shape[-1] != weight.shape[1]:
        raise ShapeError(f"{name}: codes of shape {z.shape} and class vectors of {weight.shape}.", "(..., d), (C, d)")
    if not is_integer(y.dtype) or not is_integer(samples.dtype):
        raise DTypeError(f"{name}: classes of {y.dtype} and samples of {samples.dtype}.", "integers")
    if y.shape != z.shape[:-1]:
        raise ShapeError(f"{name}: classes of shape {y.shape} for codes of {z.shape}.", f"shape {z.shape[:-1]}")
    shared = samples.ndim == 1
    if not samples.ndim or not samples.shape[-1] or not (shared or samples.shape[:-1] == y.shape):
        raise ShapeError(f"{name}: samples of shape {samples.shape} for classes of {y.shape}.", "(k,) or (..., k)")
    if log_q is not None:
        log_q = as_real(name, log_q)
        if log_q.shape != samples.shape:
            raise ShapeError(f"{name}: log_q of shape {log_q.shape}.", f"that of the samples, {samples.shape}")
    if log_q_y is not None and as_real(name, log_q_y).shape != y.shape:
        raise ShapeError(f"{name}: log_q_y of shape {as_real(name, log_q_y).shape}.", f"that of y, {y.shape}")
    classes = weight.shape[0]
    own, others = counted_from_zero(y, classes), counted_from_zero(samples, classes)
    right = arrays.sum(z * arrays.take(weight, own, axis=0), axis=-1)
    rows = arrays.take(weight, others, axis=0)
    wrong = z @ rows.mT if shared else arrays.sum(z[..., None, :] * rows, axis=-1)
    if bias is not None:
        bias = as_real(name, bias)
        right, wrong = right + arrays.take(bias, own, axis=0), wrong + arrays.take(bias, others, axis=0)
    return right, wrong, samples == y[..., None], log_q, samples.shape[-1]


def _told_apart(name: str, right: Tensor, wrong: Tensor, hits: Tensor | None, reduction: str) -> Tensor:
    """Logistic losses of the right class and of the samples, except where they are hits."""
    noise = arrays.softplus(wrong)
    noise = noise if hits is None else arrays.where(hits, 0.0, noise)
    return _reduced(name, arrays.softplus(-right) + arrays.sum(noise, axis=-1), reduction)


def _reduced(name: str, losses: Tensor, reduction: str) -> Tensor:
    if reduction not in ("mean", "sum", "none"):
        raise InputError(f"{name}: reduction={reduction!r}.", '"mean", "sum" or "none"')
    return losses if reduction == "none" else getattr(arrays, reduction)(losses)
