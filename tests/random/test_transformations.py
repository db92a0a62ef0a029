"""The same key gives the same numbers in a loop, under vmap and jit; derivatives pass through parameters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import wonderland as wl
from tests.agreement import same_array

# name -> a draw of some shape from a key
DRAWS = {
    "uniform": lambda k: wl.random.uniform((5,), -1.0, 3.0, key=k),
    "uniform bfloat16": lambda k: wl.random.uniform((5,), key=k, dtype=wl.bfloat16),
    "normal": lambda k: wl.random.normal((3, 5), 1.0, 2.0, key=k),
    "normal float64": lambda k: wl.random.normal((7,), key=k, dtype=wl.float64),
    "truncated_normal": lambda k: wl.random.truncated_normal((5,), key=k),
    "exponential": lambda k: wl.random.exponential((5,), key=k),
    "gumbel": lambda k: wl.random.gumbel((5,), key=k),
    "laplace": lambda k: wl.random.laplace((5,), key=k),
    "logistic": lambda k: wl.random.logistic((5,), key=k),
    "cauchy": lambda k: wl.random.cauchy((5,), key=k),
    "gamma": lambda k: wl.random.gamma((5,), wl.tensor([0.1, 0.5, 1.0, 3.0, 30.0]), key=k),
    "beta": lambda k: wl.random.beta((5,), 0.5, 2.0, key=k),
    "dirichlet": lambda k: wl.random.dirichlet([0.5, 1.0, 2.0], (2,), key=k),
    "multivariate_normal": lambda k: wl.random.multivariate_normal(wl.zeros(2), wl.eye(2) + 1, (3,), key=k),
    "orthogonal": lambda k: wl.random.orthogonal((4, 3), key=k),
    "randint": lambda k: wl.random.randint((5,), -3, 10, key=k),
    "randint wide": lambda k: wl.random.randint((5,), -(2**60), 2**61, key=k),
    "bernoulli": lambda k: wl.random.bernoulli((5,), 0.3, key=k),
    "rademacher": lambda k: wl.random.rademacher((5,), key=k),
    "categorical": lambda k: wl.random.categorical(wl.arange(12).reshape(3, 4) / 5, axis=0, shape=(2,), key=k),
    "poisson": lambda k: wl.random.poisson((4,), wl.tensor([0.1, 3.0, 12.0, 1e4]), key=k),
    "poisson small": lambda k: wl.random.poisson((4,), 2.0, key=k),
    "binomial": lambda k: wl.random.binomial((4,), wl.tensor([3, 30, 300, 3000]), 0.4, key=k),
    "choice": lambda k: wl.random.choice(10, (4,), key=k),
    "choice without replacement": lambda k: wl.random.choice(10, (4,), replace=False, key=k),
    "choice weighted": lambda k: wl.random.choice(3, (4,), p=[0.2, 0.5, 0.3], key=k),
    "choice weighted without replacement": lambda k: wl.random.choice(3, (2,), replace=False, p=[0.2, 0.5, 0.3], key=k),
    "choice of columns": lambda k: wl.random.choice(wl.arange(12).reshape(3, 4), (2, 2), axis=1, key=k),
    "permutation": lambda k: wl.random.permutation(7, key=k),
    "permutation of columns": lambda k: wl.random.permutation(wl.arange(12).reshape(3, 4), axis=1, key=k),
    "split": lambda k: wl.random.split(k, 3),
    "fold_in": lambda k: wl.random.fold_in(k, 9),
}
# draws made by linear algebra may differ in the last digit between one matrix and a batch of them
CLOSE = {"multivariate_normal", "orthogonal"}


def assert_same(name, a, b):
    if name in CLOSE:
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    else:
        same_array(a, b)


@pytest.mark.parametrize("name", DRAWS)
def test_a_loop_vmap_batched_keys_and_jit_agree(name):
    draw = DRAWS[name]
    keys = wl.random.split(wl.random.key(42), 4)
    loop = wl.stack([draw(keys[i]) for i in range(4)])
    assert not np.array_equal(loop.numpy()[0], loop.numpy()[1])
    assert_same(name, wl.vmap(draw)(keys), loop)
    assert_same(name, draw(keys), loop)
    jitted = wl.jit(draw)
    assert_same(name, jitted(keys[0]), loop[0])
    assert_same(name, jitted(keys[1]), loop[1])
    assert_same(name, wl.jit(wl.vmap(draw))(keys), loop)
    assert_same(name, wl.vmap(jitted)(keys), loop)


def test_under_vmap_a_key_that_is_not_mapped_gives_every_example_the_same_numbers():
    key = wl.random.key(0)
    x = wl.vmap(lambda x: x + wl.random.normal((), key=key))(wl.zeros(3))
    assert len(set(x.tolist())) == 1


def test_traced_parameters_give_the_numbers_of_known_ones():
    key = wl.random.key(8)
    for f, args in [
        (lambda a, b: wl.random.uniform((6,), a, b, key=key), (1.0, 2.0)),
        (lambda a, b: wl.random.normal((6,), a, b, key=key), (1.0, 2.0)),
        (lambda a, b: wl.random.gamma((6,), a, b, key=key), (0.4, 2.0)),
        (lambda a, b: wl.random.beta((6,), a, b, key=key), (0.4, 2.0)),
        (lambda a, b: wl.random.poisson((6,), a * b, key=key), (3.0, 2.0)),
        (lambda a, b: wl.random.poisson((6,), a * b, key=key), (30.0, 2.0)),
        (lambda a, b: wl.random.binomial((6,), a, b, key=key), (30.0, 0.5)),
        (lambda a, b: wl.random.truncated_normal((6,), a, b, key=key), (-1.0, 0.5)),
        (lambda a, b: wl.random.randint((6,), a, b, key=key), (-3, 1000)),
        (lambda a, b: wl.random.randint((6,), a, b, key=key), (-3, 2**40)),
        (lambda a, b: wl.random.bernoulli((6,), a * b, key=key), (0.5, 0.5)),
        (lambda a, b: wl.random.fold_in(wl.random.key(a), b), (3, -4)),
    ]:
        known = f(*args)
        assert_same("", f(*[wl.tensor(a) for a in args]), known)
        assert_same("", wl.jit(f)(*[wl.tensor(a) for a in args]), known)
        assert_same("", wl.jit(f)(*args), known)
    half = lambda a: wl.random.normal((6,), a, wl.ones(6, dtype=wl.float16), key=key)
    assert half(1.0).dtype == wl.float16  # a number does not decide the dtype, traced or not
    assert_same("", wl.jit(half)(1.0), half(1.0))


def test_a_cell_as_parameter_is_read_anew_in_every_call():
    spread = wl.nn.Buffer(wl.tensor(1.0))
    draw = wl.jit(lambda: wl.random.normal((3,), 0.0, spread, key=wl.random.key(0)))
    first = draw()
    spread.assign(wl.tensor(2.0))
    assert_same("", draw(), first * 2)
    rate = wl.nn.Buffer(wl.tensor(1.0))
    count = lambda: wl.random.poisson((50,), rate, key=wl.random.key(0))
    jitted = wl.jit(count)
    for value in (1.0, 100.0):
        rate.assign(wl.tensor(value))
        assert_same("", jitted(), count())


# --- state


def test_streams_inside_jit_move_on_as_outside():
    inside, outside = wl.random.Stream(3), wl.random.Stream(3)

    @wl.jit
    def step(x):
        return x + wl.random.normal((2,), key=inside) + wl.random.uniform((2,), key=inside)

    for _ in range(3):
        plain = wl.zeros(2) + wl.random.normal((2,), key=outside) + wl.random.uniform((2,), key=outside)
        assert_same("", step(wl.zeros(2)), plain)
    assert inside.value.tolist() == outside.value.tolist() == [3, 0, 6, 0]


def test_the_global_stream_inside_jit():
    noise = wl.jit(lambda: wl.random.randn(3))
    wl.random.seed(7)
    jitted = [noise(), noise()]
    wl.random.seed(7)
    assert_same("", jitted[0], wl.random.randn(3))
    assert_same("", jitted[1], wl.random.randn(3))


class Noise(wl.nn.Module):
    """A layer with a random stream of its own."""

    def __init__(self):
        super().__init__()
        self.stream = wl.random.Stream(5)

    def __call__(self, x):
        return x + wl.random.normal(x.shape, key=self.stream)


def test_a_stream_belongs_to_the_state_of_its_module():
    layer, twin = Noise(), Noise()
    assert list(layer.state_dict()) == ["stream"]
    jitted = wl.jit(lambda layer, x: layer(x))
    for _ in range(2):
        assert_same("", jitted(layer, wl.zeros(3)), twin(wl.zeros(3)))
    saved = layer.state_dict()
    later = layer(wl.zeros(3))
    twin.load_state_dict(saved)
    assert_same("", twin(wl.zeros(3)), later)


def test_under_vmap_a_stream_moves_once_and_is_shared():
    stream = wl.random.Stream(0)
    x = wl.vmap(lambda x: x + wl.random.normal((), key=stream))(wl.zeros(3))
    assert len(set(x.tolist())) == 1
    assert stream.value.tolist() == [0, 0, 1, 0]
    rows = wl.vmap(lambda i: wl.random.normal((), key=wl.random.fold_in(stream.next_key(), i)))(wl.arange(3))
    assert len(set(rows.tolist())) == 3


@pytest.mark.parametrize("wrap", [lambda f: f, wl.jit], ids=["eager", "jit"])
def test_checkpoint_draws_the_same_numbers_again_and_moves_the_stream_once(wrap):
    stream, other = wl.random.Stream(0), wl.random.Stream(0)
    noisy = lambda x: wl.sin(x * wl.random.normal((3,), key=stream)).sum()
    noise = wl.random.normal((3,), key=other)
    x = wl.ones(3)
    np.testing.assert_allclose(
        wrap(wl.grad(wl.checkpoint(noisy)))(x).numpy(), (noise * wl.cos(noise)).numpy(), rtol=1e-6
    )
    assert stream.value.tolist() == [0, 0, 1, 0]


def test_streams_inside_grad_vjp_and_scan():
    stream, other = wl.random.Stream(0), wl.random.Stream(0)
    noisy = lambda x: (x * wl.random.normal((3,), key=stream)).sum()
    noise = wl.random.normal((3,), key=other)
    assert_same("", wl.grad(noisy)(wl.ones(3)), noise)
    assert stream.value.tolist() == [0, 0, 1, 0]

    def step(total, _):
        return total + wl.random.normal((), key=stream), None

    def sum_of_noise(start):
        return wl.scan(step, start, length=4)[0]

    expected = sum(wl.random.normal((), key=other).item() for _ in range(4))
    assert abs(sum_of_noise(wl.tensor(0.0)).item() - expected) < 1e-5
    expected = sum(wl.random.normal((), key=other).item() for _ in range(4))
    assert abs(wl.jit(sum_of_noise)(wl.tensor(0.0)).item() - expected) < 1e-5
    assert stream.value.tolist() == other.value.tolist()


# --- derivatives


def test_locations_and_scales_are_differentiable():
    key = wl.random.key(1)
    for name in ("normal", "gumbel", "laplace", "logistic", "cauchy"):
        draw = getattr(wl.random, name)
        noise = draw((50,), key=key, dtype=wl.float64)
        f = lambda m, s, draw=draw: draw((50,), m, s, key=key).sum()
        m, s = wl.tensor(1.0, dtype=wl.float64), wl.tensor(2.0, dtype=wl.float64)
        dm, ds = wl.grad(f, argnums=(0, 1))(m, s)
        assert dm.item() == pytest.approx(50)
        assert ds.item() == pytest.approx(noise.numpy().sum(), rel=1e-12)
    noise = wl.random.exponential((50,), key=key, dtype=wl.float64)
    scale = wl.tensor(2.0, dtype=wl.float64)
    slope = wl.grad(lambda s: wl.random.exponential((50,), s, key=key).sum())(scale)
    assert slope.item() == pytest.approx(noise.numpy().sum(), rel=1e-12)


def test_uniform_is_differentiable_in_its_bounds():
    key = wl.random.key(1)
    u = wl.random.uniform((50,), key=key, dtype=wl.float64).numpy()
    f = lambda low, high: wl.random.uniform((50,), low, high, key=key).sum()
    low, high = wl.tensor(-1.0, dtype=wl.float64), wl.tensor(3.0, dtype=wl.float64)
    slopes = wl.grad(f, argnums=(0, 1))(low, high)
    assert slopes[0].item() == pytest.approx((1 - u).sum())
    assert slopes[1].item() == pytest.approx(u.sum())


def test_truncated_normal_is_differentiable():
    parameters = [wl.tensor(v, dtype=wl.float64) for v in (-1.0, 2.0, 0.3, 1.5)]
    key = wl.random.key(1)
    f = lambda *p: wl.random.truncated_normal((20,), *p, key=key).sum()
    slopes = wl.grad(f, argnums=(0, 1, 2, 3))(*parameters)
    for i, slope in enumerate(slopes):
        step = [p + (1e-5 if i == j else 0.0) for j, p in enumerate(parameters)]
        back = [p - (1e-5 if i == j else 0.0) for j, p in enumerate(parameters)]
        assert slope.item() == pytest.approx((f(*step) - f(*back)).item() / 2e-5, rel=1e-6)


@pytest.mark.parametrize("a", [0.05, 0.3, 0.9, 1.0, 2.5, 20.0, 1e4])
def test_gamma_follows_its_quantiles(a):
    """The derivative of a draw with respect to the concentration is that of SciPy's quantile function."""
    key = wl.random.key(3)
    draw = lambda a: wl.random.gamma((200,), a, key=key)
    x, slope = wl.jvp(draw, (wl.tensor(a, dtype=wl.float64),), (wl.tensor(1.0, dtype=wl.float64),))
    x, slope = x.numpy(), slope.numpy()
    kept = x > 1e-200
    quantile = stats.gamma(a).cdf(x[kept])
    usable = (quantile > 1e-12) & (quantile < 1 - 1e-6)
    h = 1e-3 * min(a, a**0.5)
    y = lambda b: special.gammaincinv(b, quantile)
    numeric = (8 * (y(a + h) - y(a - h)) - (y(a + 2 * h) - y(a - 2 * h))) / (12 * h)
    np.testing.assert_allclose(slope[kept][usable], numeric[usable], rtol=1e-4)


