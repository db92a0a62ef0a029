"""Graphs that come with the package: a club, a citation network that is made, and the example of the book."""

from __future__ import annotations

import numpy as np

from ..core.arguments import as_int
from ..core.errors import InputError
from ..data.generators import Seed
from ..data.randomness import as_generator
from .generators import stochastic_block_model
from .graph import Graph
from .splitting import split_nodes

# The friends with a larger number of each of the 34 members (Zachary 1977), counted from 0.
_CLUB = (
    "1 2 3 4 5 6 7 8 10 11 12 13 17 19 21 31|2 3 7 13 17 19 21 30|3 7 8 9 13 27 28 32|7 12 13|6 10|6 10 16|16||"
    "30 32 33|33||||33|32 33|32 33|||32 33|33|32 33||32 33|25 27 29 32 33|25 27 31|31|29 33|33|31 33|32 33|32 33|"
    "32 33|33|"
)
_OFFICER = (9, 14, 15, 18, 20, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33)  # who stayed with the officer


def karate_club() -> Graph:
    """Zachary's karate club: 34 members, 78 friendships, and the two clubs into which it broke up as y.

    >>> import wonderland as wl
    >>> wl.graphs.karate_club()
    Graph(34 nodes, 78 undirected edges, x (34, 34), y (34,) of nodes, train 2, test 32, props target_names)

    Node 0 is the instructor and node 33 the officer: they are the training mask, and the features are one-hot codes of
    the members. W. W. Zachary, An Information Flow Model for Conflict and Fission in Small Groups, 1977.
    """
    pairs = [(i, int(j)) for i, friends in enumerate(_CLUB.split("|")) for j in friends.split()]
    y = np.zeros(34, np.int64)
    y[list(_OFFICER)] = 1
    train = np.isin(np.arange(34), [0, 33])
    return Graph(
        34,
        pairs,
        x=np.eye(34, dtype=np.float32),
        y=y,
        masks={"train": train, "test": ~train},
        props={"target_names": ("Mr. Hi", "Officer")},
        directed=False,
    )


def citation_network(
    n: int = 600,
    classes: int = 5,
    words: int = 200,
    *,
    degree: float = 4.0,
    homophily: float = 0.8,
    topic: float = 0.3,
    length: int = 12,
    seed: Seed = 0,
) -> Graph:
    """A made citation network: articles of some fields that cite each other, with the words that are in them.

    >>> import wonderland as wl
    >>> graph = wl.graphs.citation_network()
    >>> graph.x.shape, graph.num_undirected_edges, round(wl.graphs.edge_homophily(graph), 1)
    ((600, 200), 1190, 0.8)
    >>> {name: int(mask.sum()) for name, mask in graph.masks.items()}
    {'train': 50, 'val': 100, 'test': 200}

    It has the shape of Cora and its like, smaller: a stochastic block model with about `degree` citations per article,
    of which a share `homophily` is within a field; x (n, words) says which of `length` drawn words an article has, of
    which a share `topic` is from the words of its field; 10 nodes of each class to learn from, a sixth of all to choose
    by and a third to be tested on. Words alone say little, and the graph helps. Book, practice of chapter 12.
    """
    n = as_int("citation_network", "n", n, least=1)
    k = as_int("citation_network", "classes", classes, least=2)
    words = as_int("citation_network", "words", words, least=k)
    if not (0 <= homophily <= 1 and 0 <= topic <= 1 and degree >= 0):
        raise InputError(
            f"citation_network: homophily={homophily!r}, topic={topic!r}, degree={degree!r}.", "shares from 0 to 1"
        )
    rng = as_generator("citation_network", seed)
    sizes = rng.multinomial(n - k * (n // (2 * k)), np.full(k, 1 / k)) + n // (2 * k)  # none is much too small
    inside = (sizes.astype(float) ** 2).sum() - n
    across = n * n - (sizes.astype(float) ** 2).sum()
    p = min(1.0, degree * n * homophily / max(inside, 1.0))
    p_out = min(1.0, degree * n * (1 - homophily) / max(across, 1.0))
    graph = stochastic_block_model(sizes.tolist(), p, p_out, seed=rng)
    y = np.asarray(graph.y)
    own = rng.random((n, length)) < topic
    width = words // k
    drawn = np.where(own, y[:, None] * width + rng.integers(0, width, (n, length)), rng.integers(0, words, (n, length)))
    x = np.zeros((n, words), np.float32)
    x[np.arange(n)[:, None], drawn] = 1
    graph = graph.with_(x=x).permute(rng.permutation(n))
    each = min(10, max(1, int(sizes.min()) // 2))
    return split_nodes(graph, per_class=each, val=n // 6, test=n // 3, seed=rng)


def book_graph() -> Graph:
    """The graph of figure 12.2: V = {0, .., 3}, with the edges 01, 02, 12 and 13.

    >>> import wonderland as wl
    >>> wl.graphs.book_graph().degree().tolist()
    [2.0, 3.0, 2.0, 1.0]
    """
    return Graph(4, [(0, 1), (0, 2), (1, 2), (1, 3)], directed=False)
