"""Steps of PyTorch's optimizers, rates of its schedulers, and clipped gradients."""

from __future__ import annotations

from typing import Any
from unittest import mock

import torch  # type: ignore[import-not-found]  # not in the project's environment

from .cases import plain
from .optimizers import CLIPPING, METRICS, PLATEAUS, PROBLEM, RULES, SCHEDULES, STEPS, ours


def computed() -> dict[str, list[Any]]:
    """All records about optimization."""
    return {
        "problem": [plain(PROBLEM)],
        "rules": [plain(_steps(*rule)) for rule in RULES],
        "schedules": [plain(_rates(*schedule)) for schedule in SCHEDULES],
        "plateaus": [plain(_plateau(settings)) for settings in PLATEAUS],
        "clipping": [plain(_clipped(*case)) for case in CLIPPING],
    }


def _steps(name: str, settings: dict[str, Any], rates: list[float] | None) -> dict[str, Any]:
    """The parameters after each step."""
    muon, lbfgs = name == "Muon", name == "LBFGS"
    x, y, w, c = (torch.tensor(PROBLEM[key]) for key in ("x", "y", "w", "c"))
    if muon:
        w = w.mT.contiguous()
    parameters = [w.requires_grad_(), *([] if muon else [c.requires_grad_()])]
    listed = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    optimizer = getattr(torch.optim, name)(parameters, **listed, **({"max_eval": 100} if lbfgs else {}))
    path = []
    for t in range(STEPS):
        batch = 0 if lbfgs else t
        if rates is not None:
            optimizer.param_groups[0]["lr"] = rates[t]

        def closure(batch: int = batch) -> Any:
            optimizer.zero_grad()
            loss = ((x[batch] @ (w.mT if muon else w) + c - y[batch]) ** 2).mean()
            loss.backward()
            return loss

        # Muon computes in bfloat16, whose rounding is no part of the rule
        with mock.patch.object(torch.Tensor, "bfloat16", torch.Tensor.clone):
            optimizer.step(closure)
        path.append([(w.mT if muon else w).detach().numpy().copy(), c.detach().numpy().copy()])
    record: dict[str, Any] = {"name": name, "settings": ours(settings), "rates": rates, "path": path}
    if name == "ASGD":
        record["average"] = optimizer.state[w]["ax"].numpy()
    return record


def _optimizer() -> Any:
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)


def _rates(
    name: str, settings: dict[str, Any], schedule: str, args: list[Any], named: dict[str, Any]
) -> dict[str, Any]:
    """The first twenty learning rates."""
    optimizer = _optimizer()
    own = {"cycle_momentum": False} if name in ("CyclicLR", "OneCycleLR") else {}
    scheduler = getattr(torch.optim.lr_scheduler, name)(optimizer, **settings, **own)
    found = []
    for t in range(20):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if t < 19:
            scheduler.step()
    told = {"torch": name, "torch_settings": settings, "name": schedule, "args": args, "settings": named}
    return {**told, "rates": found}


def _plateau(settings: dict[str, Any]) -> dict[str, Any]:
    """The rate after each metric."""
    optimizer = _optimizer()
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **settings)
    found = []
    for metric in METRICS:
        scheduler.step(metric)
        found.append(optimizer.param_groups[0]["lr"])
    return {"settings": settings, "metrics": METRICS, "rates": found}


def _clipped(name: str, args: list[float]) -> dict[str, Any]:
    """Three times w and c as gradients, clipped, and what the function returns."""
    parameters = [torch.nn.Parameter(torch.tensor(PROBLEM[key])) for key in ("w", "c")]
    for p in parameters:
        p.grad = 3 * p.detach()
    norm = getattr(torch.nn.utils, name)(parameters, *args)
    grads = [p.grad.numpy() for p in parameters if p.grad is not None]
    return {"name": name, "args": args, "norm": None if norm is None else norm.item(), "grads": grads}
