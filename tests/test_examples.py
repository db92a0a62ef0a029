"""Every example runs as its users run it, without a warning, and the numbers that it shows are right."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl

FOLDER = Path(__file__).resolve().parent.parent / "examples"
SRC = Path(wl.__file__).resolve().parent.parent
FILES = sorted(FOLDER.glob("*.py"))


def example(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(file, *arguments, **environment):
    command = [sys.executable, "-W", "error", str(file), *arguments]
    settings = os.environ | {"PYTHONPATH": str(SRC)} | environment
    return subprocess.run(command, capture_output=True, text=True, env=settings, timeout=120)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_runs(file):
    done = run(file)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("wonderland: compiling")] == []
    assert len(done.stdout) > 100


def test_there_are_examples():
    assert len(FILES) >= 8


@pytest.mark.book("6-23", "6-24", name=["examples/symbolic_comparison.py", "wl.grad"])
def test_automatic_equals_symbolic_differentiation():
    sympy = pytest.importorskip("sympy")
    module = example("symbolic_comparison")
    x, a, b = sympy.symbols("x a b")
    derivative = sympy.diff(a * sympy.sin(x) + b * x * sympy.sin(x), x)
    assert derivative == a * sympy.cos(x) + b * x * sympy.cos(x) + b * sympy.sin(x)
    symbolic = sympy.lambdify(x, derivative.subs({a: 2, b: 3}), "math")
    assert module.automatic(1.0) == pytest.approx(5.225924483764388, rel=1e-15)
    for point in np.random.default_rng(0).uniform(-5, 5, 20):
        assert module.automatic(point) == pytest.approx(symbolic(point), rel=1e-12, abs=1e-12)
        assert module.numerical(point) == pytest.approx(symbolic(point), rel=1e-6, abs=1e-6)


def test_without_sympy_the_comparison_says_so(tmp_path):
    (tmp_path / "sympy.py").write_text("raise ImportError('pretend that it is not installed')")
    done = run(FOLDER / "symbolic_comparison.py", PYTHONPATH=os.pathsep.join([str(tmp_path), str(SRC)]))
    assert done.returncode == 0, done.stderr
    assert "SymPy is not installed" in done.stdout
    assert "5.2259244837643" in done.stdout


@pytest.mark.book("2.55", name=["examples/linearization.py", "wl.linearize"])
def test_linearization():
    module = example("linearization")
    x = wl.tensor(0.51, dtype=wl.float64)
    assert module.f(x).item() == pytest.approx(-0.5049)
    assert module.linearized(0.5)(x).item() == pytest.approx(-0.5050)


@pytest.mark.book("2.56", name="examples/linearization.py")
def test_the_picture_of_the_linearization(tmp_path):
    file = tmp_path / "picture.svg"
    assert run(FOLDER / "linearization.py", str(file)).returncode == 0
    lines = list(ET.parse(file).getroot().iter("{http://www.w3.org/2000/svg}polyline"))
    assert len(lines) == 3


@pytest.mark.book("2.82", "2.83", name="examples/gradient_by_hand.py")
def test_gradient_by_hand():
    module = example("gradient_by_hand")
    points = wl.tensor([[1.0, 1.0], [5.0, 5.0]], dtype=wl.float64)
    np.testing.assert_allclose(module.f(points), [0.875384, -0.751473], atol=5e-7)
    expected = [[0.677002, -0.822998], [0.401380, -1.098620]]
    np.testing.assert_allclose(module.gradient_by_hand(points), expected, atol=5e-7)
    many = wl.asarray(np.random.default_rng(0).uniform(0, 10, (100, 2)))
    difference = module.gradient_by_hand(many) - module.gradient_by_machine(many)
    assert np.abs(difference).max() < 1e-9


@pytest.mark.book("A3-33", name=["examples/logistic_backprop.py", "wl.wengert.Trace.adjoints"])
def test_logistic_backprop():
    module = example("logistic_backprop")
    X, y, w, b = (t.numpy() for t in (module.X, module.Y, module.W, module.B))
    yhat = 1 / (1 + np.exp(-(X @ w + b)))
    expected = X.T @ (yhat - y) / len(y)
    for gradient in (
        wl.grad(module.loss)(module.W, module.B),
        module.gradient_by_hand(module.W, module.B)[0],
    ):
        np.testing.assert_allclose(gradient, expected, rtol=1e-12)
    shown = run(FOLDER / "logistic_backprop.py").stdout
    assert shown.count("agrees") == 2
    assert " ".join(f"{g:8.4f}" for g in expected) in shown


def test_two_layer_network_learns():
    _, accuracy = example("two_layer_network").train(steps=400)
    assert accuracy > 0.93


@pytest.mark.book("S-08", name=["examples/implicit_layer.py", "wl.custom_vjp"])
def test_implicit_layers():
    module = example("implicit_layer")
    theta = wl.tensor([0.7, -0.3], dtype=wl.float64)
    start = wl.zeros(2, dtype=wl.float64)
    argmin = module.argmin_layer(module.energy, start)
    fixed_point = module.fixed_point_layer(module.contraction, start)
    # the layers solve their problems
    assert np.abs(wl.grad(module.energy)(argmin(theta), theta)).max() < 1e-12
    assert np.abs(fixed_point(theta) - module.contraction(fixed_point(theta), theta)).max() < 1e-12
    # and are differentiated as finite differences say
    for layer in (argmin, fixed_point):
        loss = lambda theta, layer=layer: (layer(theta) ** 3).sum()
        steps = 1e-5 * np.eye(2)
        expected = [((loss(theta + e) - loss(theta - e)) / 2e-5).item() for e in steps]
        np.testing.assert_allclose(wl.grad(loss)(theta), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.book("A3-34", name=["examples/operator_table.py", "wl.vjp"])
@pytest.mark.parametrize("row", example("operator_table").table(), ids=lambda row: row.operator)
def test_every_row_of_the_operator_table(row):
    module = example("operator_table")
    assert module.largest_error(row) < 1e-12
    # and against finite differences along a random direction
    rng = np.random.default_rng(2)
    directions = [wl.asarray(rng.normal(size=a.shape)) for a in row.args]
    pairs = list(zip(row.args, directions, strict=True))
    above, below = (row.f(*[a + h * d for a, d in pairs]) for h in (1e-6, -1e-6))
    adjoint = wl.asarray(rng.normal(size=above.shape))
    adjoints = row.backward(adjoint, *row.args)
    expected = (adjoint * (above - below)).sum().item() / 2e-6
    found = sum((a * d).sum().item() for a, d in zip(adjoints, directions, strict=True))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.book("9-102", name=["examples/growing_cnn.py", "wl.models.CNN", "wl.train.grid_settings"])
def test_normalization_helps_the_network_of_chapter_7():
    module = example("growing_cnn")
    size, plain, _ = module.scores(1, "plain", 6)
    larger, normalized, _ = module.scores(1, "normalization", 6)
    assert larger == size + 8 + 16  # a shift that was a bias, and a scale, for each channel
    assert normalized > plain


@pytest.mark.book("11.68", "11.69", "11.72", name=["examples/vit_against_cnn.py", "wl.models.ViT", "wl.models.CNN"])
def test_a_transformer_on_few_images_is_behind_a_convolutional_network():
    rows = example("vit_against_cnn").main(4)
    size, _, best = rows["convolutional network"]
    transformers = {name: row for name, row in rows.items() if name.startswith("transformer")}
    assert {name.split(", ")[1] for name in transformers} == {"learned", "sinusoidal", "relative", "no positions"}
    for parameters, train, validation in transformers.values():
        assert size < parameters < 2 * size  # the same budget: images, epochs, and no fewer parameters
        assert min(train, validation) > 0.2  # chance is one in ten
        assert validation <= best
    assert rows["transformer, learned"][2] > rows["transformer, no positions"][2]


@pytest.mark.book("11.73", name=["examples/mini_gpt.py", "wl.models.GPT", "wl.generation.generate_text"])
def test_a_mini_gpt_learns_a_text_by_heart(capsys):
    module = example("mini_gpt")
    written, perplexity = module.main()
    assert written == module.VERSE
    assert 1 < perplexity < 1.1
    assert f"{perplexity:.3f}" in capsys.readouterr().out
    # the perplexity is exp of the mean of what the model finds likely
    tokenizer = wl.text.CharTokenizer.train(module.VERSE)
    model = wl.models.GPT(tokenizer.vocab_size, 8, 16, 2, 1)
    x, y = module.windows(np.asarray(tokenizer.encode(module.VERSE)), 8, 8)
    scores = np.asarray(model(x), np.float64)
    chances = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    mean = np.log(np.take_along_axis(chances, y[..., None], -1)).mean()
    assert module.perplexity(model, (x, y)) == pytest.approx(np.exp(-mean), rel=1e-5)


@pytest.mark.book("8-72", "8-74", name=["examples/shakespeare.py", "wl.models.ConvLanguageModel.extend"])
def test_bits_per_character_in_chunks():
    module = example("shakespeare")
    model = wl.models.ConvLanguageModel(5, 4, (1, 2), dtype=wl.float64)
    ids = np.random.default_rng(0).integers(0, 5, 50)
    nats = wl.nn.functional.cross_entropy(model(ids[None, :-1]), ids[None, 1:]).item()
    assert module.bits_per_character(model, ids, chunk=20) == pytest.approx(nats / np.log(2))


@pytest.mark.book("12.29", "12.30", name=["examples/two_moons_graph.py", "wl.graphs.laplacian_quadratic"])
def test_near_points_tell_the_classes_of_two_moons():
    module = example("two_moons_graph")
    x, y, known = module.data()
    assert len(known) == 2
    plain, models = module.network(), {s: module.trained(s, 120) for s in (0.0, 0.01, 0.1)}
    labelled = wl.tensor(x[known]), wl.tensor(y[known].astype(np.float32))
    loss = "binary_cross_entropy_with_logits"
    wl.train.fit(plain, loss, labelled, 120, optimizer=wl.optim.Adam, lr=0.01, batch_size=2, progress=False)
    for name, value in plain.state_dict().items():  # lambda = 0 is plain training
        np.testing.assert_allclose(models[0.0].state_dict()[name], value, rtol=1e-4, atol=1e-5)
    accuracy, new, rough = zip(*(module.scores(model) for model in models.values()), strict=True)
    assert rough[0] > rough[1] > rough[2]
    assert max(accuracy[1:]) > accuracy[0] + 0.02
    assert max(new[1:]) > new[0] + 0.02
    # the same in mini-batches, with the graphs that parts of the points induce
    assert module.scores(module.trained_in_pieces(0.03))[0] > accuracy[0]


@pytest.mark.book("12.31", name="examples/two_moons_graph.py")
def test_the_graph_of_the_moons_is_for_training_alone():
    module = example("two_moons_graph")
    x, _, _ = module.data()
    near = wl.graphs.knn_graph(x, module.NEAREST)
    model = module.trained(0.03, 5, near)
    before = np.asarray(model(wl.tensor(x)))
    assert {id(part) for part in model.modules()}.isdisjoint({id(near)})
    saved, shape = model.state_dict(), [p.shape for p in module.network().parameters()]
    del near, model
    fresh = module.network()  # from its parameters alone
    fresh.load_state_dict(saved)
    assert [value.shape for value in saved.values()] == shape
    np.testing.assert_array_equal(np.asarray(fresh(wl.tensor(x))), before)
    alone = [float(fresh(wl.tensor(x[i : i + 1]))) for i in range(5)]  # a point knows nothing of the others
    np.testing.assert_allclose(alone, before[:5], rtol=1e-5)


@pytest.mark.book("12.84", name=["examples/patch_graph.py", "wl.graphs.patch_graph"])
def test_images_are_graphs_of_their_patches():
    module = example("patch_graph")
    graph = wl.graphs.patch_graph(8, 8)
    assert (graph.num_undirected_edges, graph.num_edges) == (112, 224)
    degrees = np.asarray(graph.degree()).reshape(8, 8)
    assert (degrees[0, 0], degrees[0, 3], degrees[3, 3]) == (2, 3, 4)
    images = wl.tensor(np.random.default_rng(0).normal(size=(3, 8, 8, 1)).astype(np.float32))
    cut = np.asarray(module.patches(images))
    np.testing.assert_array_equal(cut[6, 1], np.asarray(images)[1, 2:4, 4:6, 0].reshape(-1))  # row 1, column 2
    net = module.PatchNet(8, 10)
    whole = wl.graphs.Batch.from_graphs([net.graph] * 3)  # identical graphs, as blocks of one
    h = net.embed(module.patches(images))
    beside = np.asarray(net.layers[0](h, net.graph))
    blocks = np.asarray(net.layers[0](h.transpose((1, 0, 2)).reshape((48, -1)), whole)).reshape(3, 16, -1)
    np.testing.assert_allclose(beside.transpose(1, 0, 2), blocks, rtol=1e-5, atol=1e-6)


@pytest.mark.book("12.85", name=["examples/patch_graph.py", "wl.nn.GraphConvSelf"])
def test_a_graph_of_patches_knows_more_than_a_bag_of_them():
    rows = example("patch_graph").main(4)
    graph, bag = rows.values()
    assert graph > 0.4  # chance is 0.1
    assert graph > bag


def test_communities_of_the_karate_club(tmp_path):
    module = example("communities")
    part, share = module.club(str(tmp_path / "club.svg"))
    assert share >= 32 / 34
    assert part[0] != part[33]  # the instructor and the officer
    ET.parse(tmp_path / "club.svg")
    assert module.blocks()["spectral clustering"] > 0.95


def test_classes_of_graphs_by_cross_validation(tmp_path):
    done = run(FOLDER / "graph_classification.py", str(tmp_path))
    assert done.returncode != 0
    assert "_A.txt" in done.stderr