def test_gamma_gradients_are_unbiased_and_agree_in_all_modes():
    key = wl.random.key(0)
    mean_square = lambda a: (wl.random.gamma((N,), a, key=key) ** 2).mean()
    a = wl.tensor(1.7, dtype=wl.float64)
    slope = wl.grad(mean_square)(a).item()
    assert slope == pytest.approx(2 * 1.7 + 1, rel=0.1)  # of a (a + 1)
    assert wl.jit(wl.grad(mean_square))(a).item() == pytest.approx(slope, rel=1e-12)
    assert wl.grad(wl.jit(mean_square))(a).item() == pytest.approx(slope, rel=1e-12)
    second = wl.grad(wl.grad(mean_square))(a).item()
    numeric = (wl.grad(mean_square)(a + 1e-4) - wl.grad(mean_square)(a - 1e-4)).item() / 2e-4
    assert second == pytest.approx(numeric, rel=2e-2)  # draws that change sides of acceptance jump


N = 4000


def test_beta_and_dirichlet_are_differentiable():
    a = wl.tensor([0.8, 2.0, 3.0], dtype=wl.float64)
    mean_of_first = lambda a: wl.random.dirichlet(a, (N,), key=wl.random.key(0))[:, 0].mean()
    total = 5.8
    expected = np.array([(total - 0.8) / total**2, -0.8 / total**2, -0.8 / total**2])
    np.testing.assert_allclose(wl.grad(mean_of_first)(a).numpy(), expected, atol=0.01)
    mean = lambda a: wl.random.beta((N,), a, 2.0, key=wl.random.key(0)).mean()
    assert wl.grad(mean)(wl.tensor(3.0, dtype=wl.float64)).item() == pytest.approx(2 / 25, abs=0.01)


