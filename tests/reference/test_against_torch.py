"""Every layer, loss and optimizer that PyTorch has, too, against its numbers: made by tools/torch_reference.

Values, gradients, running statistics and ten steps agree in float64, eagerly and compiled.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from tools.torch_reference import activations, initialization, layers, losses, normalization, optimizers, recurrent
from tools.torch_reference.cases import plain
from wonderland import nn, optim

FAMILIES = {
    "activations": activations,
    "layers": layers,
    "normalization": normalization,
    "recurrent": recurrent,
    "losses": losses,
}
OTHERS = ("optimizers", "initialization", "names")
FILES = {
    name: json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))
    for name in (*FAMILIES, *OTHERS)
}
CASES = [case for name in FAMILIES for case in FILES[name]["cases"]]
RULES = FILES["optimizers"]["rules"]


def agree(found, expected, tolerance=1e-10):
    """Up to a part of the largest number, or of 1."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    largest = np.max(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * largest)


def label(case):
    settings = [f"{key}={value}" for key, value in case.get("settings", {}).items()]
    told = ",".join([*map(str, case.get("args", [])), *settings, *case.get("names", [])])
    return f"{case['name']}({told})".replace(" ", "")


# --- modules and functions


def made(case):
    """The layer with its state, or the function."""
    if case["name"][0].islower():
        function = getattr(nn.functional, case["name"])
        return lambda *inputs, **named: function(*inputs, **case["settings"], **named)
    settings = {k: np.array(v) if k in ("weight", "pos_weight") else v for k, v in case["settings"].items()}
    layer = getattr(nn, case["name"])(*case["args"], **settings).astype(wl.float64)
    if "wrapped_by" in case:
        layer = getattr(nn, case["wrapped_by"])(layer)
    layer.load_state_dict({path: wl.asarray(np.array(value)) for path, value in case["state"].items()})
    return layer


def passed(case, record, layer, inputs, cotangents):
    """The outputs, and the gradients of inputs and parameters."""

    def weighted(layer, *inputs):
        positional = len(inputs) - len(case.get("names", []))
        named = dict(zip(case.get("names", []), inputs[positional:], strict=True))
        given = inputs[:positional]
        if "before" in case:
            given = (getattr(nn.functional, case["before"])(given[0], axis=-1), *given[1:])
        if case["name"] in ("LSTM", "LSTMCell") and positional == 3:
            given = (given[0], given[1:])
        outputs = wl.tree.leaves((layer or made(case))(*given, **named))
        return sum((y * v).sum() for y, v in zip(outputs, cotangents, strict=True)), outputs

    argnums = (0, *(i + 1 for i in record["wrt"]))
    (of_layer, *of_inputs), outputs = wl.grad(weighted, argnums, has_aux=True)(layer, *inputs)
    return outputs, of_inputs, of_layer


def follow(case, compiled):
    """Go through all passes of a case."""
    layer = made(case) if case["name"][0].isupper() else {}
    tolerance = case.get("tolerance", 1e-10)
    for record in case["passes"]:
        if layer:
            layer.train(record["training"])
        inputs, cotangents = ([wl.asarray(np.array(x)) for x in record[key]] for key in ("inputs", "cotangents"))
        run = partial(passed, case, record)
        outputs, of_inputs, of_layer = (wl.jit(run) if compiled else run)(layer, inputs, cotangents)
        for found, expected in zip([*outputs, *of_inputs], [*record["outputs"], *record["input_grads"]], strict=True):
            agree(found, expected, tolerance)
        assert set(of_layer) == set(record["grads"])
        for path, expected in record["grads"].items():
            agree(of_layer[path], expected, tolerance)
    for path, expected in case.get("buffers", {}).items():
        agree(dict(layer.named_buffers())[path], expected)


LOSSES = FILES["losses"]["cases"]
LAYERS = [case for case in CASES if case not in LOSSES]


@pytest.mark.book("A3-79", name="wl.nn.weight_norm")
@pytest.mark.parametrize("case", LAYERS, ids=label)
def test_layers(case):
    follow(case, compiled=False)


@pytest.mark.book("C-07", name="wl.nn.MSELoss")
@pytest.mark.parametrize("case", LOSSES, ids=label)
def test_losses(case):
    follow(case, compiled=False)


ONCE = {case["name"]: case for case in reversed(FILES["activations"]["cases"] + LOSSES)}  # compiling takes time
COMPILED = [
    *ONCE.values(),
    *(case for name in ("layers", "normalization", "recurrent") for case in FILES[name]["cases"]),
]


