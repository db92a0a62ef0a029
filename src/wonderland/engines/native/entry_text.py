"""The way into a program and out again as LLVM's text: a function for CPython, of CPython's own interface.

It is called with the arguments of a compiled function. First it takes the lock of the program and makes the arrays of
the results. Then it goes through *guards* (`entry_guards.py`), instructions of six words that say what must be as it
was; the addresses of the arguments' data go into the program's table on the way. If one does not hold, nothing has
happened and it returns the object `missed`. Else it runs the program without the interpreter's lock, and wraps the
results, which know the record of the call if it is to be differentiated later. From the last guards to the run nothing
is called that could run code of Python's, so that what they have seen stays true: neither another thread, nor a signal,
nor the garbage collector comes in between.

Nothing here knows how an object is laid out: all is asked of functions of CPython's and NumPy's C interfaces. The text
has the shorthands of `entry_shorthand.py`.
"""

from __future__ import annotations

from .entry_guards import GUARDS
from .entry_shorthand import expanded

NOTHING, TENSOR, TUPLE = range(3)  # forms of results

CALL = """
; put one more reference among those to be given back at the end
define internal void @hold(ptr %rec, ptr %object) {
  %n = LOAD i64 %rec HOLDS
  %held = LOAD ptr %rec HELD
  STORE ptr %object %held %n
  %n1 = add i64 %n, 1
  STORE i64 %n1 %rec HOLDS
  ret void
}

; give back references
define internal void @drop(ptr %objects, i64 %n) {
  FOR %k TO %n
    %o = LOAD ptr %objects %k
    API Py_DecRef(ptr %o)
  END
  ret void
}

; the end of a call
define internal void @end(ptr %rec) {
  %n = LOAD i64 %rec HOLDS
  %held = LOAD ptr %rec HELD
  call void @drop(ptr %held, i64 %n)
  STORE i64 0 %rec BUSY
  ret void
}

; the end of one without results
define internal void @give_up(ptr %rec) {
  %made = LOAD i64 %rec MADE
  %outs = LOAD ptr %rec OUTS
  call void @drop(ptr %outs, i64 %made)
  call void @end(ptr %rec)
  ret void
}

; whether a lock could be taken at once
define internal i1 @take(ptr %rec, ptr %acquire) {
  %atOnce = LOAD ptr %rec AT_ONCE
  %true = LOAD ptr %rec TRUE
  %r = API PyObject_CallObject(ptr %acquire, ptr %atOnce) OR failed
  API Py_DecRef(ptr %r)
  %got = icmp eq ptr %r, %true
  ret i1 %got
failed:
  API PyErr_Clear()
  ret i1 false
}

; release a lock, whatever error there is already
define internal void @release(ptr %release) {
  %a = alloca ptr
  %b = alloca ptr
  %c = alloca ptr
  API PyErr_Fetch(ptr %a, ptr %b, ptr %c)
  %r = API PyObject_CallNoArgs(ptr %release)
  API Py_DecRef(ptr %r)
  %x = load ptr, ptr %a
  %y = load ptr, ptr %b
  %z = load ptr, ptr %c
  API PyErr_Restore(ptr %x, ptr %y, ptr %z)
  ret void
}

; the address of an array's data into the table, at the place that the n-th word from i on says
define internal void @place(ptr %rec, ptr %array, ptr %i, i64 %n) {
  %zeros = LOAD ptr %rec ZEROS
  %address = API PyArray_GetPtr(ptr %array, ptr %zeros)
  %table = LOAD ptr %rec TABLE
  %place = LOAD i64 %i %n
  STORE ptr %address %table %place
  ret void
}

; arrays for the results; whether there was memory for them
define internal i1 @results(ptr %rec) {
  %n = LOAD i64 %rec RESULTS
  %kinds = LOAD ptr %rec KINDS
  %outs = LOAD ptr %rec OUTS
  FOR %k TO %n
    %offset = mul i64 %k, 7
    %i = getelementptr i64, ptr %kinds, i64 %offset
    %make = LOAD ptr %i 4
    GO asked UNLESS eq ptr %make, null
    %axes = LOAD i32 %i 0
    %sizes = LOAD ptr %i 1
    %dtype = LOAD ptr %i 2
    API Py_IncRef(ptr %dtype)
    %new = API PyArray_Empty(i32 %axes, ptr %sizes, ptr %dtype, i32 0) OR failed
    STORE ptr %new %outs %k
    br label %there
asked:
    %arguments = LOAD ptr %i 5
    %given = API PyObject_CallObject(ptr %make, ptr %arguments) OR failed
    STORE ptr %given %outs %k
    br label %there
there:
    %array = LOAD ptr %outs %k
    call void @place(ptr %rec, ptr %array, ptr %i, i64 3)
    %k1 = add i64 %k, 1
    STORE i64 %k1 %rec MADE
  END
  ret i1 true
failed:
  ret i1 false
}

; the run is over: what others have put into its cells meanwhile is replaced by what it has written, if it has begun to
define internal void @settle(ptr %rec, ptr %runs) {
  %call = LOAD ptr %rec CALL
  %replaced = LOAD ptr %rec REPLACED
  %spared = LOAD ptr %rec SPARED
  %pb = LOAD ptr %rec BEGUN
  %begun = load i64, ptr %pb
  GO over IF eq i64 %begun, 0
  %n = API PyDict_Size(ptr %replaced)
  GO over IF eq i64 %n, 0
  %settling = LOAD ptr %rec SETTLING
  %exhaust = LOAD ptr %rec EXHAUST
  %work = API PyIter_Next(ptr %settling) OR over
  %r = API PyObject_CallFunctionObjArgs(ptr %exhaust, ptr %work, ptr null)
  API Py_DecRef(ptr %r)
  API Py_DecRef(ptr %work)
  br label %over
over:
  %gone = API PySet_Discard(ptr %runs, ptr %call)
  API PyDict_Clear(ptr %replaced)
  API PyDict_Clear(ptr %spared)
  API PyErr_Clear()
  ret void
}

; note in a tensor that the record has made it, if there is one and this result may be differentiated
define internal i1 @note(ptr %rec, ptr %tensor, ptr %number) {
  %name = LOAD ptr %rec NODE
  %none = LOAD ptr %rec NONE
  %record = LOAD ptr %rec RECORD
  GO nothing IF eq ptr %record, null
  GO nothing IF eq ptr %number, null
  %pair = API PyTuple_New(i64 2) OR failed
  API Py_IncRef(ptr %record)
  API Py_IncRef(ptr %number)
  %a = API PyTuple_SetItem(ptr %pair, i64 0, ptr %record)
  %b = API PyTuple_SetItem(ptr %pair, i64 1, ptr %number)
  %x = API PyObject_SetAttr(ptr %tensor, ptr %name, ptr %pair)
  API Py_DecRef(ptr %pair)
  ret i1 true
nothing:
  %y = API PyObject_SetAttr(ptr %tensor, ptr %name, ptr %none)
  ret i1 true
failed:
  ret i1 false
}

; a tensor for every array of the results, in its place
define internal i1 @wrap(ptr %rec) {
  %n = LOAD i64 %rec RESULTS
  %kinds = LOAD ptr %rec KINDS
  %outs = LOAD ptr %rec OUTS
  %type = LOAD ptr %rec TENSOR
  %nothing = LOAD ptr %rec NO_ARGUMENTS
  %data = LOAD ptr %rec DATA
  FOR %k TO %n
    %array = LOAD ptr %outs %k
    %t = API PyType_GenericNew(ptr %type, ptr %nothing, ptr null) OR failed
    %x = API PyObject_SetAttr(ptr %t, ptr %data, ptr %array)
    API Py_DecRef(ptr %array)
    STORE ptr %t %outs %k
    %offset = mul i64 %k, 7
    %i = getelementptr i64, ptr %kinds, i64 %offset
    %number = LOAD ptr %i 6
    %noted = call i1 @note(ptr %rec, ptr %t, ptr %number)
    GO failed UNLESS %noted
  END
  ret i1 true
failed:
  ret i1 false
}

; what the function returns, of the tensors
define internal ptr @formed(ptr %rec) {
  %n = LOAD i64 %rec RESULTS
  %outs = LOAD ptr %rec OUTS
  %form = LOAD i64 %rec FORM
  switch i64 %form, label %several [i64 0, label %nothing i64 1, label %alone]
nothing:
  %none = LOAD ptr %rec NONE
  API Py_IncRef(ptr %none)
  ret ptr %none
alone:
  %only = load ptr, ptr %outs
  ret ptr %only
several:
  %tuple = API PyTuple_New(i64 %n) OR failed
  FOR %k TO %n
    %o = LOAD ptr %outs %k
    %put = API PyTuple_SetItem(ptr %tuple, i64 %k, ptr %o)
  END
  ret ptr %tuple
failed:
  ret ptr null
}

define ptr @enter(ptr %self, ptr %args, i64 %nargs) {
  %number = API PyTuple_GetItem(ptr %self, i64 0)
  %rec = API PyLong_AsVoidPtr(ptr %number)
  %missed = LOAD ptr %rec MISSED
  %busy = LOAD i64 %rec BUSY
  GO refuse UNLESS eq i64 %busy, 0
  %count = LOAD i64 %rec ARGUMENTS
  GO refuse UNLESS eq i64 %count, %nargs
  STORE i64 1 %rec BUSY
  STORE i64 0 %rec HOLDS
  STORE i64 0 %rec MADE
  STORE ptr null %rec RECORD
  %registers = LOAD ptr %rec REGISTERS
  FOR %k TO %nargs
    %argument = LOAD ptr %args %k
    STORE ptr %argument %registers %k
  END
  %take = LOAD ptr %rec TAKE
  %mine = call i1 @take(ptr %rec, ptr %take)
  GO miss UNLESS %mine
  %release = LOAD ptr %rec RELEASE
  %there = call i1 @results(ptr %rec)
  GO unlock UNLESS %there
  %ok = call i1 @guarded(ptr %rec)
  GO leave UNLESS %ok
  ; no other thread runs now; but one may have stopped where it holds the lock of all calls
  %try = LOAD ptr %rec TRY
  %calm = call i1 @take(ptr %rec, ptr %try)
  GO leave UNLESS %calm
  %open = LOAD ptr %rec OPEN
  call void @release(ptr %open)
  %pb = LOAD ptr %rec BEGUN
  store i64 0, ptr %pb
  %status = LOAD ptr %rec STATUS
  %bytes = LOAD i64 %rec STATUS_BYTES
  %wiped = call ptr @memset(ptr %status, i32 0, i64 %bytes)
  %runs = LOAD ptr %rec RUNS
  %stateless = icmp eq ptr %runs, null
  GO run IF %stateless
  %call = LOAD ptr %rec CALL
  %added = API PySet_Add(ptr %runs, ptr %call)
  GO unlock UNLESS eq i32 %added, 0
  br label %run
run:
  %f = LOAD ptr %rec RUN
  %table = LOAD ptr %rec TABLE
  %code = LOAD ptr %rec CODE
  %start = LOAD i64 %rec START
  %pool = LOAD ptr %rec POOL
  %thread = API PyEval_SaveThread()
  %at = call i64 %f(ptr %table, ptr %code, i64 %start, ptr %pool, i64 0, ptr null)
  API PyEval_RestoreThread(ptr %thread)
  GO ran IF %stateless
  call void @settle(ptr %rec, ptr %runs)
  br label %ran
ran:
  GO wrong UNLESS eq i64 %at, -1
  call void @release(ptr %release)
  %wrapped = call i1 @wrap(ptr %rec)
  GO fail UNLESS %wrapped
  %result = call ptr @formed(ptr %rec)
  GO fail IF eq ptr %result, null
  STORE i64 1 %rec USED
  call void @end(ptr %rec)
  ret ptr %result
wrong:
  %complain = LOAD ptr %rec COMPLAIN
  %said = API PyObject_CallNoArgs(ptr %complain)
  API Py_DecRef(ptr %said)
  br label %unlock
unlock:
  call void @release(ptr %release)
  br label %fail
fail:
  call void @give_up(ptr %rec)
  ret ptr null
leave:
  call void @release(ptr %release)
  %error = API PyErr_Occurred()
  GO fail UNLESS eq ptr %error, null
  br label %miss
miss:
  call void @give_up(ptr %rec)
  br label %refuse
refuse:
  API Py_IncRef(ptr %missed)
  ret ptr %missed
}

@api = internal global ptr null
declare ptr @memset(ptr, i32, i64)

; note where the functions of the interfaces are
define void @use(ptr %table) {
  store ptr %table, ptr @api
  ret void
}
"""


def text() -> str:
    """The module."""
    return "\n".join(expanded((GUARDS + CALL).splitlines())) + "\n"