def test_multivariate_normal_is_differentiable_in_mean_and_covariance():
    covariance = wl.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=wl.float64)
    mean = wl.zeros(2, dtype=wl.float64)
    f = lambda m, c: (wl.random.multivariate_normal(m, c, (N,), key=wl.random.key(0)) ** 2).sum(axis=-1).mean()
    dm, dc = wl.grad(f, argnums=(0, 1))(mean, covariance)
    np.testing.assert_allclose(dm.numpy(), 0, atol=0.1)
    np.testing.assert_allclose(np.diag(dc.numpy()), 1, atol=0.1)  # of the trace


def test_counts_and_categories_have_no_derivative_but_do_not_stand_in_the_way():
    key = wl.random.key(0)
    f = lambda x: (x * wl.random.bernoulli((3,), x, key=key, dtype=wl.float32)).sum()
    assert set(wl.grad(f)(wl.full((3,), 0.5)).tolist()) <= {0.0, 1.0}
    g = lambda x: (x * wl.random.poisson((3,), x, key=key).astype(wl.float32)).sum()
    x = wl.full((3,), 4.0)
    np.testing.assert_array_equal(wl.grad(g)(x).numpy(), wl.random.poisson((3,), x, key=key).numpy())
    h = lambda z: z[wl.random.categorical(z, key=key)]
    assert wl.grad(h)(wl.zeros(4)).sum().item() == 1.0
