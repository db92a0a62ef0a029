"""Numbers of PyTorch Geometric for layers that have its names: outputs and gradients for weights that are stored, too.

    pip install torch torch_geometric
    python -m tools.pyg_reference

writes `tests/reference/graphs.json`, from which tests/nn/graphs/test_against_pyg.py reads. Weights are stored in our
layout: matrices of linear layers are transposed, to (in, out).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "tests/reference/graphs.json"
NODES, CHANNELS, EDGE_FEATURES = 7, 3, 2
# senders and receivers: both directions of some edges, a directed one, a self-loop, an isolated node (the last one)
EDGES = [[0, 1, 1, 2, 2, 3, 3, 0, 4, 1, 4, 5, 2, 3], [1, 0, 2, 1, 3, 2, 0, 3, 1, 4, 5, 4, 2, 1]]
MLP = [3, 5, 4]  # what GIN and its relatives have inside

# our name, PyTorch Geometric's, arguments of both, what the call takes besides, and how parameters are called there
CASES: list[dict[str, Any]] = [
    {"name": "GCNConv", "args": [3, 4], "takes": ["weight"]},
    {"name": "GCNConv", "args": [3, 2]},
    {"name": "GCNConv", "args": [3, 2], "settings": {"improved": True, "bias": False}, "takes": ["weight"]},
    {"name": "GCNConv", "args": [3, 4], "settings": {"add_self_loops": False}, "takes": ["weight"]},
    {"name": "GATConv", "args": [3, 4]},
    {"name": "GATConv", "args": [3, 4], "settings": {"heads": 2}},
    {"name": "GATConv", "args": [3, 2], "settings": {"heads": 3, "concat": False, "negative_slope": 0.1}},
    {"name": "GATConv", "args": [3, 2], "settings": {"heads": 2, "edge_dim": 2}, "takes": ["attr"]},
    {"name": "GATConv", "args": [3, 2], "settings": {"add_self_loops": False, "bias": False}},
    {"name": "GATv2Conv", "args": [3, 4], "settings": {"heads": 2}},
    {"name": "GATv2Conv", "args": [3, 2], "settings": {"heads": 2, "edge_dim": 2, "concat": False}, "takes": ["attr"]},
    {"name": "GATv2Conv", "args": [3, 2], "settings": {"share_weights": True, "add_self_loops": False}},
    {"name": "SAGEConv", "args": [3, 4]},
    {"name": "SAGEConv", "args": [3, 2], "settings": {"normalize": True}},
    {"name": "SAGEConv", "args": [3, 2], "settings": {"aggregate": "max", "project": True}},
    {"name": "SAGEConv", "args": [3, 2], "settings": {"aggregate": "sum", "root_weight": False}},
    {"name": "GINConv", "args": ["mlp"]},
    {"name": "GINConv", "args": ["mlp"], "settings": {"eps": 0.3, "train_eps": True}},
    {"name": "GINEConv", "args": ["mlp"], "settings": {"edge_dim": 2}, "takes": ["attr"]},
    {"name": "ChebConv", "args": [3, 4], "settings": {"K": 3}},
    {"name": "ChebConv", "args": [3, 2], "settings": {"K": 2, "normalization": "rw"}, "takes": ["weight"]},
    {"name": "ChebConv", "args": [3, 2], "settings": {"K": 4, "normalization": None}, "takes": ["weight"]},
    {"name": "EdgeConv", "args": ["edge_mlp"]},
    {"name": "EdgeConv", "args": ["edge_mlp"], "settings": {"aggregate": "mean"}},
    {"name": "GraphConvSelf", "args": [3, 4], "settings": {"norm": None, "bias_inside": False}, "takes": ["weight"]},
    {"name": "GraphConvSelf", "args": [3, 2], "settings": {"norm": None, "bias_inside": False}},
    {"name": "GatedGraphConv", "args": [5, 3], "takes": ["weight"]},
    {"name": "GraphNorm", "args": [3], "takes": ["batch"]},
    {"name": "PairNorm", "args": [], "settings": {"scale": 1.5}, "takes": ["batch"]},
    {"name": "TopKPooling", "args": [3], "settings": {"ratio": 0.5}},
    {"name": "TopKPooling", "args": [3], "settings": {"ratio": 0.5}, "takes": ["batch"]},
    {"name": "TopKPooling", "args": [3], "settings": {"ratio": 2}, "takes": ["batch"]},
]
THEIRS = {"GraphConvSelf": "GraphConv"}
OWN_SETTINGS = ("norm", "bias_inside")  # what their layer does anyway
RENAMED = {
    "GraphConvSelf": {"lin_rel.weight": "weight", "lin_rel.bias": "bias", "lin_root.weight": "weight_self"},
    "TopKPooling": {"select.weight": "weight"},
}
NETWORK = {"nn.0": "nn.layers.0", "nn.2": "nn.layers.2"}  # of a Sequential, in our MLP


def our_name(case: dict[str, Any], path: str) -> str:
    """What a parameter of theirs is called in our layer."""
    path = RENAMED.get(case["name"], {}).get(path, path)
    for theirs, ours in NETWORK.items():
        path = path.replace(f"{theirs}.", f"{ours}.")
    return path


def is_transposed(path: str, value: Any) -> bool:
    """Whether a parameter is the matrix of a linear layer or of a recurrent unit, which is (in, out) with us."""
    return value.ndim == 2 and path != "select.weight"


def main() -> None:
    """Compute the file."""
    import torch  # type: ignore[import-not-found]  # not in the project's environment
    import torch_geometric.nn as theirs  # type: ignore[import-not-found]

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)

    def network(sizes: list[int]) -> Any:
        return torch.nn.Sequential(torch.nn.Linear(*sizes[:2]), torch.nn.Tanh(), torch.nn.Linear(*sizes[1:]))

    made: dict[str, Callable[[], Any]] = {"mlp": lambda: network(MLP), "edge_mlp": lambda: network([6, 5, 4])}
    edges = torch.tensor(EDGES)
    weight = torch.rand(edges.shape[1]) + 0.5
    attr = torch.randn(edges.shape[1], EDGE_FEATURES)
    batch = torch.tensor([0, 0, 0, 0, 0, 0, 1])
    records = []
    for case in CASES:
        settings = {k: v for k, v in case.get("settings", {}).items() if k not in OWN_SETTINGS}
        if "aggregate" in settings:
            settings["aggr"] = settings.pop("aggregate")
        args = [made[a]() if isinstance(a, str) else a for a in case["args"]]
        layer = getattr(theirs, THEIRS.get(case["name"], case["name"]))(*args, **settings)
        with torch.no_grad():
            for p in layer.parameters():  # biases begin with 0, which would hide what becomes of them
                p.add_(0.1 * torch.randn(p.shape))
        x = torch.randn(NODES, CHANNELS, requires_grad=True)
        takes = case.get("takes", [])
        given = {"weight": weight, "attr": attr, "batch": batch}
        if "batch" in takes:
            call = (x, edges, None, batch) if case["name"] == "TopKPooling" else (x, batch)
        else:
            call = (x, edges, *(given[name] for name in takes))
        output = layer(*call)
        places = None
        if case["name"] == "TopKPooling":
            places, output = output[4], output[0]
        cotangent = torch.randn(output.shape)
        (output * cotangent).sum().backward()

        def ours(values: dict[str, Any], case: dict[str, Any] = case) -> dict[str, Any]:
            found = {}
            for path, value in values.items():
                turned = value.T if is_transposed(path, value) else value
                found[our_name(case, path)] = turned.tolist()
            return found

        parameters = dict(layer.named_parameters())
        records.append(
            {
                **case,
                "x": x.detach().tolist(),
                "state": ours({path: p.detach() for path, p in parameters.items()}),
                "cotangent": cotangent.tolist(),
                "output": output.detach().tolist(),
                "x_grad": x.grad.tolist(),
                "grads": ours({path: p.grad for path, p in parameters.items()}),
                **({} if places is None else {"places": places.tolist()}),
            }
        )
    graph = {"edges": EDGES, "weight": weight.tolist(), "attr": attr.tolist(), "batch": batch.tolist(), "nodes": NODES}
    FILE.write_text(json.dumps({"graph": graph, "cases": records}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