@pytest.mark.parametrize("case", COMPILED, ids=label)
def test_compiled(case):
    follow(case, compiled=True)


# --- rules and schedules


def loss_of(params, x, y):
    w, c = params
    return ((x @ w + c - y) ** 2).mean()


def by_gradients(optimizer, params, rate, x, y):
    if rate is not None:
        optimizer.lr = rate
    _, grads = wl.value_and_grad(loss_of)(params, x, y)
    optimizer.step(grads)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("case", RULES, ids=label)
def test_ten_steps(case, compiled):
    (problem,) = FILES["optimizers"]["problem"]
    x, y, w, c = (wl.asarray(np.array(problem[key])) for key in ("x", "y", "w", "c"))
    params = [nn.Parameter(w), nn.Parameter(c, trainable=case["name"] != "Muon")]
    optimizer = getattr(optim, case["name"])(params, **case["settings"])
    step = wl.jit(by_gradients) if compiled else by_gradients
    value_and_grad = wl.jit(wl.value_and_grad(loss_of)) if compiled else wl.value_and_grad(loss_of)
    for t, expected in enumerate(case["path"]):
        if case["name"] == "LBFGS":  # the search is ordinary Python around a closure
            optimizer.step(lambda: value_and_grad(params, x[0], y[0]))
        else:
            rate = None if case["rates"] is None else wl.tensor(case["rates"][t], dtype=wl.float64)
            step(optimizer, params, rate, x[t], y[t])
        agree(params[0], expected[0])
        agree(params[1], expected[1])
    if "average" in case:
        agree(optimizer.averages()["0"], case["average"])


@pytest.mark.book("A3-42", name="wl.optim.schedules.step")
@pytest.mark.parametrize("case", FILES["optimizers"]["schedules"], ids=label)
def test_rates(case):
    rate = getattr(optim.schedules, case["name"])(*case["args"], **case["settings"])
    rates = [rate(t) for t in range(len(case["rates"]))]
    assert all(type(r) is float for r in rates)
    agree(rates, case["rates"])


@pytest.mark.parametrize("case", FILES["optimizers"]["plateaus"], ids=lambda case: case["settings"].get("mode", "min"))
def test_a_plateau_lowers_the_rate(case):
    rate = optim.Plateau(1.0, **case["settings"])
    found = []
    for i, metric in enumerate(case["metrics"]):
        if i == 7:  # saved and loaded on the way
            saved = json.loads(json.dumps(rate.state_dict()))
            rate = optim.Plateau(9.0, **case["settings"])
            rate.load_state_dict(saved)
        found.append(rate.step(metric))
        assert rate(i) == found[-1]
    agree(found, case["rates"])


@pytest.mark.parametrize("case", FILES["optimizers"]["clipping"], ids=label)
def test_clipping(case):
    (problem,) = FILES["optimizers"]["problem"]
    starts = [np.array(problem[key]) for key in ("w", "c")]
    function = getattr(optim, case["name"].removesuffix("_"))
    for clip in (function, wl.jit(function, static_argnums=tuple(range(1, 1 + len(case["args"]))))):
        found = clip([wl.asarray(3 * start) for start in starts], *case["args"])
        clipped, norm = (found, None) if case["norm"] is None else found
        for g, expected in zip(clipped, case["grads"], strict=True):
            agree(g, expected)
        if norm is not None:
            agree(norm, case["norm"])
    parameters = [nn.Parameter(start) for start in starts]
    sum(1.5 * (p * p).sum() for p in parameters).backward()
    norm = getattr(optim, case["name"])(parameters, *case["args"])
    assert (norm is None) == (case["norm"] is None)
    for p, expected in zip(parameters, case["grads"], strict=True):
        agree(p.grad, expected)


# --- initial values


@pytest.mark.parametrize("case", FILES["initialization"]["gains"], ids=lambda case: str(case["args"]))
def test_gains(case):
    agree(nn.init.calculate_gain(*case["args"]), case["gain"])


@pytest.mark.parametrize("case", FILES["initialization"]["fans"], ids=lambda case: str(case["shape"]))
def test_fans(case):
    assert list(nn.init.fans(tuple(case["shape"]))) == case["fans"]


@pytest.mark.parametrize("case", FILES["initialization"]["filled"], ids=label)
def test_filled_weights(case):
    weight = nn.Parameter(np.ones(case["shape"]) * 9.0)
    getattr(nn.init, case["name"])(weight, *case["args"])
    np.testing.assert_array_equal(weight, case["weight"])


