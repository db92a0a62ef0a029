"""Update rules, schedules of the learning rate, and clipping of gradients.

Left out: LBFGS with a line search, whose trial points differ; CosineAnnealingLR after its end, where PyTorch's rate
rises again and ours stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import drawn

STEPS = 10
rng = np.random.default_rng(0)
# Ten batches for mean((x w + c - y)^2), and where w and c start.
PROBLEM = {
    "x": drawn(rng, (STEPS, 4, 3)),
    "y": drawn(rng, (STEPS, 4, 2)),
    "w": drawn(rng, (3, 2)),
    "c": drawn(rng, (2,)),
}
FALLING = [0.1, 0.1, 0.05, 0.05, 0.2, 0.02, 0.02, 0.01, 0.01, 0.3]

# A name, settings, and learning rates of the single steps if they change.
RULES: list[tuple[str, dict[str, Any], list[float] | None]] = [
    ("SGD", {"lr": 0.1}, None),
    ("SGD", {"lr": 0.1, "momentum": 0.9}, None),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}, None),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True}, None),
    ("SGD", {"lr": 0.1, "momentum": 0.9}, FALLING),
    ("Adam", {}, None),
    ("Adam", {"lr": 0.05, "betas": [0.8, 0.95], "eps": 1e-3}, FALLING),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "amsgrad": True}, None),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}, None),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}, None),
    ("AdamW", {}, None),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3}, FALLING),
    ("AdamW", {"lr": 0.05, "amsgrad": True, "maximize": True}, None),
    ("RMSprop", {}, None),
    ("RMSprop", {"lr": 0.01, "alpha": 0.9, "eps": 1e-4}, FALLING),
    ("RMSprop", {"lr": 0.01, "momentum": 0.5, "centered": True, "weight_decay": 0.1}, None),
    ("RMSprop", {"lr": 0.01, "centered": True, "maximize": True}, None),
    ("Adagrad", {}, None),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.3}, None),
    ("Adagrad", {"lr": 0.1, "weight_decay": 0.1, "eps": 1e-3, "maximize": True}, FALLING),
    ("Adadelta", {}, None),
    ("Adadelta", {"lr": 0.7, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.2, "maximize": True}, None),
    ("Adadelta", {}, FALLING),
    ("NAdam", {}, None),
    ("NAdam", {"lr": 0.05, "betas": [0.8, 0.95], "momentum_decay": 0.1, "weight_decay": 0.1}, FALLING),
    ("NAdam", {"lr": 0.05, "maximize": True}, None),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}, FALLING),
    ("RAdam", {"lr": 0.05}, None),
    ("RAdam", {"lr": 0.05, "betas": [0.8, 0.9], "weight_decay": 0.1}, FALLING),
    ("RAdam", {"lr": 0.05, "maximize": True}, None),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}, None),
    ("Adamax", {}, None),
    ("Adamax", {"lr": 0.05, "weight_decay": 0.1, "eps": 1e-3}, FALLING),
    ("Adamax", {"lr": 0.05, "betas": [0.5, 0.6], "maximize": True}, None),
    ("Rprop", {"lr": 0.02}, None),
    ("Rprop", {"lr": 0.5, "etas": [0.4, 1.3], "step_sizes": [0.01, 0.6], "maximize": True}, None),
    ("ASGD", {"lr": 0.1, "lambd": 0.01, "t0": 4}, None),
    ("ASGD", {"lr": 0.1, "alpha": 0.5, "weight_decay": 0.1, "maximize": True}, None),
    ("Adafactor", {"lr": 0.05}, None),
    ("Adafactor", {"lr": 0.5, "weight_decay": 0.1, "d": 1.5, "beta2_decay": -0.6}, FALLING),
    ("Adafactor", {"lr": 0.1, "eps": [1e-6, 0.1], "maximize": True}, None),
    # PyTorch's takes matrices only, and has the transpose of ours: w moves and c stays.
    ("Muon", {"lr": 0.1, "adjust_lr_fn": "original"}, None),
    ("Muon", {"lr": 0.1, "adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.3}, FALLING),
    ("Muon", {"lr": 0.1, "adjust_lr_fn": "original", "nesterov": False, "momentum": 0.8, "ns_steps": 3}, None),
    # Ten times two moves on the first batch.
    ("LBFGS", {"lr": 0.5, "max_iter": 2, "line_search_fn": None, "history_size": 100}, None),
    ("LBFGS", {"lr": 0.3, "max_iter": 2, "line_search_fn": None, "history_size": 3}, None),
]

# What a setting is called here.
RENAMED = {"decoupled_weight_decay": ("decay", {True: "decoupled", False: "coupled"})}


def ours(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a rule by our names."""
    pairs = [(RENAMED[k][0], RENAMED[k][1][v]) if k in RENAMED else (k, v) for k, v in settings.items()]
    return dict(pairs)


