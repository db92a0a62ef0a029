"""Writes tests/optim/torch_reference.json: what PyTorch's optimizers, schedulers and clipping compute, in float64.

Run with a Python that has torch: `python tools/torch_optim.py`. The tests only read the file.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import torch

STEPS = 10
rng = np.random.default_rng(0)
A, B = rng.normal(size=(STEPS, 5, 3)), rng.normal(size=(STEPS, 5, 4))
W, C = rng.normal(size=(3, 4)), rng.normal(size=4)

RULES = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.3}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.7, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.2, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.05, "betas": [0.8, 0.95], "momentum_decay": 0.1, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.05}),
    ("RAdam", {"lr": 0.05, "betas": [0.8, 0.9], "weight_decay": 0.1}),
    ("Adamax", {"lr": 0.05, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.02}),
    ("Rprop", {"lr": 0.5, "etas": [0.4, 1.3], "step_sizes": [0.01, 0.6]}),
    ("ASGD", {"lr": 0.1, "lambd": 0.01, "t0": 4}),
    ("Adafactor", {"lr": 0.05}),
    ("Adafactor", {"lr": 0.5, "weight_decay": 0.1, "d": 1.5}),
]

SCHEDULES = {
    "step": (1.0, lambda o: torch.optim.lr_scheduler.StepLR(o, 4, 0.5)),
    "multi_step": (1.0, lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [3, 8, 9], 0.1)),
    "exponential": (1.0, lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9)),
    "linear": (1.0, lambda o: torch.optim.lr_scheduler.LinearLR(o, 0.25, 0.75, 10)),
    "polynomial": (1.0, lambda o: torch.optim.lr_scheduler.PolynomialLR(o, 12, 2.0)),
    "cosine": (1.0, lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 20, 0.1)),
    "cosine_restarts": (1.0, lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2, 0.1)),
    "one_cycle": (1.0, lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 2.0, 20)),
    "one_cycle_linear": (1.0, lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 2.0, 20, anneal_strategy="linear")),
    "cyclic": (1.0, lambda o: torch.optim.lr_scheduler.CyclicLR(o, 0.1, 1.0, 4, cycle_momentum=False)),
    "cyclic2": (
        1.0,
        lambda o: torch.optim.lr_scheduler.CyclicLR(o, 0.1, 1.0, 3, 5, mode="triangular2", cycle_momentum=False),
    ),
    "cyclic_exp": (
        1.0,
        lambda o: torch.optim.lr_scheduler.CyclicLR(o, 0.1, 1.0, 4, mode="exp_range", gamma=0.9, cycle_momentum=False),
    ),
}
METRICS = [5.0, 4.0, 4.0, 4.1, 3.9999, 3.0, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6, 3.7, 3.8, 2.0, 2.1, 2.2, 2.3, 2.4, 2.5]
PLATEAUS = {
    "plateau": {"factor": 0.5, "patience": 2},
    "plateau_cooldown": {"factor": 0.5, "patience": 1, "cooldown": 2, "threshold": 0.3, "threshold_mode": "abs"},
    "plateau_floor": {"mode": "max", "factor": 0.1, "patience": 0, "min_lr": 0.05},
}


def rule(name: str, settings: dict) -> dict:
    w, c = (torch.tensor(v, requires_grad=True) for v in (W, C))
    listed = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    optimizer = getattr(torch.optim, name)([w, c], **listed)
    path = []
    for t in range(STEPS):
        optimizer.zero_grad()
        ((torch.tensor(A[t]) @ w + c - torch.tensor(B[t])) ** 2).mean().backward()
        optimizer.step()
        path.append(w.sum().item() + c.sum().item())
    found = {"name": name, "settings": settings, "w": w.tolist(), "c": c.tolist(), "sums": path}
    if name == "ASGD":
        found["average"] = optimizer.state[w]["ax"].tolist()
    return found


def rates(lr: float, make) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    scheduler = make(optimizer)
    found = []
    for _ in range(20):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def plateau(settings: dict) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **settings)
    found = []
    for metric in METRICS:
        scheduler.step(metric)
        found.append(optimizer.param_groups[0]["lr"])
    return found


def clipped(norm_type: float) -> dict:
    parameters = [torch.nn.Parameter(torch.tensor(v)) for v in (W, C)]
    for p in parameters:
        p.grad = 3 * p.detach()
    norm = torch.nn.utils.clip_grad_norm_(parameters, 1.5, norm_type)
    return {"norm_type": norm_type, "norm": norm.item(), "grads": [p.grad.tolist() for p in parameters]}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)  # numbers such as the products of NAdam, too
    reference = {
        "torch": torch.__version__,
        "rules": [rule(name, settings) for name, settings in RULES],
        "schedules": {name: rates(lr, make) for name, (lr, make) in SCHEDULES.items()},
        "metrics": METRICS,
        "plateaus": [{"settings": s, "rates": plateau(s)} for s in PLATEAUS.values()],
        "clipping": [clipped(p) for p in (2.0, 1.0, float("inf"))],
    }
    (Path(__file__).parents[1] / "tests/optim/torch_reference.json").write_text(json.dumps(reference, indent=1) + "\n")
