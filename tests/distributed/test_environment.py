"""What the environment variables of launchers say."""

from __future__ import annotations

import pytest

from wonderland.distributed.environment import find_place
from wonderland.errors import InputError

MASTER = {"MASTER_ADDR": "a", "MASTER_PORT": "29500"}
LAUNCHERS = [
    ({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", **MASTER}, (1, 4, 1, 2, "a:29500")),
    # torchrun listens at the port itself
    ({"RANK": "0", "WORLD_SIZE": "2", **MASTER, "TORCHELASTIC_RUN_ID": "none"}, (0, 2, 0, 1, "a:29501")),
    ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3"}, (2, 3, 0, 1, None)),
    (
        {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"},
        (1, 2, 1, 2, None),
    ),
    ({"JOB_COMPLETION_INDEX": "3", "WORLD_SIZE": "4", **MASTER}, (3, 4, 0, 1, "a:29500")),
    (
        {
            "SLURM_PROCID": "5",
            "SLURM_NTASKS": "8",
            "SLURM_STEP_NUM_TASKS": "8",
            "SLURM_LOCALID": "1",
            "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
            "SLURM_JOB_ID": "7",
            "SLURM_STEP_NODELIST": "node[03-04]",
        },
        (5, 8, 1, 4, "node03:61447"),
    ),
]


@pytest.mark.parametrize("variables, wanted", LAUNCHERS)
def test_each_launcher_is_understood(variables, wanted):
    place = find_place(variables)
    assert place is not None
    assert (place.rank, place.size, place.local_rank, place.local_size, place.coordinator) == wanted


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"WORLD_SIZE": "4"},
        {"JOB_COMPLETION_INDEX": "0"},  # a job of Kubernetes whose tasks have nothing to do with each other
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "8"},  # the script around the steps, which runs once
    ],
)
def test_a_process_alone(variables):
    assert find_place(variables) is None


@pytest.mark.parametrize(
    "variables, words",
    [
        ({"RANK": "0"}, "WORLD_SIZE is not"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "ranks 0 to 1"),
        ({"RANK": "one", "WORLD_SIZE": "2"}, "RANK='one'"),
        ({"RANK": "0", "WORLD_SIZE": "0"}, "1 or more"),
        ({"RANK": "0", "WORLD_SIZE": "2", "WONDERLAND_COORDINATOR": "nowhere"}, "host:port"),
    ],
)
def test_odd_variables_are_refused(variables, words):
    with pytest.raises(InputError, match=words):
        find_place(variables)
