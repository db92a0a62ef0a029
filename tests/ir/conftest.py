"""The graphs that tests of graphs run are verified, too."""

from tests.transforms.conftest import verified_graphs

__all__ = ["verified_graphs"]
