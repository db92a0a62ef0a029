"""Which subject a paper is about, from its words and its citations: a graph network and few labels. Book, chapter 12.

    python examples/node_classification.py                     # a made set of citations
    python examples/node_classification.py cora.npz --model gat --seeds 10

The recipes are those of the papers: a GCN of 16 hidden units with dropout 0.5, trained for 200 epochs, and a GAT with 8
heads of 8 units and dropout 0.6, which stops when the validation has not improved for 100 epochs and counts as it was
when it was best. An MLP knows the words alone. Which files are read: `wl.graphs.load`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import wonderland as wl


class Words(wl.nn.Module):
    """An MLP that sees no neighbours."""

    def __init__(self, c: int, classes: int) -> None:
        self.nn = wl.models.MLP([c, 16, classes], dropout=0.5)

    def prepare(self, graph):
        return graph

    def forward(self, x, graph):
        return self.nn(x)


def build(name: str, c: int, classes: int):
    """The model, its rate, and the decay of the weights."""
    if name == "mlp":
        return Words(c, classes), 0.01
    if name == "gcn":
        return wl.models.GCN([c, 16, classes], dropout=0.5), 0.01
    return wl.models.GAT([c, 8, classes], heads=8, dropout=0.6, attention_dropout=0.6), 0.005


def train(
    name: str, graph: wl.graphs.Graph, seed: int, epochs: int, patience: int | None, verbose: bool
) -> dict[str, float]:
    """The accuracies on validation and test nodes."""
    wl.random.seed(seed)
    x = graph.x / wl.maximum(graph.x.sum(axis=1, keepdims=True), 1.0)  # rows sum to 1
    y, classes = graph.y, int(graph.y.max()) + 1
    model, rate = build(name, x.shape[1], classes)
    adjacency = model.prepare(graph)
    optimizer = wl.optim.Adam(model, lr=rate)
    decayed = {
        path for path, _ in model.named_parameters() if name == "gat" or path.startswith(("layers.0.", "nn.layers.0."))
    }

    @wl.jit
    def step(model, optimizer, x, adjacency, y, mask):
        def loss_of(model):
            logits = model(x, adjacency)
            penalty = sum((p * p).sum() for path, p in model.named_parameters() if path in decayed)
            return wl.models.masked_cross_entropy(logits, y, mask) + 0.5 * 5e-4 * penalty

        loss, grads = wl.value_and_grad(loss_of)(model)
        optimizer.step(grads)
        return loss

    @wl.jit
    def score(model, x, adjacency, y, val, test):
        logits = model(x, adjacency)
        right = (wl.argmax(logits, axis=1) == y).astype(wl.float32)
        shares = [(right * m).sum() / m.sum() for m in (val.astype(wl.float32), test.astype(wl.float32))]
        return wl.models.masked_cross_entropy(logits, y, val), *shares

    best, waited = {"loss": np.inf, "val": 0.0, "test": 0.0}, 0
    highest = 0.0
    for epoch in range(epochs):
        model.train()
        loss = step(model, optimizer, x, adjacency, y, graph.masks["train"])
        model.eval()
        if patience is None and epoch < epochs - 1:
            continue  # the last epoch counts
        found = [float(v) for v in score(model, x, adjacency, y, graph.masks["val"], graph.masks["test"])]
        if verbose and epoch % 20 == 0:
            print(f"  epoch {epoch}: loss {float(loss):.3f}, validation {found[1]:.3f}, test {found[2]:.3f}")
        if patience is None:
            return {"loss": found[0], "val": found[1], "test": found[2]}
        if found[0] <= best["loss"] or found[1] >= highest:
            if found[0] <= best["loss"] and found[1] >= highest:
                best["val"], best["test"] = found[1], found[2]
            best["loss"], highest, waited = min(found[0], best["loss"]), max(found[1], highest), 0
        else:
            waited += 1
            if waited >= patience:
                break
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="an npz with a citation graph; without it, one is made")
    parser.add_argument("--model", choices=["mlp", "gcn", "gat"], help="one of them; without it, all")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    graph = wl.graphs.load(args.file) if args.file else wl.graphs.citation_network()
    print(graph)
    print(f"homophily {wl.graphs.edge_homophily(graph):.2f}")
    for name in [args.model] if args.model else ["mlp", "gcn", "gat"]:
        usual = (1000 if args.file else 150) if name == "gat" else (200 if args.file else 100)
        start, found = time.perf_counter(), []
        for seed in range(args.seeds):
            patience = 100 if name == "gat" else None
            found.append(train(name, graph, seed, args.epochs or usual, patience, args.verbose)["test"])
        seconds = (time.perf_counter() - start) / args.seeds
        spread = f" +- {100 * np.std(found):.1f} over {args.seeds} seeds" if args.seeds > 1 else ""
        print(f"{name}: test accuracy {100 * np.mean(found):.1f} %{spread}, {seconds:.1f} s each")


if __name__ == "__main__":
    main()
