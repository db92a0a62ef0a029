"""Writing LLVM: values and memory in a routine, elementwise operations, elementary functions on vectors."""
