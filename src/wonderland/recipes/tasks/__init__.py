"""Tasks: what a run learns from its data. A model says which one it is for."""

from .forecasting import Forecasting
from .graph_sets import GraphSets
from .language import Language
from .links import Links
from .masked import Masked
from .nodes import Nodes
from .pairs import Pairs
from .reconstruction import Reconstruction
from .supervised import Supervised
from .task import Prepared, Task
from .texts import Texts

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        *(Supervised(), Reconstruction(), Forecasting(), Language(), Masked(), Pairs(), Texts()),
        *(Nodes(), GraphSets(), Links()),
    )
}

__all__ = ["TASKS", "Prepared", "Task"]
