"""Streams: bounded memory, an order for every epoch, shards."""

from __future__ import annotations

import tracemalloc
import weakref

import numpy as np
import pytest

from wonderland import data
from wonderland.errors import InputError


def counting(n):
    return data.GeneratorDataset(lambda: iter(range(n)))


def flat(loader):
    return [v for batch in loader for v in batch.tolist()]


@pytest.mark.book("5.65", name=("wl.data.IterableDataset", "wl.data.DataLoader"))
@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_larger_than_memory_needs_little(workers):
    rows, size = 400, 25_000  # 80 MB altogether
    alive = 0
    most = 0

    def gone():
        nonlocal alive
        alive -= 1

    def stream():
        nonlocal alive, most
        for i in range(rows):
            row = np.full(size, i, np.float64)
            alive += 1
            weakref.finalize(row, gone)
            most = max(most, alive)
            yield row

    loader = data.DataLoader(data.GeneratorDataset(stream), 10, shuffle=True, shuffle_buffer=20, num_workers=workers)
    tracemalloc.start()
    seen = [v for batch in loader for v in batch.numpy()[:, 0].tolist()]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sorted(seen) == list(range(rows))
    assert seen != sorted(seen)
    assert most <= 80  # the buffer, and the batches under way
    assert peak < 40e6


def test_an_endless_stream():
    def forever():
        i = 0
        while True:
            yield i
            i += 1

    stream = data.GeneratorDataset(forever)
    assert list(stream.filter(lambda x: x % 3 == 0).map(lambda x: -x).skip(1).take(3)) == [-3, -6, -9]
    for step, batch in enumerate(data.DataLoader(stream, 5)):
        assert batch.tolist() == list(range(5 * step, 5 * step + 5))
        if step == 4:
            break


@pytest.mark.parametrize("workers", [0, 2])
def test_epochs_differ_and_repeat(workers):
    def epochs():
        loader = data.DataLoader(counting(40), 6, shuffle=True, shuffle_buffer=15, seed=3, num_workers=workers)
        return [flat(loader) for _ in range(2)]

    first, second = epochs()
    assert sorted(first) == sorted(second) == list(range(40))
    assert first != second
    assert epochs() == [first, second]
    reference = data.DataLoader(counting(40), 6, shuffle=True, shuffle_buffer=15, seed=3, prefetch=0)
    assert flat(reference) == first
    # an example leaves after at most `shuffle_buffer` others came in after it
    assert all(place >= value - 14 for place, value in enumerate(first))


def test_random_maps_and_buffers_depend_on_seed_and_epoch():
    def noisy(x, rng):
        return x + rng.random()

    noisy.random = True
    stream = counting(10).map(noisy)
    assert list(stream.examples(0, 0)) == list(stream.examples(0, 0)) == list(stream)
    assert list(stream.examples(0, 0)) != list(stream.examples(0, 1))
    mixed = counting(30).shuffle(10)
    assert list(mixed.examples(1, 0)) != list(mixed.examples(2, 0))
    assert sorted(mixed) == list(range(30))


def test_the_last_batch_of_a_stream():
    assert [len(b) for b in data.DataLoader(counting(10), 4)] == [4, 4, 2]
    assert [len(b) for b in data.DataLoader(counting(10), 4, drop_last=True)] == [4, 4]
    assert list(data.DataLoader(counting(0), 4)) == []


def test_cache_reads_the_stream_once():
    passes = []

    def read():
        passes.append(1)
        return iter(range(3))

    stream = data.GeneratorDataset(read).cache()
    next(iter(stream))  # a pass that was not finished is not kept
    assert [list(stream) for _ in range(3)] == [[0, 1, 2]] * 3
    assert len(passes) == 2


def test_shards(tmp_path):
    for k in range(3):
        np.savez(tmp_path / f"{k}.npz", x=np.full((4, 2), k), y=np.arange(4) + 10 * k)
    paths = sorted(tmp_path.glob("*.npz"))
    in_order = data.ShardedDataset(paths, read=data.read_shard)
    assert [int(e["y"]) for e in in_order] == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
    mixed = data.ShardedDataset(paths, read=data.read_shard, shuffle=True)
    orders = {tuple(int(e["y"]) for e in mixed.examples(0, epoch)) for epoch in range(8)}
    assert len(orders) > 2
    (batch,) = data.DataLoader(in_order, 12)
    assert batch["x"].shape == (12, 2)
    np.save(tmp_path / "rows.npy", np.eye(3))
    assert (
        np.stack(list(data.ShardedDataset([tmp_path / "rows.npy"], read=data.read_shard))).tolist()
        == np.eye(3).tolist()
    )
    with pytest.raises(InputError, match="no shards"):
        data.ShardedDataset([], read=data.read_shard)


def test_a_stream_needs_a_way_to_begin():
    class Nothing(data.IterableDataset):
        pass

    with pytest.raises(NotImplementedError, match="Nothing: def __iter__"):
        list(Nothing())
