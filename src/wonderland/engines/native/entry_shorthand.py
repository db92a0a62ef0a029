"""Functions of C that work with objects of Python's, written as LLVM's text but for some shorthands.

%r = API name(...)              call a function of the interfaces; their addresses are in a table
%r = API name(...) OR there     and go there if it returns null
%v = LOAD type base n           the n-th word from a base on; words of the record that describes a call (`entry.py`)
STORE type v base n             have names, see `WORDS`
GO there IF condition           a variable, or a comparison: eq ptr %a, %b
FOR %k TO %n ... END            k from 0 to n - 1
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# name: what it returns
PYTHON = {
    "PyCell_Get": "ptr",
    "PyContextVar_Get": "i32",
    "PyDict_Clear": "void",
    "PyDict_GetItemWithError": "ptr",
    "PyDict_Next": "i32",
    "PyDict_Size": "i64",
    "PyErr_Clear": "void",
    "PyErr_Fetch": "void",
    "PyErr_Occurred": "ptr",
    "PyErr_Restore": "void",
    "PyEval_RestoreThread": "void",
    "PyEval_SaveThread": "ptr",
    "PyIter_Next": "ptr",
    "PyList_GetItem": "ptr",
    "PyLong_AsVoidPtr": "ptr",
    "PyObject_CallFunctionObjArgs": "ptr (ptr, ...)",
    "PyObject_CallNoArgs": "ptr",
    "PyObject_CallObject": "ptr",
    "PyObject_GetAttr": "ptr",
    "PyObject_RichCompareBool": "i32",
    "PyObject_SetAttr": "i32",
    "PyObject_Size": "i64",
    "PyObject_Type": "ptr",
    "PySet_Add": "i32",
    "PySet_Discard": "i32",
    "PyTuple_GetItem": "ptr",
    "PyTuple_New": "ptr",
    "PyTuple_SetItem": "i32",
    "PyType_GenericNew": "ptr",
    "Py_DecRef": "void",
    "Py_IncRef": "void",
}
# name: what it returns, and its place in NumPy's table of functions
NUMPY = {
    "PyArray_Empty": ("ptr", 184),
    "PyArray_FromArray": ("ptr", 109),
    "PyArray_GetPtr": ("ptr", 160),
}
RETURNS = PYTHON | {name: result for name, (result, _) in NUMPY.items()}

# The words of a record.
WORDS = (
    "BUSY",  # whether a call is going on
    "USED",  # whether one has succeeded since this was wiped
    "ARGUMENTS",  # how many
    "GUARDS",
    "MISSED",
    "REGISTERS",  # objects that guards look at; the arguments come first
    "HELD",  # references to be given back at the end
    "HOLDS",  # how many
    "TABLE",
    "RUN",  # the function that runs programs
    "CODE",
    "START",  # the instruction to begin with
    "POOL",
    "BEGUN",  # the address of the word that tells whether state is being overwritten
    "STATUS",  # where checks leave what they find
    "STATUS_BYTES",
    "RESULTS",  # how many
    # of the results, seven words each: axes, sizes, dtype, place in the table; or a function and its arguments; and its
    # number, as an object, if it may be differentiated
    "KINDS",
    "OUTS",  # the results themselves
    "MADE",  # how many of them are there
    "GIVEN",  # the arrays of the tensors among the arguments, if calls may be recorded,
    "NODES",  # and what is recorded of these tensors
    "RECORD",  # that of this call; null: nothing is recorded
    "FORM",  # of the result: None, a tensor, or a tuple of them
    "TRY",  # functions that take and release the lock of all calls
    "OPEN",
    "TAKE",  # and that of the program
    "RELEASE",
    "RUNS",  # the set of the runs that are going on; null: there is no state
    "CALL",  # this one,
    "REPLACED",  # and its fields
    "SPARED",
    "SETTLING",
    "EXHAUST",  # goes through an iterator
    "COMPLAIN",  # raises the error that the program has found
    "TENSOR",  # types
    "ARRAY",
    "DATA",  # names of attributes
    "NODE",
    "DTYPE",
    "SHAPE",
    "KEY",
    "NONE",  # objects
    "TRUE",
    "NO_ARGUMENTS",  # ()
    "AT_ONCE",  # (False,)
    "ZEROS",  # as many as an array has axes at most
)


def expanded(lines: Iterable[str]) -> list[str]:
    """LLVM's text, without shorthands."""
    done: list[str] = []
    block = ""  # that we are in
    loops: list[tuple[str, str, str, int]] = []  # around us: the counter, its end, the block before, the first line
    for n, line in enumerate(lines):
        if line.startswith("define"):
            block = "entry"
            done += [line, "entry:", "  %api = load ptr, ptr @api"]
        elif found := re.fullmatch(r"(\w+):", line):
            block = found[1]
            done.append(line)
        elif found := re.fullmatch(r" *(?:(%\w+) = )?API (\w+)\((.*)\)(?: OR (\w+))?", line):
            result, name, arguments, otherwise = found.groups()
            done += [
                f"  %p{n} = getelementptr ptr, ptr %api, i64 {[*RETURNS].index(name)}",
                f"  %f{n} = load ptr, ptr %p{n}",
                f"  {result + ' = ' if result else ''}call {RETURNS[name]} %f{n}({arguments})",
            ]
            if otherwise:
                done += [f"  %c{n} = icmp eq ptr {result}, null", f"  br i1 %c{n}, label %{otherwise}, label %b{n}"]
                block = f"b{n}"
                done.append(f"{block}:")
        elif found := re.fullmatch(r" *(%\w+) = LOAD (\w+) (%\w+) (\S+)", line):
            result, kind, base, place = found.groups()
            done += [_place(n, base, place), f"  {result} = load {kind}, ptr %p{n}"]
        elif found := re.fullmatch(r" *STORE (\w+ \S+) (%\w+) (\S+)", line):
            value, base, place = found.groups()
            done += [_place(n, base, place), f"  store {value}, ptr %p{n}"]
        elif found := re.fullmatch(r" *GO (\w+) (IF|UNLESS) (.+)", line):
            there, sense, condition = found.groups()
            if not condition.startswith("%"):
                done.append(f"  %c{n} = icmp {condition}")
                condition = f"%c{n}"
            ways = (there, f"b{n}") if sense == "IF" else (f"b{n}", there)
            done += [f"  br i1 {condition}, label %{ways[0]}, label %{ways[1]}", f"b{n}:"]
            block = f"b{n}"
        elif found := re.fullmatch(r" *FOR (%\w+) TO (%\w+)", line):
            done += [f"  br label %for{n}", f"for{n}:"]
            loops.append((found[1], found[2], block, n))
            done.append("")  # the counter, when the last block is known
            done += [f"  %c{n} = icmp slt i64 {found[1]}, {found[2]}", f"  br i1 %c{n}, label %b{n}, label %done{n}"]
            done.append(f"b{n}:")
            block = f"b{n}"
        elif line.strip() == "END":
            counter, _, before, first = loops.pop()
            done[done.index(f"for{first}:") + 1] = f"  {counter} = phi i64 [0, %{before}], [%next{first}, %{block}]"
            done += [f"  %next{first} = add i64 {counter}, 1", f"  br label %for{first}", f"done{first}:"]
            block = f"done{first}"
        else:
            done.append(line)
    return done


def _place(n: int, base: str, place: str) -> str:
    index = place if place[0] in "%0123456789" else WORDS.index(place)
    return f"  %p{n} = getelementptr i64, ptr {base}, i64 {index}"