# --- the files themselves

CONTAINERS = ("Module", "ModuleDict", "ModuleList", "Sequential", "Parameter", "Buffer")
PATCHES = "patches are (..., *places, kernel places x channels) here"
RANDOM = "its numbers are random"
TRANSFORMERS = (
    "MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
)  # fmt: skip
EXCEPTIONS = {
    "nn": {
        **dict.fromkeys(CONTAINERS, "computes nothing"),
        "LazyLinear": "a Linear after its first input",
        "Fold": PATCHES,
        "Unfold": PATCHES,
        **dict.fromkeys(TRANSFORMERS, "tests/reference/test_transformers_against_torch.py"),
    },
    "functional": {
        "binary_cross_entropy": "BCELoss computes with it",
        "binary_cross_entropy_with_logits": "BCEWithLogitsLoss computes with it",
        "interpolate": "Upsample computes with it",
        "affine_grid": "tests/nn/test_grids.py compares it with its formula; no module computes with it",
        "fold": PATCHES,
        "unfold": PATCHES,
        "batch_norm": "BatchNorm1d, 2d and 3d compute with it",
        "instance_norm": "InstanceNorm1d, 2d and 3d compute with it",
    },
    "optim": {"Optimizer": "the base of all"},
    "init": {
        **dict.fromkeys(("normal", "uniform", "orthogonal", "sparse"), RANDOM),
        **dict.fromkeys(("normal_", "uniform_", "orthogonal_", "sparse_", "trunc_normal_"), RANDOM),
        **dict.fromkeys(("xavier_normal", "xavier_uniform", "kaiming_normal", "kaiming_uniform"), RANDOM),
        **dict.fromkeys(("xavier_normal_", "xavier_uniform_", "kaiming_normal_", "kaiming_uniform_"), RANDOM),
        **dict.fromkeys(("constant", "eye", "dirac"), "not in place; its namesake with _ is compared"),
    },
    "utils": {
        "remove_weight_norm": "makes an ordinary layer again",
        "clip_grad_norm": "not in place; its namesake with _ is compared",
    },
}


@pytest.mark.parametrize("space", EXCEPTIONS)
def test_every_shared_name_has_a_case(space):
    modules = {"nn": [nn], "functional": [nn.functional], "optim": [optim], "init": [nn.init], "utils": [nn, optim]}
    shared = {name for name in FILES["names"][space] if any(hasattr(module, name) for module in modules[space])}
    covered = {case["name"] for case in CASES} | {case["name"] for case in RULES}
    covered |= {case["wrapped_by"] for case in CASES if "wrapped_by" in case} | {"calculate_gain"}
    covered |= {case["name"] for case in FILES["optimizers"]["clipping"] + FILES["initialization"]["filled"]}
    if space == "functional":  # the module of the same name computes with it
        as_modules = {name.lower().removesuffix("loss") for name in covered}
        covered |= {name for name in shared if name.replace("_", "").removesuffix("loss") in as_modules}
    assert shared - covered - set(EXCEPTIONS[space]) == set()
    assert set(EXCEPTIONS[space]) <= shared - covered  # none is needless


def test_the_files_belong_to_the_tables():
    """Whoever changes a table makes the files again."""
    for name, family in FAMILIES.items():
        told = [case.heading() for case in family.CASES]
        stored = FILES[name]["cases"]
        assert [
            {key: case[key] for key in case if key not in ("state", "passes", "buffers")} for case in stored
        ] == told
        for case, record in zip(family.CASES, stored, strict=True):
            assert [p["training"] for p in record["passes"]] == [mode == "t" for mode in case.modes]
    stored = FILES["optimizers"]
    assert stored["problem"] == [plain(optimizers.PROBLEM)]
    assert [(case["name"], case["settings"], case["rates"]) for case in RULES] == [
        (name, optimizers.ours(settings), rates) for name, settings, rates in optimizers.RULES
    ]
    keys = ("torch", "torch_settings", "name", "args", "settings")
    assert [tuple(case[key] for key in keys) for case in stored["schedules"]] == optimizers.SCHEDULES
    assert [case["settings"] for case in stored["plateaus"]] == optimizers.PLATEAUS
    assert [(case["name"], case["args"]) for case in stored["clipping"]] == optimizers.CLIPPING
    stored = FILES["initialization"]
    assert [case["args"] for case in stored["gains"]] == initialization.GAINS
    assert [case["name"] for case in stored["filled"]] == [name for name, _, _ in initialization.FILLED]
