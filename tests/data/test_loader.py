"""The loader: every example once per epoch, the same order everywhere, and on from the middle of an epoch."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland import data
from wonderland.errors import InputError, ModuleError, ShapeError, WonderlandError
from wonderland.train.feeding import Batches


def numbers(loader):
    """The batches of an epoch over one array, as lists."""
    return [batch[0].tolist() for batch in loader]


def flat(loader):
    return [x for batch in numbers(loader) for x in batch]


def loader_of(n, batch_size, **options):
    return data.DataLoader(data.TensorDataset(np.arange(n)), batch_size, **options)


def noisy(x, rng):
    return x + rng.random()


noisy.random = True  # type: ignore[attr-defined]


def shifted(batch, rng):
    return (batch[0] + rng.random(), *batch[1:])


shifted.random = True  # type: ignore[attr-defined]


def failing(x):
    if x == 13:
        raise FileNotFoundError("no such picture")
    return x


class Slow(data.Dataset):
    """Examples that take a moment, so that a loader that is dropped is dropped in the middle."""

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.001)
        return index


# --- what an epoch is


@pytest.mark.book("5.36", "5.35", name=("wl.data.TensorDataset", "wl.data.DataLoader"))
def test_the_shapes_of_the_book():
    rng = np.random.default_rng(0)
    dataset = data.TensorDataset(rng.normal(size=(1000, 3)), rng.normal(size=(1000, 1)))
    loader = data.DataLoader(dataset, shuffle=True, batch_size=32)
    shapes = [(xb.shape, yb.shape) for xb, yb in loader]
    assert len(loader) == len(shapes) == 32
    assert set(shapes[:-1]) == {((32, 3), (32, 1))}
    assert shapes[-1] == ((8, 3), (8, 1))
    dropping = data.DataLoader(dataset, shuffle=True, batch_size=32, drop_last=True)
    assert len(dropping) == len(list(dropping)) == 31
    # the mean over an epoch weights the last batch by its size
    x = dataset.arrays[0]
    sizes, means = zip(*((len(xb.numpy()), xb.numpy().mean()) for xb, _ in loader), strict=True)
    np.testing.assert_allclose(np.average(means, weights=sizes), x.mean(), rtol=1e-9)
    assert abs(np.mean(means) - x.mean()) > 1e-5


@pytest.mark.book("5.34", "B5-12", name="wl.data.DataLoader")
def test_the_number_of_iterations():
    assert 5 * len(loader_of(1000, 20)) == 250
    loader = loader_of(1000, 20, shuffle=True)
    assert sum(1 for _ in range(5) for _ in loader) == 250
    assert loader.epoch == 5
    # n / r is the number of steps of an epoch, and the number of epochs is free
    assert len(loader_of(100, 25)) == 4


@pytest.mark.book("5.33", "B5-11", name="wl.data.DataLoader")
def test_every_epoch_has_each_example_once_in_another_order():
    loader = loader_of(53, 10, shuffle=True, seed=4)
    epochs = [flat(loader) for _ in range(3)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(53))
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    again = loader_of(53, 10, shuffle=True, seed=4)
    assert [flat(again) for _ in range(3)] == epochs
    other = loader_of(53, 10, shuffle=True, seed=5)
    assert flat(other) != epochs[0]
    again.set_epoch(1)
    assert flat(again) == epochs[1]
    plain = loader_of(53, 10)
    assert [flat(plain) for _ in range(2)] == [list(range(53))] * 2


def test_batches_are_tensors_of_their_own():
    x = np.arange(4.0)
    (batch,) = data.DataLoader(data.TensorDataset(x), 4)
    assert isinstance(batch[0], wl.Tensor)
    x[:] = 0
    assert batch[0].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_a_batch_size_of_none_gives_examples():
    found = list(data.DataLoader([{"x": np.zeros(3), "name": "a"}, {"x": np.ones(3), "name": "b"}], batch_size=None))
    assert [example["x"].shape for example in found] == [(3,), (3,)]
    assert found[1]["name"] == "b"


@pytest.mark.book("A3-43", name="wl.data.DataLoader")
def test_a_batch_size_that_grows():
    loader = loader_of(100, lambda step: 10 if step < 15 else 25, shuffle=True)
    assert len(loader) == 10
    assert [len(b) for b in numbers(loader)] == [10] * 10
    assert len(loader) == 7
    second = [len(b) for b in numbers(loader)]
    assert second == [10] * 5 + [25] * 2
    assert len(loader) == len(numbers(loader)) == 4
    assert loader.state_dict()["step"] == 21  # instead of 30 updates
    with pytest.raises(InputError, match=r"batch_size\(0\)=0 is too small"):
        list(loader_of(10, lambda step: 0))


def test_a_growing_batch_ends_where_a_falling_rate_ends():
    """Batches that grow take fewer updates to about the same loss as a learning rate that falls."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 3))
    y = x @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=256)
    best = np.mean((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2)

    def run(batch_size, rate):
        loader = data.DataLoader(data.TensorDataset(x, y), batch_size, shuffle=True)
        w, step = np.zeros(3), 0
        for _ in range(12):
            for xb, yb in loader:
                xb, yb = xb.numpy(), yb.numpy()
                w -= rate(step) * 2 * xb.T @ (xb @ w - yb) / len(xb)
                step += 1
        return np.mean((x @ w - y) ** 2), step

    falling, updates = run(8, lambda step: 0.1 / (1 + step // 128))
    growing, fewer = run(lambda step: 8 * (1 + step // 64), lambda step: 0.1)
    assert fewer < 0.6 * updates
    assert falling < 1.05 * best
    assert growing < 1.05 * best


# --- the same whatever the number of workers


@pytest.mark.book("5.37", name="wl.data.DataLoader")
@pytest.mark.parametrize(
    "options", [{"prefetch": 0}, {"prefetch": 1}, {"prefetch": 7}, {"num_workers": 1}, {"num_workers": 3}]
)
def test_order_and_augmentation_do_not_depend_on_who_makes_the_batches(options):
    dataset = data.TensorDataset(np.arange(41.0), np.arange(41))

    def epochs(**how):
        loader = data.DataLoader(dataset, 4, shuffle=True, seed=7, transform=noisy, batch_transform=shifted, **how)
        return [[(x.numpy(), y.numpy()) for x, y in loader] for _ in range(2)]

    reference, found = epochs(), epochs(**options)
    for epoch, other in zip(reference, found, strict=True):
        assert len(epoch) == len(other) == 11
        for (x, y), (u, v) in zip(epoch, other, strict=True):
            np.testing.assert_array_equal(x, u)
            np.testing.assert_array_equal(y, v)
    noise = {int(y): float(x - y) for x, y in zip(*map(np.concatenate, zip(*reference[0], strict=True)), strict=True)}
    assert len({round(value, 6) for value in noise.values()}) > 35  # every example has its own noise
    assert not np.array_equal(reference[0][0][0], reference[1][0][0])  # and another one in every epoch


def test_the_noise_of_an_example_does_not_depend_on_the_order():
    dataset = data.TensorDataset(np.arange(10.0), np.arange(10))

    def noise(**how):
        loader = data.DataLoader(dataset, 3, transform=noisy, seed=1, **how)
        return {int(i): float(v) for x, y in loader for v, i in zip(x.numpy(), y.numpy(), strict=True)}

    assert noise() == noise(shuffle=True)
    mapped = data.DataLoader(dataset.map(lambda e: e).map(noisy_pair), 3, seed=1, shuffle=True)
    assert {int(i): float(v) for x, y in mapped for v, i in zip(x.numpy(), y.numpy(), strict=True)} == noise()


def noisy_pair(pair, rng):
    return pair[0] + rng.random(), pair[1]


noisy_pair.random = True  # type: ignore[attr-defined]


@pytest.mark.skipif("spawn" not in __import__("multiprocessing").get_all_start_methods(), reason="needs processes")
def test_spawned_workers_need_what_can_be_pickled():
    loader = loader_of(8, 4, num_workers=1, multiprocessing_context="spawn", transform=lambda x: x)
    with pytest.raises(InputError, match="cannot be sent to worker processes"):
        list(loader)
    with pytest.raises(InputError, match="no way 'teleport'"):
        list(loader_of(8, 4, num_workers=1, multiprocessing_context="teleport"))


def test_a_spawned_worker():
    loader = loader_of(8, 4, num_workers=1, multiprocessing_context="spawn", shuffle=True)
    assert numbers(loader) == numbers(loader_of(8, 4, shuffle=True))


# --- exceptions, and nothing left behind


@pytest.mark.book("5.37", name="wl.data.DataLoader")
@pytest.mark.parametrize("options", [{"prefetch": 0}, {"prefetch": 2}, {"num_workers": 2}])
def test_exceptions_arrive_with_the_example_named(options):
    loader = data.DataLoader(range(20), 4, transform=failing, **options)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    with pytest.raises(FileNotFoundError, match="no such picture") as caught:
        next(batches)
    notes = caught.value.__notes__
    assert notes[0] == "while loading example 13"
    assert notes[1] == "in batch 3 of epoch 0, examples [12, 13, 14, 15]"
    assert loader.state_dict()["position"] == 3


class UnpicklableError(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} {b}")


def raise_unpicklable(x):
    raise UnpicklableError("bad", "luck")


def test_an_exception_that_cannot_travel_is_told():
    with pytest.raises(WonderlandError, match="raised UnpicklableError: bad luck") as caught:
        list(data.DataLoader(range(4), 2, transform=raise_unpicklable, num_workers=1))
    assert any("in a worker process" in note for note in caught.value.__notes__)


def die(x):
    import os

    os._exit(3)


def test_a_worker_that_dies_is_reported():
    with pytest.raises(WonderlandError, match="worker 0 ended with exit code 3"):
        list(data.DataLoader(range(4), 2, transform=die, num_workers=1))


def loader_threads():
    return [t for t in threading.enumerate() if t.name == "wonderland-loader"]


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}])
def test_no_thread_or_process_outlives_its_loop(options):
    import multiprocessing

    before = threading.active_count()
    for _ in range(3):
        for _ in data.DataLoader(Slow(), 2, **options):
            break
    batches = iter(data.DataLoader(Slow(), 2, **options))
    next(batches)
    assert loader_threads()
    del batches
    gc.collect()
    try:
        for _ in data.DataLoader(Slow(), 2, **options):
            raise KeyError
    except KeyError:
        pass
    list(data.DataLoader(range(4), 2, **options))
    gc.collect()
    assert not loader_threads()
    assert threading.active_count() == before
    assert not [p for p in multiprocessing.active_children() if p.name.startswith("wonderland-loader")]


def test_a_single_batch_needs_no_thread():
    batches = iter(loader_of(10, 10))
    next(batches)
    assert not loader_threads()
    batches = iter(loader_of(10, 5))
    next(batches)
    assert loader_threads()


def test_a_program_may_end_in_the_middle_of_an_epoch():
    code = """
import numpy as np, wonderland as wl
loader = wl.data.DataLoader(wl.data.TensorDataset(np.zeros((1000, 10))), 2, num_workers={workers})
batches = iter(loader)
next(batches)
print("done")
"""
    for workers in (0, 1):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code.format(workers=workers)],
            capture_output=True,
            text=True,
            timeout=60,
            env=os.environ | {"PYTHONPATH": str(Path(wl.__file__).parent.parent)},
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


# --- on from the middle


@pytest.mark.parametrize("options", [{"prefetch": 0}, {"prefetch": 3}, {"num_workers": 2}])
@pytest.mark.parametrize("stop", [0, 1, 3, 5])
def test_a_loader_goes_on_in_the_middle_of_an_epoch(options, stop):
    def make():
        return data.DataLoader(
            data.TensorDataset(np.arange(18.0)),
            4,
            shuffle=True,
            seed=2,
            transform=noisy,
            batch_transform=shifted,
            **options,
        )

    whole = make()
    expected = [numbers(whole) for _ in range(3)]
    first = make()
    numbers(first)  # an epoch before
    batches = iter(first)
    seen = [next(batches)[0].tolist() for _ in range(stop)]
    state = json.loads(json.dumps(first.state_dict()))  # counts what was handed out, not what was made ahead
    assert (state["epoch"], state["position"], state["step"]) == (1, stop, 5 + stop)
    second = make()
    second.load_state_dict(state)
    assert seen + numbers(second) == expected[1]
    assert numbers(second) == expected[2]


def test_a_loop_that_was_left_starts_a_new_epoch():
    loader = loader_of(10, 2, shuffle=True)
    expected = [numbers(loader_of(10, 2, shuffle=True, seed=0))]
    for batch in loader:
        assert batch[0].tolist() == expected[0][0]
        break
    assert loader.state_dict() == {"seed": 0, "epoch": 0, "position": 1, "step": 1}
    second = numbers(loader)
    assert sorted([x for batch in second for x in batch]) == list(range(10))
    assert second != expected[0]
    assert (loader.epoch, loader.position) == (2, 0)


def test_a_state_that_is_none():
    loader = loader_of(10, 2)
    with pytest.raises(ModuleError, match="no 'epoch'"):
        loader.load_state_dict({"seed": 0})
    with pytest.raises(ModuleError, match="negative"):
        loader.load_state_dict({"seed": 0, "epoch": -1, "position": 0, "step": 0})


def test_a_schedule_and_a_stream_go_on_as_well():
    def scheduled():
        return loader_of(50, lambda step: 3 + step, shuffle=True)

    def streamed():
        return data.DataLoader(
            data.GeneratorDataset(lambda: ((i,) for i in range(50))), 7, shuffle=True, shuffle_buffer=9
        )

    for make in (scheduled, streamed):
        first, second, whole = make(), make(), make()
        expected = [numbers(whole) for _ in range(2)]
        numbers(first)
        batches = iter(first)
        seen = [next(batches)[0].tolist() for _ in range(2)]
        second.load_state_dict(first.state_dict())
        assert seen + numbers(second) == expected[1]


# --- sources, samplers, refusals


def test_a_foreign_source_may_give_whole_batches():
    class Foreign:
        def __len__(self):
            return 6

        def __getitem__(self, index):
            raise AssertionError("one by one")

        def __getitems__(self, indices):
            return [{"x": index} for index in indices]

    assert [batch["x"].tolist() for batch in data.DataLoader(Foreign(), 4)] == [[0, 1, 2, 3], [4, 5]]
    record = data.iris()
    x, y = next(iter(data.DataLoader(record, 16, shuffle=True)))
    assert (x.shape, y.shape) == ((16, 4), (16,))


def test_arrays_are_examples_by_row():
    x, y = np.arange(6.0).reshape(3, 2), np.arange(3)
    batches = list(data.DataLoader((x, y), 2))
    assert [b.tolist() for _, b in batches] == [[0, 1], [2]]
    assert [b.tolist() for b in data.DataLoader(x, 2)] == [[[0, 1], [2, 3]], [[4, 5]]]
    assert [b.tolist() for b in data.DataLoader(wl.arange(3), 2)] == [[0, 1], [2]]
    with pytest.raises(InputError, match="a dict is no dataset"):
        data.DataLoader({"x": x})


def write_into(x):
    x += 1
    return x


@pytest.mark.parametrize("workers", [0, 1])
def test_a_transform_cannot_change_the_data(workers):
    x = np.zeros((4, 2))
    with pytest.raises(ValueError, match="read-only"):
        list(data.DataLoader(data.TensorDataset(x), 2, transform=write_into, num_workers=workers))
    assert not x.any()
    x[0] = 5  # the array itself is still its owner's


def test_batch_samplers_and_lists():
    x = data.TensorDataset(np.arange(6))
    assert numbers(data.DataLoader(x, batch_sampler=[[5, 0], [1]])) == [[5, 0], [1]]
    assert numbers(data.DataLoader(x, 2, sampler=[4, 4, 2])) == [[4, 4], [2]]
    stratified = data.DataLoader(x, batch_sampler=data.StratifiedBatchSampler([0, 0, 0, 1, 1, 1], 2))
    assert len(stratified) == 3
    assert numbers(stratified) != numbers(stratified)
    assert loader_of(6, 2, shuffle=True, generator=np.random.default_rng(3)).seed == int(
        np.random.default_rng(3).integers(1 << 63)
    )


def test_a_batch_larger_than_the_data():
    assert numbers(loader_of(3, 10)) == [[0, 1, 2]]
    with pytest.raises(InputError, match=r"batch_size=10 is larger than the data \(3 examples\)"):
        loader_of(3, 10, drop_last=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: loader_of(3, 0), "batch_size=0 is too small"),
        (lambda: loader_of(3, 2.5), "not an integer"),
        (lambda: loader_of(3, 2, num_workers=-1), "num_workers=-1"),
        (lambda: loader_of(3, 2, shuffle=True, sampler=[0]), "both shuffle and sampler"),
        (lambda: loader_of(3, 2, batch_sampler=[[0]]), "batch_sampler decides"),
        (lambda: loader_of(3, 2, sampler=iter([0])), "an iterator"),
        (lambda: loader_of(3, 2, pad_value=0, collate_fn=data.collate), "both pad_value and collate_fn"),
        (lambda: loader_of(3, 2, transform=3), "not a function"),
        (lambda: data.DataLoader(5), "a int is no dataset"),  # type: ignore[arg-type]
        (lambda: data.DataLoader(data.GeneratorDataset(list), sampler=[0]), "a stream has no indices"),
        (lambda: len(data.DataLoader(data.GeneratorDataset(list))), "a stream has no length"),
        (lambda: list(loader_of(0, 2)), "the dataset is empty"),
        (lambda: list(loader_of(3, 2, sampler=[7])), "no example 7 among 3"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(WonderlandError, match=message):
        make()


def test_a_shape_that_does_not_fit_is_told_by_the_thread_too():
    with pytest.raises(ShapeError, match="pad_value=0"):
        list(data.DataLoader([np.zeros(2), np.zeros(3)], 2))


def test_a_batch_that_does_not_divide_into_parts_is_handed_out_whole():
    batches = Batches([(np.arange(4),), (np.arange(4, 6),)])
    for source in (data.DataLoader(data.TensorDataset(np.arange(6)), 4), batches):
        source.share(1, 2, 4)
        assert [(x.tolist(), source.part) for (x,) in source] == [([2, 3], (2, 4)), ([4, 5], (2, 2))]
