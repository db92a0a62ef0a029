"""Losses, each with its reductions.

Left out: means over nothing (every class ignored), which are NaN in PyTorch and 0 here; BCELoss of probabilities that
are exactly 0 or 1, whose slopes PyTorch cuts at 1e12; CosineEmbeddingLoss of zero vectors, whose slopes depend on the
epsilon; distances exactly at a margin, where PyTorch has the slope 1 for some losses and 0 for others; infinite CTC
losses, whose gradients are NaN there. CTCLoss is given logits through a log_softmax, because PyTorch's slopes for
log-probabilities are those of such logits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import Case

rng = np.random.default_rng(0)
SHAPE = (4, 3)
PROBABILITIES, TARGETS = (np.round(rng.dirichlet(np.ones(3) * 3, size=4), 3) for _ in range(2))
VARIANCES = np.round(rng.uniform(0.1, 2.0, size=SHAPE), 3)
SIGNS = np.array([1.0, -1.0, -1.0, 1.0])
CLASSES, IGNORED = np.array([0, 2, 1, 2]), np.array([0, -100, 1, 2])
LABELS = np.array([[0, 1], [2, 2]])  # for scores (2, 2, 3)
WEIGHT = [0.5, 1.0, 2.0]
HITS = rng.integers(0, 2, size=SHAPE).astype(float)
COUNTS = rng.poisson(3.0, size=SHAPE).astype(float)
LISTS = np.array([[0, 2, -1], [1, -1, 0], [-1, -1, -1], [2, 1, 0]])
THREE = (SHAPE,) * 3
# transcriptions: repeated labels, an empty one, and one that is too long for its frames
TRANSCRIPTS = np.array([[1, 2, 2, 3], [3, 3, 0, 0], [0, 0, 0, 0], [4, 4, 4, 4]])
FRAMES, SIZES = np.array([7, 5, 6, 5]), np.array([4, 2, 0, 4])
IN_A_ROW = np.concatenate([row[:n] for row, n in zip(TRANSCRIPTS, SIZES, strict=True)])


def reduced(
    name: str,
    *inputs: Any,
    wrt: tuple[int, ...] | None = None,
    first: bool = False,
    before: str | None = None,
    **settings: Any,
) -> Any:
    """A case for every reduction."""
    reductions = ["mean", "sum", "none", *(["batchmean"] if name == "KLDivLoss" else [])]
    return [
        Case(name, inputs, settings={**settings, "reduction": reduction}, wrt=wrt, channels_first=first, before=before)
        for reduction in reductions
    ]


def ctc(*inputs: Any, **settings: Any) -> Any:
    return reduced("CTCLoss", *inputs, before="log_softmax", **settings)


# Where the derivative is a choice, or a formula meets its limits.
EDGES = [
    Case("L1Loss", (np.zeros(2), np.zeros(2))),
    Case("MSELoss", (np.zeros(2), np.zeros(2))),
    Case("HuberLoss", (np.array([-1.0, 0.0, 1.0]), np.zeros(3))),
    Case("SmoothL1Loss", (np.array([-1.0, 0.0, 1.0]), np.zeros(3))),
    Case("MarginRankingLoss", (np.array([1.0, 1.0]), np.array([1.0, 1.0]), np.array([1.0, -1.0])), wrt=(0, 1)),
    Case("MultiMarginLoss", (np.array([[1.0, 1.0, 0.0]]), np.array([0]))),
    Case("MultiLabelMarginLoss", (np.array([[1.0, 1.0, 0.0]]), np.array([[0, -1, 1]]))),
    Case("TripletMarginLoss", (np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 3)))),
    Case("KLDivLoss", (SHAPE, HITS), wrt=(0,)),
    Case("BCEWithLogitsLoss", (np.array([-800.0, 800.0, -800.0, 800.0]), np.array([0.0, 1.0, 1.0, 0.0])), wrt=(0,)),
    Case("CrossEntropyLoss", (np.array([[-800.0, 800.0], [900.0, 0.0]]), np.array([0, 0]))),
    Case("SoftMarginLoss", (np.array([-30.0, 30.0, -800.0, 800.0]), SIGNS), wrt=(0,)),
    Case("PoissonNLLLoss", (np.zeros(3), np.array([0.0, 1.0, 2.0])), settings={"full": True}, wrt=(0,)),
    Case("PoissonNLLLoss", (np.zeros(2), np.array([0.0, 1.0])), settings={"log_input": False}, wrt=(0,)),
    Case("GaussianNLLLoss", (np.ones(2), np.zeros(2), np.array([0.0, 1e-9])), wrt=(0, 1)),
]

CASES: list[Case] = [
    *reduced("CrossEntropyLoss", SHAPE, CLASSES),
    *reduced("CrossEntropyLoss", SHAPE, IGNORED, weight=WEIGHT, label_smoothing=0.1),
    *reduced("CrossEntropyLoss", SHAPE, TARGETS, weight=WEIGHT, label_smoothing=0.2),
    *reduced("CrossEntropyLoss", (2, 2, 3), LABELS, first=True, ignore_index=1),
    *reduced("NLLLoss", np.round(np.log(PROBABILITIES), 3), IGNORED, weight=WEIGHT),
    *reduced("NLLLoss", (2, 2, 3), LABELS, first=True),
    *reduced("BCELoss", PROBABILITIES, HITS, weight=WEIGHT, wrt=(0,)),
    *reduced("BCELoss", PROBABILITIES, TARGETS),
    *reduced("BCEWithLogitsLoss", SHAPE, HITS, weight=WEIGHT, pos_weight=WEIGHT[::-1]),
    *reduced("BCEWithLogitsLoss", SHAPE, TARGETS),
    *reduced("MSELoss", SHAPE, SHAPE),
    *reduced("L1Loss", SHAPE, SHAPE),
    *reduced("HuberLoss", SHAPE, SHAPE, delta=0.7),
    *reduced("SmoothL1Loss", SHAPE, SHAPE, beta=0.7),
    *reduced("GaussianNLLLoss", SHAPE, SHAPE, VARIANCES, full=True),
    *reduced("GaussianNLLLoss", SHAPE, SHAPE, VARIANCES, eps=0.3),
    *reduced("PoissonNLLLoss", SHAPE, COUNTS, full=True, wrt=(0,)),
    *reduced("PoissonNLLLoss", PROBABILITIES, COUNTS, log_input=False),
    *reduced("KLDivLoss", SHAPE, TARGETS),
    *reduced("KLDivLoss", SHAPE, SHAPE, log_target=True),
    *reduced("SoftMarginLoss", (4,), SIGNS, wrt=(0,)),
    *reduced("HingeEmbeddingLoss", (4,), SIGNS, margin=0.8, wrt=(0,)),
    *reduced("MarginRankingLoss", (4,), (4,), SIGNS, margin=0.3, wrt=(0, 1)),
    *reduced("MultiMarginLoss", SHAPE, CLASSES, margin=0.8),
    *reduced("MultiMarginLoss", SHAPE, CLASSES, p=2, weight=WEIGHT),
    *reduced("MultiLabelMarginLoss", SHAPE, LISTS),
    *reduced("MultiLabelSoftMarginLoss", SHAPE, HITS, weight=WEIGHT, wrt=(0,)),
    *reduced("CosineEmbeddingLoss", SHAPE, SHAPE, SIGNS, margin=0.1, wrt=(0, 1)),
    *reduced("TripletMarginLoss", *THREE),
    *reduced("TripletMarginLoss", *THREE, margin=0.5, p=3.0, swap=True),
    *reduced("TripletMarginWithDistanceLoss", *THREE, margin=0.7, swap=True),
    *ctc((7, 4, 5), TRANSCRIPTS, FRAMES, SIZES, zero_infinity=True),
    *ctc((7, 4, 5), IN_A_ROW, FRAMES, SIZES, zero_infinity=True),
    *ctc((7, 3, 5), np.array([[0, 1], [2, 2], [1, 0]]), FRAMES[:3], np.array([2, 2, 1]), blank=4),
    *ctc((6, 4), np.array([1, 3, 1]), np.array(6), np.array(3)),
    *EDGES,
]
