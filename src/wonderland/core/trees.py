"""Trees: nested lists, tuples, dicts, dataclasses and modules, with tensors (or anything else) at the leaves.

>>> import wonderland as wl
>>> wl.tree.map(lambda x: 2 * x, {"a": 1, "b": (2, [3])})
{'a': 2, 'b': (4, [6])}

`flatten` gives the leaves and the structure, `unflatten` the tree again. `None` has no leaves. Objects with state
(modules, optimizers) are nodes whose leaves are their cells; one that is reached twice is one object afterwards, too.
A field of a dataclass that is no leaf, such as a name, is declared with `dataclasses.field(metadata={"static": True})`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from .cell import Cell
from .errors import TreeError
from .primitive import Aval
from .tensor import VALUES, Tensor

__all__ = [
    "Structure",
    "flatten",
    "flatten_with_paths",
    "is_stateful",
    "leaves",
    "map",
    "register",
    "structure",
    "unflatten",
]

_map = builtins.map
_REGISTRY: dict[type, tuple[Callable[[Any], tuple[Iterable[Any], Any]], Callable[[Any, list[Any]], Any]]] = {}
_FIELDS: WeakKeyDictionary[type, tuple[tuple[str, ...], tuple[str, ...]]] = WeakKeyDictionary()


class Static:
    """A value that is part of a structure: compared by equality, or by identity if it cannot be hashed."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and _same(self.value, other.value)

    def __hash__(self) -> int:
        return hash(self.value) if _hashable(self.value) else id(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


def _same(a: Any, b: Any) -> bool:
    """Whether two values mean the same to a trace: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if a is b:
        return True
    if type(a) is not type(b) or not _hashable(a):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(_map(_same, a, b))
    if isinstance(a, (float, complex)):
        return repr(a) == repr(b)
    equal = a == b
    return isinstance(equal, (bool, np.bool_)) and bool(equal)  # two tensors give a tensor


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


class Structure(NamedTuple):
    """A tree without its leaves: the kind of node, what belongs to it, and its children."""

    kind: Any
    meta: Any = None
    children: tuple[Structure, ...] = ()

    @property
    def leaf_count(self) -> int:
        """The number of leaves."""
        return 1 if self.kind == "leaf" else sum(child.leaf_count for child in self.children)

    def __repr__(self) -> str:
        if self.kind == "leaf":
            return "*"
        if self.kind == "dict":
            return (
                "{"
                + ", ".join(f"{key!r}: {child!r}" for key, child in zip(self.meta, self.children, strict=True))
                + "}"
            )
        name = self.kind if isinstance(self.kind, str) else self.kind.__name__
        return f"{name}({', '.join(_map(repr, self.children))})"


DEEPEST = 200  # levels of a tree; far below what Python's stack allows


class Keys(tuple[Hashable, ...]):
    """The keys of a dict as they are flattened; `order` is how they came, and how they are put back."""

    order: tuple[Hashable, ...]

    def __new__(cls, keys: Iterable[Hashable], order: tuple[Hashable, ...]) -> Keys:
        made = super().__new__(cls, keys)
        made.order = order
        return made


LEAF = Structure("leaf")
NONE = Structure("none")


def register(
    cls: type, flatten: Callable[[Any], tuple[Iterable[Any], Any]], unflatten: Callable[[Any, list[Any]], Any]
) -> None:
    """Make instances of `cls` nodes: `flatten(x)` gives (children, meta), `unflatten(meta, children)` the instance.

    >>> class Pair:
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> register(Pair, lambda pair: ((pair.left, pair.right), None), lambda meta, children: Pair(*children))
    >>> leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    _REGISTRY[cls] = (flatten, unflatten)


def is_stateful(x: object) -> bool:
    """Whether x is an object with cells, such as a module or an optimizer."""
    return hasattr(type(x), "__tree_parts__")


def node_of(tree: Any) -> tuple[Any, Any, list[tuple[Any, Any]]] | None:
    """(kind, meta, [(key, child)]) of a node; None for a leaf."""
    cls = type(tree)
    if cls in VALUES:
        return None  # most of what is asked about
    if cls is list:
        return "list", None, list(enumerate(tree))
    if cls is tuple:
        return "tuple", None, list(enumerate(tree))
    if isinstance(tree, dict) and cls.__name__ in ("dict", "OrderedDict", "defaultdict"):
        keys = list(tree)
        if all(isinstance(k, str) for k in keys):
            keys.sort()
        return "dict", Keys(keys, tuple(tree)), [(k, tree[k]) for k in keys]
    if isinstance(tree, tuple) and hasattr(tree, "_fields") and cls is not Aval:
        return cls, None, list(zip(tree._fields, tree, strict=True))
    if cls in _REGISTRY:
        children, meta = _REGISTRY[cls][0](tree)
        return cls, Static(meta), list(enumerate(children))
    if hasattr(cls, "__dataclass_fields__") and not is_stateful(tree):
        fixed, names = _fields_of(cls)
        static = tuple([(name, Static(getattr(tree, name))) for name in fixed])
        return cls, (static, names), [(name, getattr(tree, name)) for name in names]
    return None


def _fields_of(cls: type) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the fields of a dataclass that are part of its structure, and of the others."""
    found = _FIELDS.get(cls)
    if found is None:
        import dataclasses  # only those who use them pay for the import

        fields = [f for f in dataclasses.fields(cls) if f.init]
        static = tuple(f.name for f in fields if f.metadata.get("static"))
        found = _FIELDS[cls] = static, tuple(f.name for f in fields if f.name not in static)
    return found


class _Flattener:
    def __init__(self, open_objects: bool) -> None:
        self.open_objects = open_objects
        self.leaves: list[Any] = []
        self.paths: list[tuple[Hashable, ...]] = []
        self.active: set[int] = set()  # the containers on the way down
        self.seen: dict[int, int] = {}  # objects with identity: cells and modules
        self.alive: list[object] = []  # keeps the ids above valid

    def visit(self, tree: Any, path: tuple[Hashable, ...]) -> Structure:
        if tree is None:
            return NONE
        if self.open_objects and (is_stateful(tree) or isinstance(tree, Cell)):
            if id(tree) in self.seen:
                return Structure("again", self.seen[id(tree)])
            self.seen[id(tree)] = len(self.seen)
            self.alive.append(tree)
            if isinstance(tree, Cell):
                self.leaves.append(tree)
                self.paths.append(path)
                return Structure("cell", (type(tree), tree.settings()), (LEAF,))
            parts, static = tree.__tree_parts__()
            node = (type(tree), (tuple(parts), static), list(parts.items()))
        else:
            found = node_of(tree)
            if found is None:
                self.leaves.append(tree)
                self.paths.append(path)
                return LEAF
            node = found
        kind, meta, children = node
        if id(tree) in self.active:
            raise TreeError(
                f"tree: the {type(tree).__name__} at {'.'.join(_map(str, path)) or 'the root'} contains itself.",
                "a tree without cycles",
            )
        if len(path) == DEEPEST:
            raise TreeError(f"tree: it is nested more than {DEEPEST} levels deep.", "a flatter tree, such as one list")
        self.active.add(id(tree))
        result = Structure(kind, meta, tuple(self.visit(child, (*path, key)) for key, child in children))
        self.active.discard(id(tree))
        return result


def flatten(tree: object, *, open_objects: bool = True) -> tuple[list[Any], Structure]:
    """The leaves of a tree, left to right, and its structure. Dicts with string keys go in the order of their keys.

    >>> leaves, structure = flatten({"b": 2, "a": (1, None)})
    >>> leaves, structure
    ([1, 2], {'a': tuple(*, none()), 'b': *})

    With `open_objects=False` modules and cells are leaves themselves.
    """
    if isinstance(tree, Tensor) and not isinstance(tree, Cell):
        return [tree], LEAF  # the frequent case
    flattener = _Flattener(open_objects)
    found = flattener.visit(tree, ())
    return flattener.leaves, found


def flatten_with_paths(
    tree: object, *, open_objects: bool = True
) -> tuple[list[tuple[tuple[Hashable, ...], Any]], Structure]:
    """Like `flatten`, with the path of keys beside each leaf.

    >>> flatten_with_paths({"a": [1, 2]})[0]
    [(('a', 0), 1), (('a', 1), 2)]
    """
    flattener = _Flattener(open_objects)
    found = flattener.visit(tree, ())
    return list(zip(flattener.paths, flattener.leaves, strict=True)), found


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The tree with this structure and these leaves.

    >>> unflatten(structure({"a": [0, 0]}), [1, 2])
    {'a': [1, 2]}
    """
    if not isinstance(structure, Structure) or not isinstance(leaves, Iterable):
        raise TreeError(
            "unflatten: takes a structure and its leaves.", "wl.tree.unflatten(wl.tree.structure(tree), leaves)"
        )
    leaves = list(leaves)
    if structure.kind == "leaf" and len(leaves) == 1:
        return leaves[0]
    if len(leaves) != structure.leaf_count:
        raise TreeError(
            f"unflatten: a structure with {structure.leaf_count} leaves received {len(leaves)}.", "one value per leaf"
        )
    return _build(structure, iter(leaves), [])


def _build(s: Structure, leaves: Iterator[object], made: list[Any]) -> Any:
    kind = s.kind
    if kind == "leaf":
        return next(leaves)
    if kind == "none":
        return None
    if kind == "again":
        return made[s.meta]
    if kind == "cell":
        place = len(made)
        made.append(None)
        leaf = _build(s.children[0], leaves, made)
        cls, settings = s.meta
        made[place] = leaf if type(leaf) is cls or not isinstance(leaf, Tensor) else cls(leaf, **dict(settings))
        return made[place]
    stateful = hasattr(kind, "__tree_parts__")
    if stateful:
        place = len(made)
        made.append(kind.__tree_new__())
    children = [_build(child, leaves, made) for child in s.children]
    if kind == "list":
        return children
    if kind == "tuple":
        return tuple(children)
    if kind == "dict":
        found = dict(zip(s.meta, children, strict=True))
        return {key: found[key] for key in s.meta.order}
    if stateful:
        names, static = s.meta
        made[place].__tree_fill__(dict(zip(names, children, strict=True)), static)
        return made[place]
    if kind in _REGISTRY:
        return _REGISTRY[kind][1](s.meta.value, children)
    if issubclass(kind, tuple):
        return kind(*children)
    static, names = s.meta
    return kind(**{name: value.value for name, value in static}, **dict(zip(names, children, strict=True)))


def leaves(tree: object) -> list[Any]:
    """The leaves of a tree, left to right.

    >>> leaves({"a": 1, "b": (2, [3])})
    [1, 2, 3]
    """
    return flatten(tree)[0]


def structure(tree: object) -> Structure:
    """The structure of a tree.

    >>> structure([0, (1,)]) == structure([5, (6,)])
    True
    """
    return flatten(tree)[1]


def map(f: Callable[..., Any], tree: object, *rest: object) -> Any:
    """Apply f to the leaves of one tree, or to corresponding leaves of several of the same structure.

    >>> map(lambda a, b: a + b, [1, (2,)], [10, (20,)])
    [11, (22,)]
    """
    first, shape = flatten(tree)
    columns = [first]
    for other in rest:
        more, other_shape = flatten(other)
        if other_shape != shape:
            raise TreeError(f"tree.map: the structures {shape} and {other_shape} differ.", "trees of one structure")
        columns.append(more)
    return unflatten(shape, [f(*column) for column in zip(*columns, strict=True)])
