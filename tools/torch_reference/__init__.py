"""Writes tests/reference/*.json: what PyTorch computes in float64 for everything that Wonderland shares with it.

The tests only read the files, so they need no PyTorch. To make the files again, after a change of a table here:

    python -m venv torch && torch/bin/pip install torch==2.13.0 numpy
    PYTHONPATH=src torch/bin/python -m tools.torch_reference [family ...]

The tables of cases, one file per family, are data that can be imported without PyTorch: `activations`, `layers`,
`convolutions`, `normalization`, `recurrent`, `losses` (modules: outputs, gradients, buffers), `optimizers` (ten steps
of each rule, schedules, clipping), `initialization` and `transformers`. `modules.py`, `rules.py` and
`attention_passes.py` do the computing. Everything is stored as
Wonderland has it: channels last, weights (in, out), kernels (*kernel, in / groups, out), those of transposed
convolutions (*kernel, out / groups, in). Every case draws its numbers from a seed of its own, so that a new one
changes no other.
"""
