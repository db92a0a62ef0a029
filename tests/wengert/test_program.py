"""Traces: what is listed, replaying, and both modes of differentiation step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland import wengert


def slides_example():
    return wengert.trace("log(x1) + x1*x2 - sin(x2)", x1=2, x2=5)


def names(trace):
    return [step.primitive.name for step in trace.steps]


def values_of(tensors):
    return {name: t.item() for name, t in tensors.items()}


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# --- the worked example


@pytest.mark.book("S-06", name=["wl.wengert.trace", "wonderland trace"])
def test_the_slides_example():
    trace = slides_example()
    assert [str(step) for step in trace.steps] == [
        "v1 = log(x1)",
        "v2 = x1 * x2",
        "v3 = sin(x2)",
        "v4 = v1 + v2",
        "v5 = v4 - v3",
    ]
    assert [step.value.item() for step in trace.steps] == pytest.approx([0.693, 10, -0.959, 10.693, 11.652], abs=5e-4)
    adjoints = values_of(trace.adjoints())
    assert adjoints["x1"] == pytest.approx(5.5)
    assert adjoints["x2"] == pytest.approx(1.716, abs=5e-4)
    assert [adjoints[f"v{i}"] for i in range(1, 6)] == [1, 1, -1, 1, 1]


@pytest.mark.book("S-06", name="wl.wengert.Trace.tangents")
def test_forward_mode_gives_the_same_derivatives_one_input_at_a_time():
    trace = slides_example()
    by_x1, by_x2 = values_of(trace.tangents(x1=1.0)), values_of(trace.tangents(x2=1.0))
    assert [by_x1[v] for v in ("x1", "x2", "v1", "v2", "v3", "v4", "v5")] == [1, 0, 0.5, 5, 0, 5.5, 5.5]
    cos5 = np.cos(5.0)
    assert [by_x2[v] for v in ("x1", "x2", "v1", "v2", "v3", "v4", "v5")] == pytest.approx(
        [0, 1, 0, 2, cos5, 2, 2 - cos5]
    )


def test_every_contribution_is_adjoint_times_partial_and_the_totals_are_running_sums():
    trace = wengert.trace("x*x*y + sin(x)/y - exp(x*y)", x=0.4, y=1.3)
    adjoints, running = trace.adjoints(), {}
    for c in trace.contributions():
        assert c.value.item() == pytest.approx(adjoints[c.step.name].item() * c.partial.item())
        running[c.target] = running.get(c.target, 0.0) + c.value.item()
        assert c.total.item() == pytest.approx(running[c.target])
    for name, total in running.items():
        assert adjoints[name].item() == pytest.approx(total)


@given(st.floats(0.2, 3.0), st.floats(-3.0, 3.0))
def test_both_modes_agree_with_grad_and_with_differences(x, y):
    formula = wengert.Formula("sqrt(x)*tanh(y) - x**3/(1 + y**2) + atan(x*y)")
    trace = wengert.trace(formula, x=x, y=y)
    adjoints = trace.adjoints()
    at = {name: wl.tensor(value, dtype=wl.float64) for name, value in {"x": x, "y": y}.items()}
    for name in "xy":
        gradient = wl.grad(lambda t, name=name: formula(**(at | {name: t})))(at[name]).item()
        difference = (
            trace.replay(**{name: at[name].item() + 1e-6}) - trace.replay(**{name: at[name].item() - 1e-6})
        ) / 2e-6
        tangent = trace.tangents(**{name: 1.0})[trace.outputs[0]].item()
        assert adjoints[name].item() == pytest.approx(gradient, rel=1e-12, abs=1e-12)
        assert tangent == pytest.approx(gradient, rel=1e-12, abs=1e-12)
        assert difference.item() == pytest.approx(gradient, rel=1e-5, abs=1e-5)


# --- what is listed


@pytest.mark.book("6-01", name="wl.wengert.trace")
def test_a_layer_lists_exactly_what_was_executed_in_order():
    x, w, b = array(5, 3), array(3, 4), array(4)
    trace = wengert.trace(lambda x, w, b: wl.relu(x @ w + b).sum(), x, w, b)
    assert names(trace) == ["matmul", "add", "relu", "sum"]
    assert [step.value.shape for step in trace.steps] == [(5, 4), (5, 4), (5, 4), ()]
    assert trace.value.item() == pytest.approx(np.maximum(x @ w + b, 0).sum())


@pytest.mark.book("6-54", name="wl.wengert.Trace.steps")
def test_the_tape_is_in_single_assignment_form():
    trace = slides_example()
    defined = set(trace.inputs)
    for step in trace.steps:
        assert set(step.uses) <= defined, "operands are defined before"
        assert not set(step.outputs) & defined, "every name is assigned once"
        defined |= set(step.outputs)
    assert set(trace.values) == defined


@pytest.mark.book("S-03", name="wl.wengert.trace")
def test_the_forward_pass_of_a_network_keeps_every_activation():
    layers = [(array(3, 4, seed=1), array(4, seed=2)), (array(4, 2, seed=3), array(2, seed=4))]

    def network(a, layers):
        for X, mu in layers:
            a = wl.tanh(a @ X + mu)
        return a

    trace = wengert.trace(network, array(5, 3), layers)
    assert names(trace) == ["matmul", "add", "tanh"] * 2
    assert [step.uses for step in trace.steps] == [
        ("a", "layers.0.0"),
        ("v1", "layers.0.1"),
        ("v2",),
        ("v3", "layers.1.0"),
        ("v4", "layers.1.1"),
        ("v5",),
    ]
    u1 = trace.inputs["a"].numpy() @ layers[0][0] + layers[0][1]
    np.testing.assert_allclose(trace.values["v2"], u1)
    np.testing.assert_allclose(trace.values["v3"], np.tanh(u1))


@pytest.mark.book("S-02", "S-04", name="wl.wengert.Trace.adjoints")
def test_the_backward_pass_of_a_network_is_the_scheme_of_the_slides():
    a0, X1, X2, target = array(3), array(4, 3, seed=1), array(4, seed=2), 0.7

    def loss(X1, X2):
        return (target - X2 @ wl.tanh(X1 @ a0)) ** 2

    adjoints = wengert.trace(loss, X1, X2).adjoints()
    u = X1 @ a0
    a1 = np.tanh(u)
    error = target - X2 @ a1
    np.testing.assert_allclose(adjoints["X2"], -2 * error * a1)  # by hand
    np.testing.assert_allclose(adjoints["X1"], -2 * error * np.outer(X2 * (1 - a1**2), a0))


def test_modules_are_inputs_with_the_paths_of_their_parameters():
    from wonderland import nn

    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    x = wl.ones((5, 3))
    trace = wengert.trace(lambda model: (model(x) ** 2).sum(), model)
    assert list(trace.inputs) == ["model.0.weight", "model.0.bias", "model.1.weight", "model.1.bias"]
    adjoints = trace.adjoints()
    for path, gradient in wl.grad(lambda model: (model(x) ** 2).sum())(model).items():
        np.testing.assert_allclose(adjoints[f"model.{path}"], gradient, rtol=1e-5)
    assert type(model[0].weight.value) is wl.Tensor, "the parameters hold their values again"


def test_constants_are_folded_and_python_numbers_are_float64():
    trace = wengert.trace(lambda x: x * (wl.tensor(2.0) + 1) + 0 * wl.zeros(()), 1.5)
    assert names(trace) == ["multiply", "add"]
    assert trace.inputs["x"].dtype == wl.float64


def test_tensors_keep_their_type():
    assert wengert.trace(wl.sin, wl.ones(2)).value.dtype == wl.float32


def test_arguments_by_position_by_name_and_as_trees():
    def f(a, b, *, scale):
        return (a["w"] * b[0] + b[1]) * scale

    trace = wengert.trace(f, {"w": 2.0}, b=(3.0, 4.0), scale=10.0)
    assert list(trace.inputs) == ["a.w", "b.0", "b.1", "scale"]
    assert trace.value.item() == 100.0
    assert wengert.trace(lambda *xs: xs[0] * xs[1], 2.0, 3.0).inputs.keys() == {"x1", "x2"}


def test_names_of_steps_and_results_avoid_the_inputs():
    trace = wengert.trace("v1*w3 + y", v1=1, w3=2, y=3)
    assert [step.name for step in trace.steps] == ["u1", "u2"]
    assert str(trace).splitlines()[0].startswith("f = ")
    used = ("v1", "w1", "u1", "_v1", "y", "f", "self")
    everything = wengert.trace(" + ".join(used), **dict.fromkeys(used, 1))
    assert everything.steps[0].name == "__v1"
    assert everything.value.item() == 7
    assert everything.replay(f=2, self=3).item() == 10
    assert everything.tangents(self=1.0)["__v6"].item() == 1


def test_two_inputs_of_one_name_are_refused():
    with pytest.raises(wl.errors.InputError, match="same name"):
        wengert.trace(lambda x, **rest: x["y"] + rest["x.y"], {"y": 1.0}, **{"x.y": 2.0})


def test_control_flow_follows_the_values():
    def f(x):
        y = x
        while y < 10:
            y = y * 2
        return y if y > 12 else -y

    expected = ["less", "multiply", "less", "multiply", "less", "greater", "negative"]
    assert names(wengert.trace(f, 3.0)) == expected
    assert wengert.trace(f, 3.0).adjoints()["x"].item() == -4.0
    assert wengert.trace(f, 3.5).adjoints()["x"].item() == 4.0


def test_leaving_the_trace_is_refused():
    with pytest.raises(wl.errors.TraceError, match="cut the trace off"):
        wengert.trace(lambda x: np.sin(np.asarray(x)), 1.0)
    with pytest.raises(wl.errors.TraceError, match="cannot run inside a transformation"):
        wl.grad(lambda x: wengert.trace("y", y=1.0).value * x)(1.0)


def test_a_failing_function_leaves_no_trace_behind():
    with pytest.raises(ZeroDivisionError):
        wengert.trace(lambda x: x / (1 // 0), 1.0)
    assert (wl.ones(2) + 1).tolist() == [2.0, 2.0]


def test_integers_in_the_middle_have_no_adjoint():
    trace = wengert.trace(lambda x: (wl.sort(x) * wl.tensor([1.0, 10.0, 100.0])).sum(), wl.tensor([3.0, 1.0, 2.0]))
    assert trace.adjoints()["x"].tolist() == [100.0, 1.0, 10.0]
    assert all(wl.isdtype(t.dtype, "real floating") for t in trace.adjoints().values())


# --- replaying


@pytest.mark.book("6-14", "B6-02", name="wl.wengert.Trace.replay")
def test_replaying_gives_the_same_value_and_values_at_other_points():
    weights = [array(3, 3, seed=i) for i in range(3)]

    def f(x, w):
        h = x
        for w_i in w:  # h_i = f_i(h_{i-1}, w_i)
            h = wl.tanh(h @ w_i)
        return h.sum()

    trace = wengert.trace(f, array(2, 3), weights)
    assert trace.replay().item() == trace.value.item()
    other = wl.asarray(array(2, 3, seed=9))
    direct = f(other, [wl.asarray(w) for w in weights])
    assert trace.replay(x=other).item() == pytest.approx(direct.item())
    assert names(trace) == ["matmul", "tanh"] * 3 + ["sum"]


def test_a_replay_can_be_transformed():
    trace = wengert.trace("x**3", x=2.0)
    xs = wl.linspace(-1.0, 1.0, 5, dtype=wl.float64)
    np.testing.assert_allclose(wl.vmap(wl.grad(lambda x: trace.replay(x=x)))(xs), 3 * xs.numpy() ** 2)


def test_replay_checks_its_values():
    trace = slides_example()
    with pytest.raises(wl.errors.InputError, match="no input 'z'"):
        trace.replay(z=1.0)
    with pytest.raises(wl.errors.GradientError, match=r"value of float64\[2\] belongs to a value of float64\[\]"):
        trace.replay(x1=wl.ones(2, dtype=wl.float64))


# --- order


@pytest.mark.book("A3-20", name="wl.wengert.Trace.levels")
def test_levels_have_no_internal_edges():
    trace = wengert.trace("(x + y)*(x - y) + sin(x)*cos(y)", x=1, y=2)
    for level in trace.levels():
        made = {name for step in level for name in step.outputs}
        assert not any(made & set(step.uses) for step in level)
    assert sum(map(len, trace.levels())) == len(trace.steps) == 7
    assert [len(level) for level in trace.levels()] == [4, 2, 1]


def test_by_level_changes_the_order_and_nothing_else():
    def f(x):
        a = wl.sin(wl.cos(x))
        return a * wl.exp(x)

    trace = wengert.trace(f, 0.3)
    ordered = trace.by_level()
    assert names(trace) == ["cos", "sin", "exp", "multiply"]
    assert names(ordered) == ["cos", "exp", "sin", "multiply"]
    assert [str(step) for step in ordered.steps][2:] == ["v3 = sin(v1)", "v4 = v3 * v2"]
    assert ordered.value.item() == trace.value.item()
    assert ordered.adjoints()["x"].item() == pytest.approx(trace.adjoints()["x"].item())


# --- the dual program, seeds, several results


@pytest.mark.book("B6-11", name="wl.wengert.trace")
def test_the_trace_of_a_gradient_is_the_dual_program():
    trace = wengert.trace(wl.grad(lambda x: wl.sin(x) * x), x=2.0)
    assert {"sin", "cos", "multiply", "add"} == set(names(trace))
    assert trace.value.item() == pytest.approx(np.sin(2.0) + 2 * np.cos(2.0))
    assert trace.adjoints()["x"].item() == pytest.approx(2 * np.cos(2.0) - 2 * np.sin(2.0)), "the second derivative"


@pytest.mark.book("A3-21", name="wl.wengert.Trace.adjoints")
def test_an_adjoint_tells_how_the_result_reacts():
    z2, h = np.array([1.0, 2.0]), 1e-3
    trace = wengert.trace(lambda z2: 0.8 * z2[0] - 0.6 * z2[1], z2)
    np.testing.assert_allclose(trace.adjoints()["z2"], [0.8, -0.6])
    for direction, change in (([1.0, 0.0], 0.8 * h), ([0.0, 1.0], -0.6 * h)):
        moved = trace.replay(z2=wl.asarray(z2 + h * np.array(direction)))
        assert (moved - trace.value).item() == pytest.approx(change)


def test_seeds_and_several_results():
    def f(x):
        return {"a": x**2, "b": (x.sum(), x)}

    trace = wengert.trace(f, np.array([1.0, 2.0]))
    seed = {"a": np.array([1.0, 0.0]), "b": (10.0, np.array([100.0, 200.0]))}
    np.testing.assert_allclose(trace.adjoints(seed)["x"], [2 + 10 + 100, 10 + 200])
    with pytest.raises(wl.errors.GradientError, match="not one real scalar"):
        trace.adjoints()
    with pytest.raises(wl.errors.GradientError, match="structure"):
        trace.adjoints(1.0)
    with pytest.raises(wl.errors.GradientError, match="seed of"):
        trace.adjoints({"a": np.ones(3), "b": (1.0, np.ones(2))})


def test_a_result_may_be_an_input_or_a_constant():
    trace = wengert.trace("x", x=3.0)
    assert trace.steps == []
    assert trace.adjoints()["x"].item() == 1.0
    trace = wengert.trace(lambda x: wl.tensor(7.0), 1.0)
    assert trace.value.item() == 7.0
    assert trace.adjoints()["x"].item() == 0.0
    assert wengert.trace("2*3").value.item() == 6.0


def test_values_that_the_result_does_not_need_have_adjoint_zero():
    def f(x):
        wl.exp(x)
        return 2 * x

    trace = wengert.trace(f, 1.0)
    assert names(trace) == ["exp", "multiply"]
    assert trace.adjoints()["v1"].item() == 0.0
    assert [c.step.primitive.name for c in trace.contributions()] == ["multiply"]


def test_a_direction_is_needed_and_checked():
    with pytest.raises(wl.errors.GradientError, match="direction"):
        slides_example().tangents()
    with pytest.raises(wl.errors.InputError, match="no input 'y'"):
        slides_example().tangents(y=1.0)


def test_functions_with_rules_of_their_own_are_one_step_with_several_results():
    @wl.custom_vjp
    def both(x):
        return wl.sin(x), wl.cos(x)

    both.defvjp(lambda x: (both(x), x), lambda x, ct: (ct[0] * wl.cos(x) - ct[1] * wl.sin(x),))

    def f(x):
        s, c = both(x)
        return s + 2 * c

    trace = wengert.trace(f, 0.3)
    assert names(trace) == ["custom_vjp", "multiply", "add"]
    assert list(trace.steps[0].outputs) == ["v1[0]", "v1[1]"]
    expected = np.cos(0.3) - 2 * np.sin(0.3)
    assert trace.adjoints()["x"].item() == pytest.approx(expected)
    assert trace.tangents(x=1.0)["v3"].item() == pytest.approx(expected)
    assert trace.replay(x=0.0).item() == pytest.approx(2.0)
    assert "v1[1]" in trace.table()
    assert "v1[0]" in trace.svg()


def test_a_cell_that_is_made_on_the_way_keeps_its_value():
    made = []

    def f(x):
        made.append(wl.nn.Buffer(2 * x))
        return made[0].sum()

    traced = wengert.trace(f, wl.ones(3))
    assert traced.value.item() == 6.0
    assert names(traced) == ["multiply", "sum"]
    np.testing.assert_array_equal(np.asarray(made[0]), [2.0, 2.0, 2.0])
