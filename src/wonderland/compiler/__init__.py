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
explain.py     what it does, as a table
"""

from .program import Program

__all__ = ["Program"]
