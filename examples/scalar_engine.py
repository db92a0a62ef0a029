"""Reverse mode from nothing: a scalar that remembers how it was made (the book's exercise of chapter 6).

    python examples/scalar_engine.py

Every `Value` keeps the values that it was computed from, each with the derivative of the result by it.
`backward` visits them in reverse topological order: a value passes its gradient on only when all that use
it have passed theirs. Visiting them in any other order would pass on incomplete gradients, and visiting
every path separately would take exponential time.
"""

from __future__ import annotations

import math


class Value:
    """A number, its gradient, and where it came from."""

    __slots__ = ("data", "grad", "parents")

    def __init__(self, data: float, parents: tuple[tuple[Value, float], ...] = ()) -> None:
        self.data = data
        self.grad = 0.0
        self.parents = parents  # pairs (value, d self / d value)

    def __repr__(self) -> str:
        return f"Value({self.data:g}, grad={self.grad:g})"

    # --- operations: a result, and its derivative by each operand

    def __add__(self, other: Value | float) -> Value:
        other = lift(other)
        return Value(self.data + other.data, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other: Value | float) -> Value:
        other = lift(other)
        return Value(self.data * other.data, ((self, other.data), (other, self.data)))

    def __pow__(self, power: float) -> Value:
        return Value(self.data**power, ((self, power * self.data ** (power - 1)),))

    def exp(self) -> Value:
        result = math.exp(self.data)
        return Value(result, ((self, result),))

    def log(self) -> Value:
        return Value(math.log(self.data), ((self, 1 / self.data),))

    def sin(self) -> Value:
        return Value(math.sin(self.data), ((self, math.cos(self.data)),))

    def tanh(self) -> Value:
        result = math.tanh(self.data)
        return Value(result, ((self, 1 - result**2),))

    def relu(self) -> Value:
        return Value(max(self.data, 0.0), ((self, float(self.data > 0)),))

    # --- the rest follows

    def __neg__(self) -> Value:
        return self * -1.0

    def __sub__(self, other: Value | float) -> Value:
        return self + -lift(other)

    def __truediv__(self, other: Value | float) -> Value:
        return self * lift(other) ** -1

    def __rsub__(self, other: float) -> Value:
        return lift(other) - self

    def __rtruediv__(self, other: float) -> Value:
        return lift(other) / self

    __radd__ = __add__
    __rmul__ = __mul__

    # --- reverse mode

    def backward(self) -> None:
        """Add d self / d v to the gradient of every value v that self was computed from."""
        order = topological(self)
        total = {id(value): 0.0 for value in order}  # apart from .grad, which may hold an earlier pass
        total[id(self)] = 1.0
        for value in reversed(order):
            for parent, derivative in value.parents:
                total[id(parent)] += derivative * total[id(value)]
        for value in order:
            value.grad += total[id(value)]


def lift(x: Value | float) -> Value:
    return x if isinstance(x, Value) else Value(x)


def topological(root: Value) -> list[Value]:
    """All values that root depends on, operands before results. A stack of our own, so depth is no limit."""
    order: list[Value] = []
    seen = {id(root)}
    stack = [(root, iter(root.parents))]
    while stack:
        value, parents = stack[-1]
        for parent, _ in parents:
            if id(parent) not in seen:
                seen.add(id(parent))
                stack.append((parent, iter(parent.parents)))
                break
        else:
            order.append(value)
            stack.pop()
    return order


def main() -> None:
    x1, x2 = Value(2.0), Value(5.0)
    y = x1.log() + x1 * x2 - x2.sin()
    y.backward()
    print(f"y = log(x1) + x1 x2 - sin(x2) = {y.data:.3f},  dy/dx1 = {x1.grad:.3f},  dy/dx2 = {x2.grad:.3f}")

    # the diamond: a is used by b and by c, b by c and by y
    x = Value(3.0)
    a = x + 1
    b = a * a
    c = a * b
    (b + c).backward()
    print(f"diamond: dy/dx = {x.grad:g}, by hand 2a + 3a² = {2 * a.data + 3 * a.data**2:g}")

    x = Value(1.0)
    doubled = x
    for _ in range(30):
        doubled = doubled + doubled
    doubled.backward()
    print(f"30 doublings: dy/dx = {x.grad:g} = 2^30, in {len(topological(doubled))} steps for 2^30 paths")

    # one neuron learns the logical or
    data = [((0.0, 0.0), 0.0), ((0.0, 1.0), 1.0), ((1.0, 0.0), 1.0), ((1.0, 1.0), 1.0)]
    weights = [Value(0.1), Value(-0.2), Value(0.0)]
    for step in range(201):
        loss = Value(0.0)
        for (p, q), target in data:
            output = (weights[0] * p + weights[1] * q + weights[2]).tanh()
            loss = loss + (output - target) ** 2
        for w in weights:
            w.grad = 0.0
        loss.backward()
        for w in weights:
            w.data -= 0.2 * w.grad
        if step % 100 == 0:
            print(f"neuron, step {step:3d}: loss {loss.data:.4f}")


if __name__ == "__main__":
    main()
