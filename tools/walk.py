"""The way of a call through the package: `python -m tools.walk` counts the files and folders that a step visits.

A reader who follows `step(model, optimizer, x, y)` with a debugger goes from function to function. Counted are the
different files, and how often the next function is in another folder, for the first call (which traces and compiles)
and for a later one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import pairwise
from types import FrameType

import wonderland as wl
from wonderland import nn

PACKAGE = os.path.dirname(wl.__file__) + os.sep


def walk(f: Callable[[], object]) -> list[str]:
    """The files of the package whose functions are called by f, in order."""
    visited: list[str] = []

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            visited.append(frame.f_code.co_filename[len(PACKAGE) :])

    sys.setprofile(profile)
    try:
        f()
    finally:
        sys.setprofile(None)
    return visited


def summary(visited: list[str]) -> str:
    folders = [os.path.dirname(file) for file in visited]
    changes = sum(a != b for a, b in pairwise(folders))
    files, places = len(set(visited)), len(set(folders))
    return f"{len(visited):,} calls, {files} files, {places} folders, {changes:,} changes of folder"


def main() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = wl.optim.Adam(model, lr=1e-3)
    x, y = wl.random.normal((32, 8)), wl.arange(32) % 3

    @wl.jit
    def step(model: nn.Module, optimizer: wl.optim.Optimizer, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
        loss, grads = wl.value_and_grad(lambda m: nn.functional.cross_entropy(m(x), y))(model)
        optimizer.step(grads)
        return loss

    print("first call:", summary(walk(lambda: step(model, optimizer, x, y))))
    print("later call:", summary(walk(lambda: step(model, optimizer, x, y))))


if __name__ == "__main__":
    main()
