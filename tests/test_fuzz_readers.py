"""A short campaign of damaged files; `python -m tools.fuzz --readers` is the long one."""

import random

import pytest

from tools.fuzz import mutations, readers

pytest.importorskip("PIL.Image")
pytest.importorskip("pyarrow")


def test_damaged_files_are_read_or_refused():
    found = readers.run(300, seed=11, show=lambda text: None, cases=150)
    assert found.tried == 150
    assert found.failures == []


def test_a_case_is_the_same_again(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    first, second = (readers.Cases(5, str(tmp_path / folder)) for folder in ("a", "b"))
    made = [first.make(case) for case in range(40)]
    for case in reversed(range(40)):  # in another order: no case depends on those before it
        form, data, number = second.make(case)
        assert (form.name, data, number) == (made[case][0].name, *made[case][1:])


def test_damage_is_seeded_and_reaches_every_kind():
    data = b'{"a": [1, 22, 333]}' * 10
    assert mutations.damaged(data, random.Random(1)) == mutations.damaged(data, random.Random(1))
    made = {mutations.damaged(data, random.Random(seed)) for seed in range(300)}
    assert len(made) > 250
    assert any(len(changed) < len(data) for changed in made)
    assert any(len(changed) > len(data) for changed in made)


def test_a_reader_that_raises_anything_else_is_found(monkeypatch):
    monkeypatch.setattr(
        readers, "_child", lambda *_: iter([{"case": 0, "reader": "x"}, {"died": "exit code -11"}, {"died": "twice"}])
    )
    found = readers.run(5, seed=0, show=lambda text: None, cases=1)
    assert "exit code -11" in found.failures[0]
    assert "replay(0, 0)" in found.failures[0]
