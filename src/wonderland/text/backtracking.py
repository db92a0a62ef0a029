r"""Whether a regular expression may take very long to match, found out before it is used on a text.

Python's matcher tries one way after the other and comes back to each choice when what follows fails. Seen as an
automaton whose states are the character classes of the pattern, three things make the number of ways explode:

- a state to which two ways lead back over the same text: (a+)+b, (a|a)*b; the ways double with every character.
  Endless repetitions of what may be empty, as (a*)*, are counted among them;
- two loops in a row that read the same text, where what follows may fail: a*a*b; a power of the length;
- very many ways that are bounded by the pattern alone: (a?){30}a{30}.

A pattern with one of them is refused. What is left takes time at most quadratic in the length of a text: one loop at a
time, from every place where a match might begin. The analysis looks at the tree that `re` itself parses. Assertions are
dead ends that may or may not hold, and possessive repetitions count like greedy ones, so it errs on the safe side.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Ranges = tuple[tuple[int, int], ...]

MOST_STATES = 1000
MOST_WAYS = 4096
_MOST_STEPS = 100_000  # of the analysis
_ALL: Ranges = ((0, sys.maxunicode),)
_parser: Any = importlib.import_module("re._parser")
_constants: Any = importlib.import_module("re._constants")
# characters other than its own large or small form that match a letter where case does not matter
_CASE_RELATIVES = {"s": (0x17F,), "k": (0x212A,), "i": (0x130, 0x131)}


def check_time(pattern: str) -> None:
    """ValueError with the reason if a pattern of `re` is not certain to match in quadratic time.

    >>> check_time(r" ?[a-z]+|\\s+(?!\\S)|\\s+")
    >>> check_time("(a+)+b")
    Traceback (most recent call last):
        ...
    ValueError: a repetition that can read one text in several ways takes exponential time
    """
    automaton = _Automaton()
    whole = automaton.part(_parser.parse(pattern), False)
    automaton.check(whole)


@dataclass
class _Part:
    """A piece of a pattern: in how many ways it is empty, and the states with which it begins and ends, by ways.

    `surely_empty` and `sure_ends` leave out the ways on which an assertion could say no.
    """

    empty: int = 0
    surely_empty: bool = False
    first: Counter[int] = field(default_factory=Counter)
    last: Counter[int] = field(default_factory=Counter)
    sure_ends: set[int] = field(default_factory=set)


def _nothing() -> _Part:
    return _Part(1, True)


class _Automaton:
    """States are the places of a pattern where a character is read; edges count the ways from one to the next."""

    def __init__(self) -> None:
        self.classes: list[Ranges] = []
        self.after: list[Counter[int]] = []
        self.steps = 0

    # from the tree to states

    def part(self, tree: Any, any_case: bool) -> _Part:
        out = _nothing()
        for operation, value in tree:
            out = self._joined(out, self._piece(operation.name, value, any_case))
        return out

    def _piece(self, name: str, value: Any, any_case: bool) -> _Part:
        match name:
            case "LITERAL":
                return self._state(_either_case(((value, value),)) if any_case else ((value, value),))
            case "NOT_LITERAL":
                return self._state(_ALL if any_case else _complement(((value, value),)))
            case "ANY":
                return self._state(_ALL)
            case "IN":
                return self._state(_class(value, any_case))
            case "BRANCH":
                return self._one_of([self.part(tree, any_case) for tree in value[1]])
            case "SUBPATTERN":
                _, added, removed, tree = value
                case_off = bool(added & re.IGNORECASE) or (any_case and not removed & re.IGNORECASE)
                return self.part(tree, case_off)
            case "ATOMIC_GROUP":
                return self.part(value, any_case)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, tree = value
                return self._repeated(least, most, tree, any_case)
            case "ASSERT" | "ASSERT_NOT":
                direction, tree = value
                ahead = self.part(tree, any_case) if direction > 0 else _Part()  # behind: of a fixed length
                return _Part(1, False, ahead.first)
            case "AT":
                return _Part(1, False)
            case "FAILURE":
                return _Part()
        raise ValueError(f"{name.lower()} has no place in a tokenizer")

    def _state(self, characters: Ranges) -> _Part:
        number = len(self.classes)
        if number >= MOST_STATES:
            raise ValueError(f"it has more than {MOST_STATES} places, counting repetitions")
        self.classes.append(characters)
        self.after.append(Counter())
        return _Part(0, False, Counter({number: 1}), Counter({number: 1}), {number})

    def _connect(self, ends: Counter[int], begins: Counter[int]) -> None:
        self._count(len(ends) * len(begins))
        for state, ways in ends.items():
            for following, more in begins.items():
                self.after[state][following] += min(ways * more, MOST_WAYS + 1)

    def _joined(self, a: _Part, b: _Part) -> _Part:
        self._count(len(a.first) + len(b.first) + len(a.last) + len(b.last) + len(a.sure_ends) + len(b.sure_ends))
        self._connect(a.last, b.first)
        return _Part(
            min(a.empty * b.empty, MOST_WAYS + 1),
            a.surely_empty and b.surely_empty,
            _sum((a.first, 1), (b.first, a.empty)),
            _sum((b.last, 1), (a.last, b.empty)),
            b.sure_ends | (a.sure_ends if b.surely_empty else set()),
        )

    def _one_of(self, parts: list[_Part]) -> _Part:
        return _Part(
            min(sum(part.empty for part in parts), MOST_WAYS + 1),
            any(part.surely_empty for part in parts),
            _sum(*((part.first, 1) for part in parts)),
            _sum(*((part.last, 1) for part in parts)),
            set().union(*(part.sure_ends for part in parts)),
        )

    def _repeated(self, least: Any, most: Any, tree: Any, any_case: bool) -> _Part:
        endless = most is _constants.MAXREPEAT
        out = _nothing()
        for _ in range(int(least) - endless * (least > 0)):
            self._count(1)
            out = self._joined(out, self.part(tree, any_case))
        if endless:
            loop = self.part(tree, any_case)
            if loop.empty:
                raise ValueError("a repetition of what may be empty can read one text in many ways")
            self._connect(loop.last, loop.first)
            return self._joined(out, loop if least else self._one_of([loop, _nothing()]))
        rest = _nothing()
        for _ in range(int(most) - int(least)):  # from the last one on: x(x(x)?)?
            self._count(1)
            rest = self._one_of([self._joined(self.part(tree, any_case), rest), _nothing()])
        return self._joined(out, rest)

    # the three checks

    def check(self, whole: _Part) -> None:
        masks = _masks(self.classes)
        groups = _components([list(following) for following in self.after])
        group_of = {state: number for number, group in enumerate(groups) for state in group}
        loops = [group for group in groups if len(group) > 1 or self.after[group[0]][group[0]]]
        for group in loops:
            self._check_exponential(set(group), masks)
        for group in loops:
            for other in loops:
                if group is not other:
                    self._check_pair(set(group), set(other), masks, whole.sure_ends)
        self._check_ways(whole.first, groups, group_of, masks)

    def _check_exponential(self, group: set[int], masks: list[int]) -> None:
        """Two walkers start together, part, and meet again, having read the same: then they can do so for ever."""
        reason = "a repetition that can read one text in several ways takes exponential time"
        if any(self.after[state][following] > 1 for state in group for following in group):
            raise ValueError(reason)
        seen = {(state, state) for state in group}
        waiting = list(seen)
        while waiting:
            a, b = waiting.pop()
            for next_a in self.after[a].keys() & group:
                for next_b in self.after[b].keys() & group:
                    self._count(1)
                    if not masks[next_a] & masks[next_b] or (next_a == next_b and a == b):
                        continue
                    if next_a == next_b:
                        raise ValueError(reason)
                    if (next_a, next_b) not in seen:
                        seen.add((next_a, next_b))
                        waiting.append((next_a, next_b))

    def _check_pair(self, group: set[int], other: set[int], masks: list[int], sure_ends: set[int]) -> None:
        """One walker stays in the first loop, one in the second, and one goes over, all reading the same."""
        for p in group:
            for q in other - sure_ends:  # where a match is complete, nobody comes back
                start = (p, p, q)
                seen, waiting = {start}, [start]
                while waiting:
                    x, y, z = waiting.pop()
                    for next_x in self.after[x].keys() & group:
                        for next_z in self.after[z].keys() & other:
                            both = masks[next_x] & masks[next_z]
                            self._count(1)
                            if not both:
                                continue
                            for next_y in self.after[y]:
                                self._count(1)
                                now = (next_x, next_y, next_z)
                                if not both & masks[next_y] or now in seen:
                                    continue
                                if now == (p, q, q):
                                    raise ValueError(
                                        "two repetitions in a row that can read the same text, where what follows may "
                                        "fail, take a power of its length"
                                    )
                                seen.add(now)
                                waiting.append(now)

    def _check_ways(
        self, first: Counter[int], groups: list[list[int]], group_of: dict[int, int], masks: list[int]
    ) -> None:
        """How many ways one text can take outside of loops: at each character, those that can read it."""
        ways: dict[int, int] = {}
        for group in groups:  # from the end of the pattern to its beginning
            inside = group_of[group[0]]
            exits = max(
                self._most(
                    {y: n * ways[y] for y, n in self.after[x].items() if group_of[y] != inside},
                    masks,
                )
                for x in group
            )
            ways.update(dict.fromkeys(group, exits * len(group)))
        if self._most({y: n * ways[y] for y, n in first.items()}, masks) > MOST_WAYS:
            raise ValueError(f"it can read one text in more than {MOST_WAYS} ways")

    def _most(self, weights: dict[int, int], masks: list[int]) -> int:
        sums: Counter[int] = Counter()
        for state, weight in weights.items():
            mask = masks[state]
            while mask:
                self._count(1)
                lowest = mask & -mask
                sums[lowest] += weight
                mask ^= lowest
        return min(max(sums.values(), default=1), MOST_WAYS + 1)

    def _count(self, steps: int) -> None:
        self.steps += steps
        if self.steps > _MOST_STEPS:
            raise ValueError("it is too involved to be sure that it ends in time")


def _sum(*counts: tuple[Counter[int], int]) -> Counter[int]:
    out: Counter[int] = Counter()
    for counter, times in counts:
        if times:
            for state, ways in counter.items():
                out[state] = min(out[state] + ways * times, MOST_WAYS + 1)
    return out


# classes of characters


def _class(items: Any, any_case: bool) -> Ranges:
    """The characters of [...]."""
    negative = False
    ranges: list[tuple[int, int]] = []
    for operation, value in items:
        if operation.name == "NEGATE":
            negative = True
        elif operation.name == "LITERAL":
            ranges.append((value, value))
        elif operation.name == "RANGE":
            ranges.append(value)
        else:  # a class of Python's own
            return _ALL
    found = tuple(sorted(ranges))
    if any_case:
        return _ALL if negative else _either_case(found)
    return _complement(found) if negative else found


def _either_case(ranges: Ranges) -> Ranges:
    if any(last > 127 for _, last in ranges):
        return _ALL
    codes = {code for first, last in ranges for code in range(first, last + 1)}
    for code in list(codes):
        codes.add(ord(chr(code).swapcase()))
        codes.update(_CASE_RELATIVES.get(chr(code).lower(), ()))
    return tuple((code, code) for code in sorted(codes))


def _complement(ranges: Ranges) -> Ranges:
    out, start = [], 0
    for first, last in sorted(ranges):
        if start < first:
            out.append((start, first - 1))
        start = max(start, last + 1)
    return (*out, (start, sys.maxunicode)) if start <= sys.maxunicode else tuple(out)


def _masks(classes: list[Ranges]) -> list[int]:
    """Each class as a set of bits, one for each group of characters that no class tells apart."""
    numbers = {characters: number for number, characters in enumerate(dict.fromkeys(classes))}
    events = sorted(
        event
        for characters, number in numbers.items()
        for first, last in characters
        for event in ((first, number, 1), (last + 1, number, -1))
    )
    here: Counter[int] = Counter()
    kinds: dict[frozenset[int], int] = {}  # the classes that hold a character: a bit
    place = -1
    for start, number, change in events:
        if start != place and (inside := frozenset(n for n in here if here[n])):
            kinds.setdefault(inside, 1 << len(kinds))
        here[number] += change
        place = start
    masks = dict.fromkeys(numbers.values(), 0)
    for inside, bit in kinds.items():
        for number in inside:
            masks[number] |= bit
    return [masks[numbers[characters]] for characters in classes]


def _components(after: list[list[int]]) -> list[list[int]]:
    """The strongly connected components, each after those that it leads to (Tarjan's algorithm, without recursion)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    waiting: set[int] = set()
    out: list[list[int]] = []
    for root in range(len(after)):
        if root in order:
            continue
        work: list[tuple[int, Iterable[int]]] = [(root, iter(after[root]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        waiting.add(root)
        while work:
            state, rest = work[-1]
            for following in rest:
                if following not in order:
                    order[following] = low[following] = len(order)
                    stack.append(following)
                    waiting.add(following)
                    work.append((following, iter(after[following])))
                    break
                if following in waiting:
                    low[state] = min(low[state], order[following])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[state])
                if low[state] == order[state]:
                    group: list[int] = []
                    while not group or group[-1] != state:
                        group.append(stack.pop())
                        waiting.discard(group[-1])
                    out.append(group)
    return out
