"""Joint tables and Bayes' rule, with the lottery tickets of the book."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

import wonderland as wl
from wonderland.distributions import JointTable, bayes
from wonderland.errors import InputError, ShapeError

COUNTS = [[58, 27, 2], [2, 3, 8]]
TICKETS = JointTable(COUNTS, ("r", "w"))


@pytest.mark.book("A.03", "A.06", name="wl.distributions.JointTable")
def test_marginals():
    np.testing.assert_allclose(TICKETS.marginal("w").probs, [0.6, 0.3, 0.1], rtol=1e-12)
    np.testing.assert_allclose(TICKETS.marginal("r").probs, [0.87, 0.13], rtol=1e-12)
    np.testing.assert_allclose(TICKETS.marginal("w", "r").probs, np.array(COUNTS).T / 100, rtol=1e-12)
    # the sum rule: p(w) = sum_r p(w | r) p(r)
    given = TICKETS.conditional("r").numpy()
    np.testing.assert_allclose(TICKETS.marginal("r").probs.numpy() @ given, [0.6, 0.3, 0.1], rtol=1e-12)


@pytest.mark.book("A.04", name="wl.distributions.JointTable")
def test_conditionals_and_the_product_rule():
    assert TICKETS.probs[1, 2].item() == pytest.approx(0.08)
    assert TICKETS.condition(w=2).probs[0].item() == pytest.approx(0.2)
    product = TICKETS.conditional("w").numpy() * TICKETS.marginal("w").probs.numpy()
    np.testing.assert_allclose(product, TICKETS.probs, rtol=1e-12)
    np.testing.assert_allclose(TICKETS.conditional("w").numpy().sum(0), 1.0)


@pytest.mark.book("A.05", name="wl.distributions.JointTable")
def test_independence():
    assert TICKETS.mutual_information().item() == pytest.approx(0.151135, abs=5e-7)
    first, second = (np.repeat(v, np.ravel(COUNTS)) for v in (np.repeat([0, 1], 3), np.tile([0, 1, 2], 2)))
    assert TICKETS.mutual_information("w", "r").item() == pytest.approx(mutual_info_score(first, second), rel=1e-9)
    assert not TICKETS.is_independent()
    product = JointTable(np.outer([0.87, 0.13], [0.6, 0.3, 0.1]))
    assert product.mutual_information().item() == pytest.approx(0.0, abs=1e-12)
    assert product.is_independent()


@pytest.mark.book("A.07", name="wl.distributions.bayes")
def test_bayes_rule():
    prior = TICKETS.marginal("r").probs
    likelihood = TICKETS.conditional("r").T  # p(w | r) as (w, r)
    posterior = bayes(likelihood, prior).numpy()
    np.testing.assert_allclose(posterior, TICKETS.conditional("w").T, rtol=1e-10)
    assert posterior[2, 1] == pytest.approx(0.8)
    assert posterior[0, 0] == pytest.approx(0.966667, abs=5e-7)
    assert posterior[1, 0] == pytest.approx(0.9)
    assert likelihood[2, 1].item() == pytest.approx(0.615385, abs=5e-7)
    np.testing.assert_allclose(wl.jit(bayes)(likelihood, prior), posterior, rtol=1e-12)


def test_three_variables():
    table = JointTable(np.random.default_rng(0).random((2, 3, 4)), "abc")
    assert table.condition(b=1).names == ("a", "c")
    assert table.marginal("c", "a").probs.shape == (4, 2)
    assert float(wl.sum(table.condition(a=0, c=3).probs)) == pytest.approx(1.0)
    with pytest.raises(InputError, match="names of two"):
        table.mutual_information()


def test_tables_that_are_none():
    with pytest.raises(InputError, match="an entry is -1"):
        JointTable([[1, -1]])
    with pytest.raises(InputError, match="the sum is 0"):
        JointTable([[0, 0]])
    with pytest.raises(ShapeError, match="names"):
        JointTable(COUNTS, ("r",))
    with pytest.raises(InputError, match="no variable 'x'"):
        TICKETS.marginal("x")
    with pytest.raises(InputError, match="probability 0"):
        JointTable([[1, 0], [1, 0]]).condition(b=1)
    with pytest.raises(InputError, match="does not sum to 1"):
        bayes(wl.ones(2), wl.ones(2))
    with pytest.raises(InputError, match="what was seen"):
        bayes(wl.zeros(2), wl.tensor([0.5, 0.5]))
    with pytest.raises(InputError, match="a likelihood"):
        bayes(wl.tensor([-1.0, 1.0]), wl.tensor([0.5, 0.5]))
    with pytest.raises(ShapeError):
        bayes(wl.ones(3), wl.tensor([0.5, 0.5]))
