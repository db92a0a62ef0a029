"""From a graph to machine code: fuse, plan memory, write LLVM, run. The NumPy evaluator is the meaning.

docs/compiler.md tells the story; here is where things are.

values.py        what is known of a value: a strided view of memory, or an expression not computed yet
order.py         in which order equations are taken
schedule.py      a graph as steps, in three parts: bindings.py (what variables are), fusion.py, emission.py
lowering.py      what each primitive becomes, with loops.py, windows.py, checked.py; text/operations.py: elementwise
complexes/       complex numbers as pairs of real ones
contractions.py  products and convolutions that wait for work on their results
finishing.py     what follows when all is scheduled; memory.py: one arena; donation.py: state in place
steps.py         what steps are; kernels/, products/, convolutions/, attention/, direct/: the native ones
text/            writing LLVM: routines, operations, elementary functions
processor.py     the processor that code is written for; tuning.py: the numbers that speed depends on
machine.py       compiling, and finding what is compiled; llvm.py: LLVM's code generator
runtime.py       the native loop over a program's instructions (runtime_text.py), threads.py: who shares its work
program.py       the compiled graph, to be called; keeping.py: which of them stay; engine.py: the door
"""

from .program import Program

__all__ = ["Program"]
