"""What layers cost over lengths: counted work and measured memory against the asymptotics. No test looks at seconds."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

import wonderland as wl
from tests.test_examples import example
from wonderland.errors import InputError

# how costs grow with the length: training, one more token, memory
ORDERS = {
    "convolution": (1, 0, 0),
    "attention": (2, 1, 1),
    "linear attention": (1, 0, 0),
    "AFT": (1, 0, 0),
    "RNN": (1, 0, 0),
    "LSTM": (1, 0, 0),
    "SSM": (1, 0, 0),
    "RWKV": (1, 0, 0),
    "Mamba": (1, 0, 0),
}


@pytest.mark.book("13.71", name="wl.models.compare_layers")
@pytest.mark.parametrize("layer", ORDERS)
def test_the_table_matches_the_asymptotics(layer):
    found = wl.models.compare_layers([layer], [128, 256], features=4, seconds=False)
    train, step, memory = ORDERS[layer]
    assert found.order(layer, "train_work") == pytest.approx(train, abs=0.1)
    assert found.order(layer, "step_work") == pytest.approx(step, abs=0.1)
    assert found.order(layer, "state_bytes") == memory


@pytest.mark.book("13.71", name="wl.models.compare_layers")
def test_what_is_kept_is_what_the_formulas_say():
    e, n = 8, 64
    kept = {c.layer: c.state_bytes // 4 for c in wl.models.compare_layers(None, [n], features=e, seconds=False).costs}
    assert kept["attention"] == 2 * n * e  # keys and values
    assert kept["convolution"] == 3 * e  # the inputs that a kernel of 4 places still sees
    assert kept["linear attention"] == e * e + e  # S and z, one head
    assert kept["RNN"] == e
    assert kept["LSTM"] == 2 * e
    assert kept["SSM"] == 2 * e  # complex numbers
    assert kept["Mamba"] == 2 * e * 16 + 2 * e * 3  # states of twice the features, and what the convolution sees
    assert kept["AFT full"] == 2 * n * e + 2  # keys and values, and a place, which is an int64
    assert set(kept) == {*ORDERS, "AFT full"}


def test_a_training_pass_of_one_layer_is_three_products_of_its_forward_pass():
    """An Elman layer: two products of n e^2 forward, and for each of them two backward, whose sums are counted too."""
    e, n = 16, 64
    (cost,) = wl.models.compare_layers(["RNN"], [n], features=e, seconds=False).costs
    products = 6 * n * e * e - n * e * e  # no gradient with respect to the inputs
    assert products <= cost.train_work < 1.4 * products
    assert 2 * e * e <= cost.step_work < 2.5 * e * e


@pytest.mark.book("13.71", name="wl.models.LayerComparison")
def test_the_report(tmp_path, capsys):
    mine = {"mine": lambda e, n: wl.nn.Recurrent(wl.nn.GRUCell(e, e))}
    found = wl.models.compare_layers(mine, [8, 16], features=4, batch=2, repeats=1)
    assert found.layers() == ["mine"]
    lengths, seconds = found.values("mine", "train_seconds")
    assert lengths == [8, 16]
    assert all(s > 0 for s in seconds)
    lines = str(found).splitlines()
    assert len(lines) == 3
    assert "train ms" in lines[0]
    picture = found.picture("state_bytes")
    assert ET.fromstring(picture).tag.endswith("svg")
    assert picture.count("<polyline") == 1
    plain = wl.models.compare_layers(["RNN"], [8], features=4, seconds=False)
    assert "ms" not in str(plain)
    assert math.isnan(plain.costs[0].step_seconds)
    example("compare_layers").main(["RNN"], [8, 16], 4, str(tmp_path / "picture.svg"))
    assert "memory 0.00" in capsys.readouterr().out
    assert (tmp_path / "picture.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: wl.models.compare_layers(["transformer"]), "there is no layer 'transformer'"),
        (lambda: wl.models.compare_layers(["RNN"], []), "no lengths"),
        (lambda: wl.models.compare_layers({"mlp": lambda e, n: wl.nn.Linear(e, e)}, [8]), "does not read on"),
        (lambda: wl.models.compare_layers(["RNN"], [8], seconds=False).order("RNN", "state_bytes"), "two lengths"),
        (lambda: wl.models.compare_layers(["RNN"], [8], seconds=False).values("RNN", "cost"), "no cost 'cost'"),
        (lambda: wl.models.compare_layers(["RNN"], [8], seconds=False).values("GRU", "step_work"), "no layer 'GRU'"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
