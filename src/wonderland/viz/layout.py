"""Where the nodes of an acyclic graph go: one column per level, few crossings, long edges straight."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..core.errors import InputError

Point = tuple[float, float]
Size = tuple[float, float]
Pair = tuple[Hashable, Hashable]

COLUMN_GAP = 64.0
ROW_GAP = 22.0
SWEEPS = 16


def levels(nodes: Iterable[Hashable], edges: Iterable[Pair]) -> dict[Hashable, int]:
    """The level of every node: 0 without predecessors, else one more than the highest of them.

    >>> levels("abcd", [("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")])
    {'a': 0, 'b': 1, 'c': 2, 'd': 0}

    Nodes of one level have no edge between them, so they could be computed at the same time, and walking
    the levels upwards is a topological order. A graph with a cycle has neither and is refused.
    """
    level, stuck = levels_and_stuck(nodes, edges)
    if stuck:
        raise InputError(f"levels: the graph has a cycle among {', '.join(map(str, stuck))}.", "an acyclic graph")
    return level


def levels_and_stuck(nodes: Iterable[Hashable], edges: Iterable[Pair]) -> tuple[dict[Hashable, int], list[Hashable]]:
    """The levels, and the nodes that have none because they depend on a cycle."""
    level = dict.fromkeys(nodes, 0)
    followers: dict[Hashable, list[Hashable]] = {node: [] for node in level}
    waiting = dict.fromkeys(level, 0)  # predecessors without a final level
    for source, target in edges:
        if source not in level or target not in level:
            missing = source if source not in level else target
            raise InputError(
                f"levels: an edge names {missing!r}, which is not a node.", "edges between the given nodes"
            )
        followers[source].append(target)
        waiting[target] += 1
    ready = [node for node in level if not waiting[node]]
    for node in ready:  # grows on the way
        for target in followers[node]:
            level[target] = max(level[target], level[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return level, [node for node in level if waiting[node]]


@dataclass(frozen=True)
class Layout:
    """The corners (left, top) of the nodes, the points that each edge passes, and the size of the whole."""

    corners: dict[Hashable, Point]
    routes: list[list[Point]]
    size: Size


def arrange(sizes: Mapping[Hashable, Size], edges: Sequence[Pair], gap: float = COLUMN_GAP) -> Layout:
    """Place nodes of given sizes from left to right, with a gap between the levels.

    An edge that skips levels gets an invisible node on each of them, so that crossings can be counted between
    neighbouring levels only and the edge can be routed around the nodes in its way.
    """
    level = _drawn_levels(sizes, edges)
    columns: list[list[Hashable]] = [[] for _ in range(1 + max(level.values(), default=-1))]
    for node in sizes:
        columns[level[node]].append(node)
    height = {node: size[1] for node, size in sizes.items()}
    chains: list[list[Hashable]] = []
    for number, (source, target) in enumerate(edges):
        chain: list[Hashable] = [source]
        for between in range(level[source] + 1, level[target]):
            passage = ("passage", number, between)
            columns[between].append(passage)
            height[passage] = 0.0
            chain.append(passage)
        chains.append([*chain, target])

    before: dict[Hashable, list[Hashable]] = {node: [] for node in height}
    after: dict[Hashable, list[Hashable]] = {node: [] for node in height}
    for chain in chains:
        for a, b in itertools.pairwise(chain):
            after[a].append(b)
            before[b].append(a)
    columns = _with_few_crossings(columns, before, after)
    middle = _rows(columns, before, after, height)

    left, x = {}, 0.0
    widths = [max((sizes[n][0] for n in column if n in sizes), default=0.0) for column in columns]
    for column, width in zip(columns, widths, strict=True):
        for node in column:
            left[node] = x + (width - sizes[node][0]) / 2 if node in sizes else x
        x += width + gap
    corners = {node: (left[node], middle[node] - size[1] / 2) for node, size in sizes.items()}
    top = min((y - height[node] / 2 for node, y in middle.items()), default=0.0)
    bottom = max((y + height[node] / 2 for node, y in middle.items()), default=0.0)
    corners = {node: (cx, cy - top) for node, (cx, cy) in corners.items()}
    middle = {node: y - top for node, y in middle.items()}

    span = {node: (left[node], left[node] + w) for column, w in zip(columns, widths, strict=True) for node in column}
    routes = _routes(chains, corners, sizes, middle, span)
    return Layout(corners, routes, (max(x - gap, 0.0), bottom - top))


def _drawn_levels(sizes: Mapping[Hashable, Size], edges: Sequence[Pair]) -> dict[Hashable, int]:
    """The levels, with nodes that only feed others next to their first use: a weight stands by its layer."""
    level = levels(sizes, edges)
    fed = {target for _, target in edges}
    first_use: dict[Hashable, int] = {}
    for source, target in edges:
        if source not in fed:
            first_use[source] = min(first_use.get(source, level[target]), level[target])
    return {node: first_use[node] - 1 if node in first_use else n for node, n in level.items()}


def _with_few_crossings(
    columns: list[list[Hashable]],
    before: Mapping[Hashable, list[Hashable]],
    after: Mapping[Hashable, list[Hashable]],
) -> list[list[Hashable]]:
    """Sort every column by the mean place of its neighbours, back and forth; keep the best order met."""
    best, fewest = columns, _crossings(columns, after)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        columns = [list(column) for column in columns]
        forward = sweep % 2 == 0
        near = before if forward else after
        order = range(1, len(columns)) if forward else range(len(columns) - 2, -1, -1)
        for i in order:
            place = {node: p for p, node in enumerate(columns[i - 1 if forward else i + 1])}
            own = {node: p for p, node in enumerate(columns[i])}
            mean = {n: sum(place[m] for m in near[n]) / len(near[n]) if near[n] else own[n] for n in columns[i]}
            columns[i].sort(key=mean.__getitem__)
        count = _crossings(columns, after)
        if count < fewest:
            best, fewest = columns, count
    return best


def _crossings(columns: list[list[Hashable]], after: Mapping[Hashable, list[Hashable]]) -> int:
    """The pairs of edges between neighbouring columns that cross."""
    total = 0
    for column, following in itertools.pairwise(columns):
        place = {node: p for p, node in enumerate(following)}
        ends = [end for node in column for end in sorted(place[n] for n in after[node])]
        seen: list[int] = []  # sorted
        for end in ends:
            total += len(seen) - bisect.bisect_right(seen, end)
            bisect.insort(seen, end)
    return total


def _rows(
    columns: list[list[Hashable]],
    before: Mapping[Hashable, list[Hashable]],
    after: Mapping[Hashable, list[Hashable]],
    height: Mapping[Hashable, float],
) -> dict[Hashable, float]:
    """The vertical middle of every node: near its neighbours, in its column's order, with room between."""
    middle: dict[Hashable, float] = {}
    for column in columns:
        y = 0.0
        for node in column:
            middle[node] = y + height[node] / 2
            y += height[node] + ROW_GAP
        for node in column:
            middle[node] -= (y - ROW_GAP) / 2

    # an input that is used once follows its use and makes room; the passages of a long edge stay in line
    firmness = {node: 0.1 if not before[node] and len(after[node]) == 1 else 1.0 for node in middle}

    def pull(a: Hashable, b: Hashable) -> float:
        return 8.0 if height[a] == height[b] == 0 else min(firmness[a], firmness[b])

    for sweep in range(SWEEPS):
        for column in columns if sweep % 2 == 0 else columns[::-1]:
            wished = []
            for node in column:
                near = [(middle[n], pull(node, n)) for n in (*before[node], *after[node])]
                weight = sum(w for _, w in near)
                wished.append(sum(y * w for y, w in near) / weight if near else middle[node])
            distances = [(height[a] + height[b]) / 2 + ROW_GAP for a, b in itertools.pairwise(column)]
            for node, y in zip(column, _spaced(wished, [firmness[n] for n in column], distances), strict=True):
                middle[node] = y
    return middle