# The scheduler's name, our schedule, and what each is told; PyTorch's starts from a learning rate of 1.
SCHEDULES: list[tuple[str, dict[str, Any], str, list[Any], dict[str, Any]]] = [
    ("ConstantLR", {"factor": 1.0}, "constant", [1.0], {}),
    ("StepLR", {"step_size": 4, "gamma": 0.5}, "step", [1.0, 4, 0.5], {}),
    ("MultiStepLR", {"milestones": [3, 8, 9], "gamma": 0.1}, "multi_step", [1.0, [3, 8, 9], 0.1], {}),
    ("ExponentialLR", {"gamma": 0.9}, "exponential", [1.0, 0.9], {}),
    ("LinearLR", {"start_factor": 0.25, "end_factor": 0.75, "total_iters": 10}, "linear", [0.25, 0.75, 10], {}),
    ("PolynomialLR", {"total_iters": 12, "power": 2.0}, "polynomial", [1.0, 12, 2.0], {}),
    ("CosineAnnealingLR", {"T_max": 20, "eta_min": 0.1}, "cosine", [1.0, 20, 0.1], {}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.1}, "cosine_restarts", [1.0, 3, 2, 0.1], {}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4}, "cosine_restarts", [1.0, 4], {}),
    ("OneCycleLR", {"max_lr": 2.0, "total_steps": 20}, "one_cycle", [2.0, 20], {}),
    (
        "OneCycleLR",
        {"max_lr": 2.0, "total_steps": 20, "pct_start": 0.4, "div_factor": 5.0, "anneal_strategy": "linear"},
        "one_cycle",
        [2.0, 20],
        {"pct_start": 0.4, "div_factor": 5.0, "anneal_strategy": "linear"},
    ),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 4}, "cyclic", [0.1, 1.0, 4], {}),
    (
        "CyclicLR",
        {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 3, "step_size_down": 5, "mode": "triangular2"},
        "cyclic",
        [0.1, 1.0, 3, 5],
        {"mode": "triangular2"},
    ),
    (
        "CyclicLR",
        {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 4, "mode": "exp_range", "gamma": 0.9},
        "cyclic",
        [0.1, 1.0, 4],
        {"mode": "exp_range", "gamma": 0.9},
    ),
]

METRICS = [5.0, 4.0, 4.0, 4.1, 3.9999, 3.0, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6, 3.7, 3.8, 2.0, 2.1, 2.2, 2.3, 2.4, 2.5]
PLATEAUS: list[dict[str, Any]] = [
    {"factor": 0.5, "patience": 2},
    {"factor": 0.5, "patience": 1, "cooldown": 2, "threshold": 0.3, "threshold_mode": "abs"},
    {"mode": "max", "factor": 0.1, "patience": 0, "min_lr": 0.05},
]

# The function's name and its arguments after the gradients.
CLIPPING: list[tuple[str, list[float]]] = [
    ("clip_grad_norm_", [1.5, 2.0]),
    ("clip_grad_norm_", [1.5, 1.0]),
    ("clip_grad_norm_", [1.5, float("inf")]),
    ("clip_grad_norm_", [1e3, 2.0]),
    ("clip_grad_value_", [0.8]),
]
