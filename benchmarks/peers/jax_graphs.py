"""The steps of `benchmarks/graphs.py` in JAX: sums over sorted segments, or products with BCOO or BCSR matrices.

Each workload has these forms, and the fastest one is measured. Matrix products come before or after the sums,
whichever is less work, and what depends on the graph alone is computed once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental import sparse

from ..made_graphs import Made, citations, molecules, network
from ..measuring import Step, faster
from .jax_workloads import Params, cross_entropy, dense, linear, normal, normalize, scale, training

Spread = Callable[[Array], Array]
Batch = dict[str, Any]  # arrays and sparse matrices, which are arguments of the step


def edges(made: Made, norm: str | None, loops: bool) -> tuple[Any, Any, Any]:
    """Senders, receivers in their order, and the entries of the adjacency matrix."""
    senders, receivers = made.with_loops() if loops else (made.senders, made.receivers)
    degree = np.maximum(np.bincount(receivers, minlength=made.nodes), 1).astype(np.float32)
    values = np.ones(len(senders), np.float32)
    if norm == "sym":
        values = (degree[senders] * degree[receivers]) ** -0.5
    elif norm == "row":
        values = 1 / degree[receivers]
    return senders.astype(np.int32), receivers.astype(np.int32), values


def segments(x: Array, graph: Batch) -> Array:
    terms = x[graph["senders"]] * graph["values"][:, None]
    return jax.ops.segment_sum(terms, graph["receivers"], x.shape[0], indices_are_sorted=True)


def product(x: Array, graph: Batch) -> Array:
    return graph["matrix"] @ x


def forms(made: Made, norm: str | None = None, loops: bool = False) -> list[tuple[Callable[..., Array], Batch]]:
    senders, receivers, values = edges(made, norm, loops)
    given = {"senders": jnp.asarray(senders), "receivers": jnp.asarray(receivers), "values": jnp.asarray(values)}
    places = jnp.asarray(np.stack([receivers, senders], 1))
    size = (made.nodes, made.nodes)
    coordinates = sparse.BCOO((given["values"], places), shape=size, indices_sorted=True, unique_indices=True)
    rows = sparse.BCSR.from_bcoo(coordinates)
    return [(segments, given), (product, {"matrix": coordinates}), (product, {"matrix": rows})]


def fastest(made: Made, layers: Any, params: Callable[[], Params], *given: Any) -> Step:
    """The fastest form of a model `layers(params, x, spread)`."""
    x, y = jnp.asarray(made.x), jnp.asarray(made.y)
    steps = []
    for spread, graph in forms(made, *given):

        def loss_of(p: Params, x: Array, y: Array, graph: Batch, spread: Any = spread) -> Array:
            return cross_entropy(layers(p, x, lambda h: spread(h, graph)), y)

        steps.append(training(params(), loss_of, x, y, graph))
    return faster(*steps)


def sizes(made: Made, hidden: int) -> list[tuple[int, int]]:
    return [(made.x.shape[1], hidden), (hidden, made.classes)]


def gcn(make: Callable[[], Made], hidden: int) -> Step:
    def layers(p: Params, x: Array, spread: Spread) -> Array:
        h = jax.nn.relu(spread(x @ p[0]["weight"]) + p[0]["bias"])
        return spread(h @ p[1]["weight"]) + p[1]["bias"]

    made = make()
    return fastest(made, layers, lambda: [dense(a, b) for a, b in sizes(made, hidden)], "sym", True)


def sage(make: Callable[[], Made], hidden: int) -> Step:
    def layer(p: Params, x: Array, spread: Spread) -> Array:
        size, out = p["left"]["weight"].shape
        if size <= out:
            return linear(p["left"], spread(x)) + linear(p["right"], x)
        return spread(x @ p["left"]["weight"]) + p["left"]["bias"] + linear(p["right"], x)

    def layers(p: Params, x: Array, spread: Spread) -> Array:
        return layer(p[1], jax.nn.relu(layer(p[0], x, spread)), spread)

    made = make()

    def params() -> Params:
        return [{"left": dense(a, b), "right": dense(a, b, bias=False)} for a, b in sizes(made, hidden)]

    return fastest(made, layers, params, "row")


def summed(p: Params, x: Array, spread: Spread) -> Array:
    """The first linear layer of GIN's network, of a node's features and those of its neighbours."""
    size, out = p["weight"].shape
    if size <= out:
        return linear(p, x + spread(x))
    h = x @ p["weight"]
    return h + spread(h) + p["bias"]


def gin(make: Callable[[], Made], hidden: int) -> Step:
    def layer(p: Params, x: Array, spread: Spread) -> Array:
        return linear(p[1], jax.nn.relu(summed(p[0], x, spread)))

    def layers(p: Params, x: Array, spread: Spread) -> Array:
        return layer(p[1], jax.nn.relu(layer(p[0], x, spread)), spread)

    made = make()

    def params() -> Params:
        return [[dense(a, hidden), dense(hidden, b)] for a, b in sizes(made, hidden)]

    return fastest(made, layers, params)


def gat(make: Callable[[], Made], hidden: int, heads: int) -> Step:
    made = make()
    senders, receivers, _ = (jnp.asarray(a) for a in edges(made, None, True))

    def total(x: Array, receivers: Array) -> Array:
        return jax.ops.segment_sum(x, receivers, made.nodes, indices_are_sorted=True)

    def layer(p: Params, x: Array, senders: Array, receivers: Array) -> Array:
        h = (x @ p["weight"]).reshape(x.shape[0], *p["source"].shape)
        source, target = (h * p["source"]).sum(-1), (h * p["target"]).sum(-1)
        scores = jax.nn.leaky_relu(source[senders] + target[receivers], 0.2)
        top = jax.ops.segment_max(jax.lax.stop_gradient(scores), receivers, made.nodes, indices_are_sorted=True)
        terms = jnp.exp(scores - top[receivers])
        weights = terms / total(terms, receivers)[receivers]
        return total(h[senders] * weights[..., None], receivers).reshape(x.shape[0], -1) + p["bias"]

    def loss_of(p: Params, x: Array, y: Array, *ends: Array) -> Array:
        return cross_entropy(layer(p[1], jax.nn.elu(layer(p[0], x, *ends)), *ends), y)

    def params(size: int, out: int, heads: int) -> Params:
        vectors = {name: normal(heads, out, std=out**-0.5) for name in ("source", "target")}
        return dense(size, heads * out) | vectors

    (a, _), (_, b) = sizes(made, hidden)
    both = [params(a, hidden, heads), params(heads * hidden, b, 1)]
    return training(both, loss_of, jnp.asarray(made.x), jnp.asarray(made.y), senders, receivers)


def gin_graphs(hidden: int = 32, layers: int = 5) -> Step:
    made = molecules()
    whose, graphs = jnp.asarray(made.graph_of), len(made.y)

    def network(p: Params, x: Array, spread: Spread) -> Array:
        for layer in p["layers"]:
            h = jax.nn.relu(normalize(layer["norm"], summed(layer["first"], x, spread), (0,)))
            x = jax.nn.relu(linear(layer["second"], h))
        return linear(p["out"], jax.ops.segment_sum(x, whose, graphs, indices_are_sorted=True))

    def params() -> Params:
        widths = [made.x.shape[1], *[hidden] * (layers - 1)]
        parts = [{"first": dense(c, hidden), "norm": scale(hidden), "second": dense(hidden, hidden)} for c in widths]
        return {"layers": parts, "out": dense(hidden, made.classes)}

    return fastest(made, network, params)


GRAPHS: dict[str, Callable[[], Step]] = {
    "gcn_cora": functools.partial(gcn, citations, 16),
    "gat_cora": functools.partial(gat, citations, 8, 8),
    "sage_cora": functools.partial(sage, citations, 64),
    "gin_cora": functools.partial(gin, citations, 64),
    "gcn_large": functools.partial(gcn, network, 64),
    "gat_large": functools.partial(gat, network, 8, 8),
    "sage_large": functools.partial(sage, network, 64),
    "gin_large": functools.partial(gin, network, 64),
    "gin_graphs": gin_graphs,
}
