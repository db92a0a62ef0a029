"""A call that looks like the last one is taken for it only if it is."""

import numpy as np

import wonderland as wl


def test_tuples_of_tensors_are_not_the_tensors_themselves():
    @wl.jit
    def f(a, b, c=None):
        return a[0] - a[1] * 10 + b if isinstance(a, tuple) else a - b * 100 + c

    x, y, z = wl.tensor(1.0), wl.tensor(2.0), wl.tensor(3.0)
    for _ in range(3):
        assert float(f((x, y), z)) == 1 - 20 + 3
        assert float(f((y, x), z)) == 2 - 10 + 3  # the same kind of call with other numbers
        assert float(f(x, y, z)) == 1 - 200 + 3


def test_none_and_a_tensor_differ():
    f = wl.jit(lambda x, y: x if y is None else x + y)
    one = wl.tensor(1.0)
    assert [float(f(one, y)) for y in (None, None, one, one, None)] == [1, 1, 2, 2, 1]


def test_a_tuple_of_another_length_or_with_other_shapes_is_another_call():
    f = wl.jit(lambda batch: sum(part.sum() for part in batch))
    ones = [wl.ones(n) for n in (2, 2, 5)]
    assert [float(f(tuple(ones[:2]))) for _ in range(2)] == [4, 4]
    assert float(f(tuple(ones))) == 9
    assert float(f((ones[0], ones[2]))) == 7
    np.testing.assert_allclose(np.asarray(f((ones[0] * 3, ones[1]))), 8)


def test_a_module_beside_a_batch_is_read_anew():
    model = wl.nn.Linear.from_matrix([[2.0]])
    f = wl.jit(lambda model, batch: model(batch[0]) - batch[1])
    batch = (wl.ones((1, 1)), wl.zeros((1, 1)))
    assert float(f(model, batch)[0, 0]) == 2.0
    model.weight = wl.tensor([[5.0]])
    assert float(f(model, batch)[0, 0]) == 5.0
    other = wl.nn.Linear.from_matrix([[7.0]])
    assert float(f(other, batch)[0, 0]) == 7.0


def test_an_argument_in_a_tuple_that_is_returned():
    f = wl.jit(lambda model, batch, extra: (batch[1], model, extra))
    model, x, y = wl.nn.Linear(1, 1), wl.ones(2), wl.zeros(3)
    for _ in range(2):
        second, same, extra = f(model, (x, y), None)
        assert second.shape == (3,)
        assert same is model
        assert extra is None


def test_draws_from_the_global_stream_do_not_make_a_trace_stale():
    f = wl.jit(lambda x: x + wl.random.normal(()))
    wl.random.seed(0)
    first = [float(f(wl.zeros(()))) for _ in range(2)]
    wl.nn.Linear(2, 3).weight = wl.zeros((2, 3))  # modules come and change elsewhere
    wl.random.seed(0)
    assert [float(f(wl.zeros(()))) for _ in range(2)] == first
    assert f.traces == 1
    graph = f._known.traces[next(iter(f._known.traces))]
    wl.nn.Linear(2, 3).eval()
    f(wl.zeros(()))
    assert f._known.traces[next(iter(f._known.traces))] is graph
