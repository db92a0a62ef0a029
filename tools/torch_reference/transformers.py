"""Attention and transformers under PyTorch's names: every argument that changes a number.

Boolean masks are stored in our sense, true = may attend, and turned round for PyTorch. Results at padded places mean
nothing and are left out: their cotangents are zeros. Weights are stored under our names, in our layout.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

E, HEADS, BATCH, T, S = 4, 2, 2, 3, 4
REAL_T = np.array([[True, True, False], [True, True, True]])
REAL_S = np.array([[True, True, True, True], [False, True, True, False]])
ANY_TS = np.array([[True, False, True, True], [True, True, False, True], [False, True, True, True]])
ANY_TT = np.array([[True, False, True], [True, True, False], [True, True, True]])
CAUSAL = np.tri(T, dtype=bool)
ADDED = np.array([[0.0, 0.5, -0.25, -np.inf], [1.0, 0.0, 0.0, 0.25], [-np.inf, 0.125, 0.0, 0.75]])
SMALL = {"dim_feedforward": 5, "dropout": 0.0}


@dataclass(frozen=True)
class Case:
    """A class by its name, its settings, the shapes of its inputs (batch first), and masks by name, in our sense."""

    name: str
    args: tuple[Any, ...]
    settings: dict[str, Any]
    inputs: tuple[tuple[int, ...], ...]
    masks: dict[str, np.ndarray] = field(default_factory=dict)
    calls: dict[str, Any] = field(default_factory=dict)
    real: np.ndarray | None = None  # which results count

    def heading(self) -> dict[str, Any]:
        return {"name": self.name, "args": list(self.args), "settings": self.settings, "calls": self.calls}


X, Z, Y = (BATCH, T, E), (BATCH, S, E), (BATCH, S, E)
ENCODER = "TransformerEncoderLayer"
DECODER = "TransformerDecoderLayer"
PADDED = {"src_key_padding_mask": REAL_S}

CASES = [
    Case("MultiheadAttention", (E, HEADS), {}, (X, Z, Y)),
    Case("MultiheadAttention", (E, HEADS), {"batch_first": True, "bias": False}, (X, Z, Y)),
    Case("MultiheadAttention", (E, HEADS), {"kdim": 3, "vdim": 5}, (X, (BATCH, S, 3), (BATCH, S, 5))),
    Case("MultiheadAttention", (E, HEADS), {}, ((T, E), (S, E), (S, E))),
    Case("MultiheadAttention", (E, HEADS), {}, (X, Z, Y), {"key_padding_mask": REAL_S}),
    Case("MultiheadAttention", (E, HEADS), {}, (X, Z, Y), {"attn_mask": ANY_TS, "key_padding_mask": REAL_S}),
    Case("MultiheadAttention", (E, HEADS), {"batch_first": True}, (X, Z, Y), {"attn_mask": ADDED}),
    Case(
        "MultiheadAttention", (E, HEADS), {}, (X, Z, Y), {"attn_mask": np.stack([ANY_TS, ~ANY_TS, ANY_TS, ANY_TS])},
        {"average_attn_weights": False},
    ),
    Case("MultiheadAttention", (E, HEADS), {}, (X, X, X), {"attn_mask": CAUSAL}, {"need_weights": False}),
    Case(ENCODER, (E, HEADS), {**SMALL, "batch_first": True}, (X,)),
    Case(ENCODER, (E, HEADS), {**SMALL, "norm_first": True, "activation": "gelu"}, (X,), {"src_mask": ANY_TT}),
    Case(ENCODER, (E, HEADS), {**SMALL, "layer_norm_eps": 0.1, "bias": False}, ((T, E),), {"src_mask": CAUSAL}),
    Case(ENCODER, (E, HEADS), {**SMALL, "batch_first": True}, (Z,), PADDED, real=REAL_S),
    Case(
        DECODER, (E, HEADS), {**SMALL, "batch_first": True}, (X, Z),
        {"tgt_mask": CAUSAL, "tgt_key_padding_mask": REAL_T, "memory_key_padding_mask": REAL_S}, real=REAL_T,
    ),
    Case(DECODER, (E, HEADS), {**SMALL, "norm_first": True, "bias": False}, (X, Z), {"memory_mask": ADDED}),
    Case("TransformerEncoder", (), {"layer": {**SMALL, "norm_first": True}, "layers": 2, "norm": True}, (X,)),
    Case(
        "TransformerDecoder", (), {"layer": {**SMALL, "batch_first": True}, "layers": 2, "norm": False}, (X, Z),
        {"tgt_mask": CAUSAL},
    ),
    Case(
        "Transformer", (E, HEADS, 1, 2), SMALL, (Z, X),
        {
            "tgt_mask": CAUSAL, "src_key_padding_mask": REAL_S, "memory_key_padding_mask": REAL_S,
            "tgt_key_padding_mask": REAL_T,
        },
        real=REAL_T,
    ),
]  # fmt: skip
