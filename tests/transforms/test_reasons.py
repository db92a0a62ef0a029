"""Why functions are traced again, and the one warning about it."""

from __future__ import annotations

import warnings

import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import RetraceWarning
from wonderland.transforms.jit.reasons import MANY, OFTEN

scale = 2.0


def scaled(x):
    return x * scale


def test_what_changed_is_named(monkeypatch):
    f = wl.jit(lambda x, y=None, flag=True: x * 2 if flag else x)
    assert f.why() == "it was not called yet."
    f(wl.ones(3))
    assert f.why() == "this was the first call."
    f(wl.ones((3, 4)))
    assert "the argument x is float32[3,4] and was float32[3]." in f.why()
    assert "BucketBatchSampler" in f.why()
    f(wl.ones((3, 4)).astype(wl.float64))
    assert "x is float64[3,4] and was float32[3,4]." in f.why()
    assert "astype" in f.why()
    f(wl.ones(3), flag=True)
    f(wl.ones(3), flag=False)
    assert "flag is False and was True" in f.why()
    f({"a": wl.ones(3)}["a"], {"b": wl.ones(1)}, flag=False)
    assert "y.b is float32[1], and was not there" in f.why()
    f(wl.ones(3))  # known: nothing is traced
    assert "y.b" in f.why()
    g = wl.jit(scaled)
    g(wl.ones(1))
    monkeypatch.setitem(globals(), "scale", 3.0)
    assert g(wl.ones(1)).item() == 3.0
    assert "'scale', which the function refers to, has changed" in g.why()


def test_explain_tells_why_of_the_last_call():
    f = wl.jit(lambda x: wl.exp(x).sum())
    f(wl.ones(3)), f(wl.ones(5))
    found = wl.explain(f)
    assert found.why() == f.why()
    assert "(n,)" in str(found)  # of batches of all sizes


def test_a_function_that_makes_state_says_so():
    kept = []

    @wl.jit
    def f(x):
        kept.append(nn.Linear(2, 2))
        return kept[-1](x)

    f(wl.ones((1, 2))), f(wl.ones((1, 2)))
    assert "state" in f.why()


def test_one_warning_for_many_shapes():
    f = wl.jit(lambda x: x + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(1, MANY):
            f(wl.ones((2, n)))
    with pytest.warns(RetraceWarning, match=rf"{MANY} times in {MANY} calls.*float32\[2,{MANY}\].*bucket_lengths"):
        f(wl.ones((2, MANY)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(wl.ones((2, MANY + 1)))


def test_no_warning_where_traces_are_used_often():
    f = wl.jit(lambda x: x + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(1, MANY + 2):
            for _ in range(OFTEN + 1):
                f(wl.ones(n))


def test_numbers_of_python_are_no_reason():
    f = wl.jit(lambda x, k: x * k)
    f(wl.ones(2), 1.0), f(wl.ones(2), 2.0)
    assert f.why() == "this was the first call."


def test_why_no_program_serves_all_sizes():
    """The axis, the reason and what helps: lengths are padded to a few, and batches are of few sizes."""
    g = wl.jit(lambda x: wl.cumsum(x, axis=1))
    for n in (4, 5):
        g(wl.ones((2, n)))
    assert "each size of axis 1 is compiled. One program serves all sizes of an axis in front alone." in g.why()
    assert "PadCollate(to=...)" in g.why()
    for n in (3, 4):
        g(wl.ones((n, 5)))
    g(wl.ones((8, 6)))
    assert "drop_last" in g.why()  # both axes
    with wl.using_backend("native"):
        f = wl.jit(lambda x: wl.cumsum(x, axis=0))  # known when it is compiled
        h = wl.jit(lambda x: x.sum(axis=0) if x.shape[0] < 4 else x.max(axis=0))  # known when it is traced
        for n in (3, 4, 5):
            f(wl.ones((n, 2)))
            h(wl.ones((n, 2)))
    assert "each size is compiled, as no program serves all of them: cumsum (" in f.why()
    assert "no program serves all of them: there is sum for a batch of 3 and max for another" in h.why()
    assert "drop_last" in f.why()
