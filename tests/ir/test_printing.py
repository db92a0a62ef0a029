"""Graphs as text: readable, and the same text for the same program."""

from __future__ import annotations

import re
from typing import Any

import wonderland as wl


def text(f: Any, *args: Any) -> str:
    return str(wl.make_graph(f)(*args))


def test_every_line_has_names_types_and_parameters() -> None:
    def f(x: wl.Tensor, W: wl.Tensor) -> wl.Tensor:
        return wl.tanh(x @ W).sum(axis=0)

    assert text(f, wl.ones((2, 3)), wl.ones((3, 4))) == "\n".join(
        [
            "f(a: float32[2,3], b: float32[3,4]) {",
            "  c: float32[2,4] = matmul a b",
            "  d: float32[2,4] = tanh c",
            "  e: float32[4] = sum d [axes=(0,)]",
            "} -> e",
        ]
    )


def test_names_follow_the_order_of_appearance_and_do_not_run_out() -> None:
    def f(x: wl.Tensor) -> wl.Tensor:
        for _ in range(60):
            x = wl.sin(x)
        return x

    lines = text(f, wl.ones(2)).splitlines()
    names = [line.split(":")[0].strip() for line in lines[1:-1]]
    assert names[:3] == ["b", "c", "d"]
    assert names[24:27] == ["z", "aa", "ab"]
    assert len(set(names)) == 60
    assert lines[-1] == "} -> bi"


def test_the_same_program_prints_the_same_twice() -> None:
    def make() -> Any:
        return lambda x, y: (wl.sin(x) * y + wl.cond(y.sum() > 0, wl.exp, wl.cos, x)).sum()

    args = wl.ones(3), wl.ones(3)
    assert text(wl.grad(make()), *args) == text(wl.grad(make()), *args)


def test_literals_and_results_are_shown() -> None:
    shown = text(lambda x: (2.0 * x, x > 0, 7), wl.ones(2))
    assert "multiply 2.0 a" in shown
    assert shown.splitlines()[-1] == "} -> b, c"  # the 7 is no tensor
    assert "-> a, a" in text(lambda x: (x, x), wl.ones(2))


def test_inner_graphs_are_indented_below_their_equation() -> None:
    def f(x: wl.Tensor) -> wl.Tensor:
        def step(c: wl.Tensor, e: wl.Tensor) -> tuple[wl.Tensor, wl.Tensor]:
            return wl.sin(c) * e, c

        return wl.scan(step, x[0], x)[1]

    lines = text(f, wl.ones(4)).splitlines()
    place = next(i for i, line in enumerate(lines) if " = scan " in line)
    assert "[consts=0, carry=1, length=4, reverse=False]" in lines[place]
    assert lines[place + 1].strip() == "step(a: float32[], b: float32[]) {"
    assert re.match(r"^ {6}c: float32\[\] = sin a$", lines[place + 2])
    assert lines[place + 4].strip() == "} -> d, a"
    both = text(lambda x: wl.cond(x > 0, wl.sin, wl.cos, x), wl.tensor(1.0))
    assert both.index("cos a") < both.index("sin a")  # the branch for False comes first


def test_lines_of_the_program_can_be_shown() -> None:
    from wonderland.ir import to_text

    def f(x: wl.Tensor) -> wl.Tensor:
        return wl.sin(x)

    line = f.__code__.co_firstlineno + 1
    shown = to_text(wl.make_graph(f)(wl.ones(2)), sources=True)
    assert f"# test_printing.py:{line}" in shown


def test_long_parameters_are_cut() -> None:
    shown = text(lambda x: wl.broadcast_to(x, (1,) * 40 + (2,)), wl.ones(2))
    assert "..." in shown
    assert max(map(len, shown.splitlines())) < 300


def test_numpy_constants_are_named_by_their_type() -> None:
    table = wl.tensor([[1.0, 2.0], [3.0, 4.0]])
    shown = text(lambda x: table @ x, wl.ones(2))
    assert shown.startswith("<lambda>(a: float32[2,2], b: float32[2])")  # what is captured comes first