def _spaced(wished: list[float], weights: list[float], distances: list[float]) -> list[float]:
    """The positions closest to the wishes (weighted least squares) whose neighbours keep their distances.

    Without the distances' running sum the condition is "not decreasing": pool the neighbours that violate it.
    """
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)
    pools: list[tuple[float, float, int]] = []  # (mean, weight, how many)
    for wish, weight, offset in zip(wished, weights, offsets, strict=False):
        mean, count = wish - offset, 1
        while pools and pools[-1][0] > mean:
            other, heavy, n = pools.pop()
            mean = (mean * weight + other * heavy) / (weight + heavy)
            weight += heavy
            count += n
        pools.append((mean, weight, count))
    flat = [mean for mean, _, count in pools for _ in range(count)]
    return [y + offset for y, offset in zip(flat, offsets, strict=False)]


def _routes(
    chains: list[list[Hashable]],
    corners: Mapping[Hashable, Point],
    sizes: Mapping[Hashable, Size],
    middle: Mapping[Hashable, float],
    span: Mapping[Hashable, tuple[float, float]],
) -> list[list[Point]]:
    """From the right side of the source, straight through the columns between, to a port of the target."""
    arriving: dict[Hashable, list[int]] = {}
    for number, chain in enumerate(chains):
        arriving.setdefault(chain[-1], []).append(number)
    port: dict[int, float] = {}
    for target, numbers in arriving.items():
        numbers.sort(key=lambda number: (middle[chains[number][-2]], number))
        for place, number in enumerate(numbers, start=1):
            port[number] = corners[target][1] + sizes[target][1] * place / (len(numbers) + 1)
    routes = []
    for number, chain in enumerate(chains):
        source, target = chain[0], chain[-1]
        points = [(corners[source][0] + sizes[source][0], corners[source][1] + sizes[source][1] / 2)]
        for passage in chain[1:-1]:
            points += [(x, middle[passage]) for x in span[passage]]
        points.append((corners[target][0], port[number]))
        routes.append(points)
    return routes
