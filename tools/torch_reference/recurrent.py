"""Recurrent cells, and LSTMs whose output is projected; the layers without are in layers.py."""

from __future__ import annotations

from .cases import Case

CELLS = [
    *[Case(name, ((2, 3), (2, 4)), (3, 4)) for name in ("RNNCell", "GRUCell")],
    *[Case(name, ((2, 3),), (3, 4)) for name in ("RNNCell", "GRUCell", "LSTMCell")],
    *[Case(name, ((3,), (4,)), (3, 4), {"bias": False}) for name in ("RNNCell", "GRUCell")],
    Case("RNNCell", ((2, 3), (2, 4)), (3, 4), {"nonlinearity": "relu"}),
    Case("LSTMCell", ((2, 3), (2, 4), (2, 4)), (3, 4)),
    Case("LSTMCell", ((3,), (4,), (4,)), (3, 4), {"bias": False}),
]

PROJECTED = [
    Case("LSTM", ((4, 2, 3),), (3, 4), {"proj_size": 2}),
    Case("LSTM", ((4, 2, 3), (1, 2, 2), (1, 2, 4)), (3, 4), {"proj_size": 2, "bias": False}),
    Case(
        "LSTM",
        ((2, 3, 3),),
        (3, 4),
        {"proj_size": 2, "num_layers": 2, "bidirectional": True, "batch_first": True},
    ),
]

CASES = [*CELLS, *PROJECTED]
