"""Each family against SciPy: densities, moments, entropies, quantiles, draws, derivatives, and bad parameters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import wonderland as wl
from wonderland import distributions as d
from wonderland.errors import GradientError, IndexOutOfRange, InputError, ShapeError

f64 = lambda *v: wl.asarray(np.array(v))
A, B = np.array([0.4, 1.0, 3.5]), np.array([2.0, 0.7, 1.5])
LOC = np.array([-1.0, 0.0, 2.0])
X = np.linspace(-3.0, 6.0, 19)[:, None]
UNIT = np.linspace(0.03, 0.97, 19)[:, None]
K = np.arange(0, 8)[:, None].astype(float)

CONTINUOUS = [
    (d.Normal(wl.asarray(LOC), wl.asarray(B)), stats.norm(LOC, B), X),
    (d.LogNormal(wl.asarray(LOC), wl.asarray(A)), stats.lognorm(A, scale=np.exp(LOC)), X),
    (d.Laplace(wl.asarray(LOC), wl.asarray(B)), stats.laplace(LOC, B), X),
    (d.Cauchy(wl.asarray(LOC), wl.asarray(B)), stats.cauchy(LOC, B), X),
    (d.StudentT(wl.asarray(A + 2), wl.asarray(LOC), wl.asarray(B)), stats.t(A + 2, LOC, B), X),
    (d.Uniform(wl.asarray(LOC), wl.asarray(LOC + B)), stats.uniform(LOC, B), X + 0.01),
    (d.Exponential(wl.asarray(B)), stats.expon(scale=1 / B), X),
    (d.Gamma(wl.asarray(A), wl.asarray(B)), stats.gamma(A, scale=1 / B), X),
    (d.Beta(wl.asarray(A), wl.asarray(B)), stats.beta(A, B), UNIT),
]
COUNTS = [
    (d.Poisson(wl.asarray(A * 3)), stats.poisson(A * 3), K),
    (d.NegativeBinomial(wl.asarray(A), wl.asarray(UNIT[::7, 0])), stats.nbinom(A, 1 - UNIT[::7, 0]), K),
    (d.NegativeBinomial.from_mean(wl.asarray(B), wl.asarray(A)), stats.nbinom(1 / A, 1 / (1 + A * B)), K),
    (d.Binomial(wl.tensor([4, 6, 9]), wl.asarray(UNIT[::7, 0])), stats.binom([4, 6, 9], UNIT[::7, 0]), K),
    (d.Bernoulli(wl.asarray(UNIT[::7, 0])), stats.bernoulli(UNIT[::7, 0]), K[:2]),
    (d.Bernoulli(logits=wl.asarray(LOC)), stats.bernoulli(1 / (1 + np.exp(-LOC))), K[:2]),
]
name = lambda v: type(v).__name__ if isinstance(v, d.Distribution) else ""


@pytest.mark.book("3.25", "A.08", "A.13", "A.12", name=("wl.distributions.Normal", "wl.distributions.Bernoulli"))
@pytest.mark.parametrize("ours, oracle, x", CONTINUOUS + COUNTS, ids=name)
def test_against_scipy(ours, oracle, x):
    log_p = oracle.logpmf(x) if ours.discrete else oracle.logpdf(x)
    np.testing.assert_allclose(ours.log_prob(x), log_p, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(ours.prob(x), np.exp(log_p), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.cdf(x), oracle.cdf(x), rtol=1e-8, atol=1e-10)
    mean, variance = oracle.stats("mv")
    if not isinstance(ours, d.Cauchy):
        np.testing.assert_allclose(ours.mean, mean, rtol=1e-10)
        np.testing.assert_allclose(ours.variance, variance, rtol=1e-10)
        np.testing.assert_allclose(ours.stddev, np.sqrt(variance), rtol=1e-10)
    np.testing.assert_allclose(ours.entropy(), oracle.entropy(), rtol=1e-7)
    assert ours.batch_shape == (3,)
    assert ours.event_shape == ()


@pytest.mark.parametrize(
    "ours, oracle, x", [c for c in CONTINUOUS if not isinstance(c[0], (d.StudentT, d.Gamma, d.Beta))], ids=name
)
def test_quantiles(ours, oracle, x):
    p = np.linspace(0.02, 0.98, 9)[:, None]
    np.testing.assert_allclose(ours.icdf(p), oracle.ppf(p), rtol=1e-9)
    with pytest.raises(InputError, match="a probability is"):
        ours.icdf(1.5)


@pytest.mark.book("3.25", name="wl.distributions.Distribution")
@pytest.mark.parametrize("ours, oracle, x", CONTINUOUS + COUNTS, ids=name)
def test_draws(ours, oracle, x):
    n = 2000
    draws = ours.sample((n,), key=wl.random.key(7))
    assert draws.shape == (n, 3)
    again = ours.sample((n,), key=wl.random.key(7))
    np.testing.assert_array_equal(draws, again)
    compiled = wl.jit(lambda dist, key: dist.sample((n,), key))(ours, wl.random.key(7))
    np.testing.assert_allclose(compiled, draws, rtol=1e-9, atol=1e-12)
    for i in range(3):
        column = draws.numpy()[:, i]
        if ours.discrete:
            error = column.std() / np.sqrt(n)
            assert abs(column.mean() - np.ravel(oracle.mean())[i]) < 5 * error
        else:
            frozen = lambda v, i=i: oracle.cdf(v[:, None])[:, i]
            assert stats.kstest(column, frozen).pvalue > 1e-4


@pytest.mark.book("3.25", name="wl.distributions.Distribution")
@pytest.mark.parametrize("ours, oracle, x", CONTINUOUS + COUNTS, ids=name)
def test_gradients_of_log_prob(ours, oracle, x):
    x = (
        x[(oracle.pmf(x) if ours.discrete else oracle.pdf(x)).all(axis=-1)][:3]
        if not isinstance(ours, d.Uniform)
        else LOC + 0.1
    )
    names, values = zip(*ours.params.items(), strict=True)
    build = type(ours)

    def f(*values):
        return build(**dict(zip(names, values, strict=True))).log_prob(x)

    if isinstance(ours, d.Binomial):
        wl.check_grads(lambda p: build(ours.total_count, p).log_prob(x), (ours.probs,))
    else:
        wl.check_grads(f, values)
    if ours.has_rsample:
        slopes = wl.grad(lambda *v: wl.sum(build(*v).rsample((2,), wl.random.key(0))))(*values)
        assert np.isfinite(slopes.numpy()).all()
    else:
        with pytest.raises(GradientError, match="jump"):
            ours.rsample((2,))
    stopped = wl.grad(lambda *v: wl.sum(build(**dict(zip(names, v, strict=True))).sample((2,), wl.random.key(0))))(
        *values
    )
    assert not stopped.numpy().any()


@pytest.mark.book("A.08", name="wl.distributions.Normal")
def test_the_density_is_the_derivative_of_the_distribution_function():
    for ours, _, x in CONTINUOUS:
        values = wl.asarray(np.broadcast_to(x, (19, 3)) + 0.003)
        slope = wl.grad(lambda v, ours=ours: wl.sum(ours.cdf(v)))(values)
        np.testing.assert_allclose(slope, ours.prob(values), rtol=1e-6, atol=1e-8)
    assert d.Normal().cdf(0.0).item() == 0.5
    assert d.Normal().cdf(np.inf).item() == 1.0
    assert d.Normal().cdf(-np.inf).item() == 0.0


@pytest.mark.book("A.09", "A.13", name="wl.distributions.Normal")
def test_densities_may_exceed_one():
    narrow = d.Normal(0.0, 0.01)
    assert narrow.prob(0.0).item() == pytest.approx(39.894, abs=5e-4)
    assert narrow.log_prob(0.0).item() > 0
    assert wl.nn.functional.nll(narrow, 0.0).item() < 0
    assert d.Normal().prob(0.0).item() == pytest.approx(0.39894228, rel=1e-6)
    assert d.Normal.from_variance(0.0, 0.01).scale.item() == pytest.approx(0.1)
    np.testing.assert_allclose(d.integrate(lambda x: d.Normal(0.0, 1.0).prob(x)), 1.0, rtol=1e-6)


@pytest.mark.book("A.16", name="wl.distributions.Distribution")
@pytest.mark.parametrize(
    "ours", [c[0] for c in CONTINUOUS + COUNTS] + [d.Categorical([0.2, 0.8]), d.Dirichlet([1.0, 2.0])], ids=name
)
def test_parameters_make_the_same_distribution(ours):
    again = type(ours)(**ours.params)
    draw = ours.sample((), key=wl.random.key(1))
    np.testing.assert_allclose(again.log_prob(draw), ours.log_prob(draw), rtol=1e-6)
    assert repr(ours).startswith(type(ours).__name__)
    mapped = wl.tree.map(lambda v: v, ours)
    np.testing.assert_array_equal(mapped.log_prob(draw), ours.log_prob(draw))
    np.testing.assert_allclose(wl.jit(lambda dist, x: dist.log_prob(x))(ours, draw), ours.log_prob(draw), rtol=1e-6)


BAD = [
    (lambda: d.Normal(0.0, 0.0), "scale"),
    (lambda: d.Normal(0.0, -1.0), "scale"),
    (lambda: d.Normal(np.nan, 1.0), "loc"),
    (lambda: d.Normal(0.0, np.inf), "scale"),
    (lambda: d.LogNormal(0.0, -1.0), "scale"),
    (lambda: d.Laplace(0.0, -1.0), "scale"),
    (lambda: d.Cauchy(0.0, 0.0), "scale"),
    (lambda: d.StudentT(0.0), "df"),
    (lambda: d.Uniform(1.0, 1.0), "low"),
    (lambda: d.Exponential(-1.0), "rate"),
    (lambda: d.Gamma(0.0), "concentration"),
    (lambda: d.Beta(1.0, -1.0), "concentration0"),
    (lambda: d.Dirichlet([1.0, 0.0]), "concentration"),
    (lambda: d.Poisson(0.0), "rate"),
    (lambda: d.Binomial(2.5, 0.5), "total_count"),
    (lambda: d.Binomial(2, 1.5), "a probability"),
    (lambda: d.Bernoulli(-0.1), "a probability"),
    (lambda: d.Bernoulli(0.1, logits=0.0), "both"),
    (lambda: d.Categorical(), "neither"),
    (lambda: d.Categorical([0.5, 0.6]), "sum to 1.1"),
    (lambda: d.Categorical([1.5, -0.5]), "a probability"),
    (lambda: d.Delta(np.nan), "value"),
]


@pytest.mark.book("A.02", name="wl.distributions.Categorical")
@pytest.mark.parametrize("make, message", BAD)
def test_bad_parameters(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_parameters_that_do_not_fit_each_other():
    with pytest.raises(ShapeError):
        d.Normal(wl.zeros(2), wl.ones(3))
    with pytest.raises(ShapeError, match="no outcomes"):
        d.Categorical(0.5)
    with pytest.raises(InputError, match="the largest logit"):
        d.Categorical(logits=[-np.inf, -np.inf])


def test_transformations_of_distributions():
    loc, x = wl.asarray(LOC), wl.asarray(B)
    each = wl.vmap(lambda dist, x: dist.log_prob(x))(d.Normal(loc, wl.asarray(B)), x)
    np.testing.assert_allclose(each, stats.norm(LOC, B).logpdf(B), rtol=1e-12)
    slope = wl.grad(lambda dist: dist.log_prob(2.0))(d.Normal(1.0, 0.5))  # a tree of derivatives
    np.testing.assert_allclose([slope.loc.item(), slope.scale.item()], [4.0, 6.0], rtol=1e-6)
    made = wl.jit(lambda m, s: d.Normal(m, s))(loc, wl.asarray(B))
    assert isinstance(made, d.Normal)
    scale = wl.nn.Parameter(wl.ones(()))
    assert d.Normal(0.0, scale).log_prob(0.0).item() == pytest.approx(-0.918939, abs=1e-5)


@pytest.mark.book("3.27", "A.11", "B3-13", name="wl.distributions.Categorical")
def test_categorical():
    p = d.Categorical([0.2, 0.5, 0.3])
    hot = wl.eye(3)
    np.testing.assert_allclose(p.prob(wl.arange(3)), [0.2, 0.5, 0.3], rtol=1e-6)
    np.testing.assert_allclose(p.prob(hot), [0.2, 0.5, 0.3], rtol=1e-6)
    assert -p.log_prob(1).item() == pytest.approx(0.6931, abs=5e-5)
    sure = d.Categorical([0.0, 1.0, 0.0])
    assert sure.log_prob(wl.tensor([0.0, 1.0, 0.0])).item() == 0.0  # 0^0 = 1
    assert sure.log_prob(0).item() == -np.inf
    assert sure.entropy().item() == 0.0
    many = d.Categorical(logits=wl.asarray(np.random.default_rng(0).normal(size=(4, 3))))
    np.testing.assert_allclose(wl.sum(many.probs, axis=-1), 1.0)
    y = wl.tensor([0, 2, 1, 1])
    np.testing.assert_allclose(many.log_prob(y), many.log_prob(wl.one_hot(y, 3).astype(wl.float64)), rtol=1e-12)
    np.testing.assert_allclose(many.entropy(), stats.entropy(many.probs.numpy(), axis=-1), rtol=1e-10)
    np.testing.assert_allclose(many.cdf(1), many.probs.numpy()[:, :2].sum(-1), rtol=1e-12)
    assert many.sample((5,)).shape == (5, 4)
    assert many.log_prob(many.sample((5,))).shape == (5, 4)
    slope = wl.grad(lambda p: d.Categorical(p).log_prob(1))(wl.tensor([0.0, 0.5, 0.5]))
    assert slope.tolist() == [0.0, 2.0, 0.0]
    for bad in (3, -1):
        with pytest.raises(IndexOutOfRange):
            p.log_prob(bad)
    with pytest.raises(ShapeError, match="one-hot"):
        p.log_prob(wl.ones(2))


@pytest.mark.book("A.12", name="wl.distributions.Bernoulli")
def test_bernoulli_is_a_categorical_and_gives_binary_cross_entropy():
    p = UNIT[:, 0]
    both = d.Categorical(wl.asarray(np.stack([1 - p, p], -1)))
    x = (np.arange(19) % 2).astype(float)
    np.testing.assert_allclose(d.Bernoulli(p).log_prob(x), both.log_prob(wl.asarray(x.astype(int))), rtol=1e-12)
    expected = wl.nn.functional.binary_cross_entropy(p, x, reduction="none")
    np.testing.assert_allclose(-d.Bernoulli(p).log_prob(x), expected, rtol=1e-12)
    certain = d.Bernoulli(wl.tensor([0.0, 1.0]))
    assert certain.log_prob(wl.tensor([0.0, 1.0])).tolist() == [0.0, 0.0]
    assert certain.entropy().tolist() == [0.0, 0.0]
    assert d.Bernoulli(logits=1000.0).log_prob(0).item() == -1000.0
    with pytest.raises(InputError, match="0 and 1"):
        d.Bernoulli(0.5).log_prob(0.5)


@pytest.mark.book("A.01", name="wl.distributions.Categorical")
def test_the_lottery():
    lottery = d.Categorical([0.6, 0.3, 0.1])
    draws = lottery.sample((100_000,), key=wl.random.key(0)).numpy()
    for i, p in enumerate((0.6, 0.3, 0.1)):
        assert abs((draws == i).mean() - p) < 5 * np.sqrt(p * (1 - p) / 1e5)
    assert d.expectation(lottery, lambda w: w + 1).item() == pytest.approx(1.5)
    assert d.expectation(lottery, lambda w: (w + 1) ** 2).item() == pytest.approx(2.7)


def test_outside_the_support_there_is_nothing():
    outside = -wl.ones(1)
    for dist in (
        d.LogNormal(0.0, 1.0),
        d.Exponential(1.0),
        d.Gamma(2.0),
        d.Beta(2.0, 2.0),
        d.Poisson(1.0),
        d.Uniform(0.0, 1.0),
    ):
        assert dist.log_prob(outside).item() == -np.inf
        assert wl.grad(lambda x, dist=dist: dist.prob(x).sum())(outside).item() == 0.0
        assert dist.cdf(outside).item() == 0.0
    assert d.Poisson(1.0).log_prob(0.5).item() == -np.inf
    assert d.Binomial(3, 0.5).log_prob(4).item() == -np.inf
    assert d.Dirichlet([1.0, 1.0]).log_prob(wl.tensor([0.9, 0.9])).item() == -np.inf
    assert abs(d.Beta(1.0, 1.0).log_prob(0.0).item()) < 1e-12
    slope = wl.grad(lambda a: d.Gamma(a).log_prob(2.0))(wl.tensor(1.0, wl.float64))
    np.testing.assert_allclose(slope, np.log(2) + np.euler_gamma, rtol=1e-9)  # ln x - digamma(1)


@pytest.mark.book("3.26", name="wl.distributions.Delta")
def test_delta_is_the_limit_of_narrow_distributions():
    point = d.Delta(2.0)
    assert point.mean.item() == 2.0
    assert point.variance.item() == 0.0
    assert point.sample((3,)).tolist() == [2.0, 2.0, 2.0]
    assert d.expectation(point, lambda x: x**2).item() == 4.0
    for scale in (0.1, 0.01):
        near = d.Normal(2.0, scale)
        assert (near.cdf(2.1) - near.cdf(1.9)).item() > 0.68
    assert point.cdf(wl.tensor([1.9, 2.1])).tolist() == [0.0, 1.0]


def test_no_formula():
    with pytest.raises(InputError, match="no formula for its cdf"):
        d.Dirichlet([1.0, 2.0]).cdf(0.5)
    with pytest.raises(InputError, match="no formula for its icdf"):
        d.Gamma(1.0).icdf(0.5)


def test_dirichlet():
    a = np.array([0.5, 1.0, 3.0])
    x = stats.dirichlet(a).rvs(5, random_state=0)
    ours = d.Dirichlet(wl.asarray(a))
    np.testing.assert_allclose(ours.log_prob(x), [stats.dirichlet(a).logpdf(v) for v in x], rtol=1e-10)
    np.testing.assert_allclose(ours.entropy(), stats.dirichlet(a).entropy(), rtol=1e-10)
    np.testing.assert_allclose(ours.mean, stats.dirichlet(a).mean(), rtol=1e-12)
    np.testing.assert_allclose(ours.variance, stats.dirichlet(a).var(), rtol=1e-12)
    draws = ours.sample((4000,), key=wl.random.key(0)).numpy()
    np.testing.assert_allclose(draws.sum(-1), 1.0)
    np.testing.assert_allclose(draws.mean(0), a / a.sum(), atol=0.02)
