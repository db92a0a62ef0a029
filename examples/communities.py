"""Communities by spectra: the karate club by its Fiedler vector, the blocks of a random graph. Book, section 12.1.3.

    python examples/communities.py             # a second
    python examples/communities.py club.svg    # with a picture of the club

The second eigenvector of the Laplacian, the Fiedler vector, is the smoothest signal of a graph that is not constant:
few edges join nodes with different signs. Its signs cut the graph into two parts. With the first k eigenvectors nodes
are points, which k-means sorts into k clusters. Nothing is trained, and no label is looked at before the comparison.
"""

from __future__ import annotations

import sys

import numpy as np

import wonderland as wl
from wonderland.graphs import Graph


def agreement(found: np.ndarray, true: np.ndarray) -> float:
    """The share of nodes whose cluster is the right one, with clusters named by whom they mostly have."""
    named = np.zeros_like(found)
    for k in np.unique(found):
        named[found == k] = np.bincount(true[found == k]).argmax()
    return float((named == true).mean())


def cut(graph: Graph, part: np.ndarray) -> int:
    """How many edges join different parts."""
    rows, cols = graph.ends()
    return int((part[rows] != part[cols]).sum()) // 2


def club(picture: str | None = None) -> tuple[np.ndarray, float]:
    """The parts of Zachary's karate club by the Fiedler vector, and how well they are the two clubs it broke into."""
    graph = wl.graphs.karate_club()
    y = np.asarray(graph.y)
    value, vector = wl.graphs.fiedler(graph)
    part = wl.graphs.spectral_bisection(graph)
    share = agreement(part, y)
    print(f"karate club: {graph.n} members, {graph.num_undirected_edges} friendships, lambda_2 = {float(value):.4f}")
    print(f"  by the Fiedler vector: {share:.3f} right, {cut(graph, part)} friendships cut")
    print(f"  as it broke up:        1.000 right, {cut(graph, y)} friendships cut")
    undecided = np.argsort(np.abs(np.asarray(vector)))[:3]
    print(f"  nearest to the border: {', '.join(map(str, undecided.tolist()))}")
    if picture is not None:
        with open(picture, "w") as file:
            file.write(wl.graphs.draw(graph, y, predictions=part, labels=True, names=["Mr. Hi", "Officer"]))
    return part, share


def blocks(sizes: tuple[int, ...] = (60, 50, 40, 30), p_in: float = 0.25, p_out: float = 0.03) -> dict[str, float]:
    """How well spectral clustering finds the blocks of a stochastic block model, and k-means on rows of A."""
    graph = wl.graphs.stochastic_block_model(sizes, p_in, p_out)
    y, k = np.asarray(graph.y), len(sizes)
    found = wl.models.spectral_clustering(graph, k, key=wl.random.key(0))
    scores = {"spectral clustering": agreement(found, y)}
    rows = wl.models.KMeans(k, key=wl.random.key(0)).fit(graph.to_dense()).labels_
    scores["k-means of rows of A"] = agreement(np.asarray(rows), y)
    print(f"{graph.n} nodes in {k} blocks, {graph.num_undirected_edges} edges")
    for name, share in scores.items():
        print(f"  {name + ':':24} {share:.3f} right")
    values = np.asarray(wl.graphs.laplacian_spectrum(graph, "sym", k + 2).values)
    print(f"  eigenvalues: {', '.join(f'{v:.3f}' for v in values)}; the gap after the first {k} tells how many blocks")
    return scores


if __name__ == "__main__":
    club(*sys.argv[1:2])
    blocks()
