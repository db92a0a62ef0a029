"""From a graph to machine code: fuse, plan memory, write LLVM, run. The NumPy evaluator is the meaning.

values.py      what is known of a value: a strided view of memory, or an expression not computed yet
schedule.py    a graph as steps: loop kernels with everything elementwise fused in, matrix products, calls into NumPy
kernels.py     the LLVM text of a loop kernel
operations.py  elementwise primitives as LLVM; functions/: exp, log and relatives on vectors
builder.py     writing LLVM's text
memory.py      one arena for all intermediate values
library.py     matrix products of the BLAS library that NumPy brings along
machine.py     the host's processor and LLVM's code generator
program.py     the compiled graph, to be called
labels.py      what steps do in a user's words
listing.py     the steps of a program as records: multiply-adds, bytes, where they come from
profiling.py   how long they take, and what the machine could do
picture.py     both as a picture
explain.py     all of this for a function, as a table
"""

from .program import Program

__all__ = ["Program"]
