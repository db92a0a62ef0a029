"""The part of `entry_text.py` that goes through the guards of a call: each a word that tells what, and five more."""

from __future__ import annotations

# What guards ask, in the order of their numbers; number 0 ends them. a, b and c are the first three words behind it.
NAMES = (
    "end",
    "name",  # the value of b in the dict a is c
    "variable",  # the value of the cell a of a closure is c
    "count",  # the container a is of size b
    "pair",  # the next key of the dict a is b, and its value c; the first one if the fourth word is 1
    "element",  # what is at b in the list a is c
    "context",  # the value of the context variable a is c, or has a key like the fourth word, of plain objects
    "attribute",  # the attribute b of a is c
    "alive",  # what the weak reference c tells is there; it is held during the call
    "true",  # the function a gives True for the arguments c; it must be one of C
    "module",  # the register a is what the weak reference c tells; what the fourth word, a dict, has at b is held
    "same",  # the register a is c
    "tuple",  # the register a is of type c, of size b
    "list",
    "dict",
    "of_tuple",  # the register of the fourth word gets what is at b in the register a
    "of_list",
    "of_dict",  # the next one, if its key is b
    "object",  # the register a is of type c
    "of_object",  # the register of the fourth word gets the attribute b of the register a
    # the register a is a tensor of shape b and dtype c, for the place of the table that the fourth word says; its array
    # and what is recorded of it are noted at the fifth word, or nobody asks (-1)
    "tensor",
    "array",  # the same of an array
    # the function c makes a record of the a tensors so noted and of the results: if the fifth word is 0 never, if 1
    # when something is recorded of one of them, if 2 always. Where there is no such function nothing may be to record
    "record",
)
NUMBERS = {name: i for i, name in enumerate(NAMES)}

GUARDS = """
; whether an object is of this very type
define internal i1 @is(ptr %object, ptr %type) {
  %t = API PyObject_Type(ptr %object)
  API Py_DecRef(ptr %t)
  %same = icmp eq ptr %t, %type
  ret i1 %same
}

; whether an attribute is this very object
define internal i1 @has(ptr %object, ptr %name, ptr %value) {
  %v = API PyObject_GetAttr(ptr %object, ptr %name) OR failed
  API Py_DecRef(ptr %v)
  %same = icmp eq ptr %v, %value
  ret i1 %same
failed:
  API PyErr_Clear()
  ret i1 false
}

; take the data of a tensor for the program, if it is of this shape and type, and in one piece
define internal i1 @tensor(ptr %rec, ptr %object, ptr %i) {
  %tensor = LOAD ptr %rec TENSOR
  %isTensor = call i1 @is(ptr %object, ptr %tensor)
  GO no UNLESS %isTensor
  %name = LOAD ptr %rec DATA
  %data = API PyObject_GetAttr(ptr %object, ptr %name) OR bad
  call void @hold(ptr %rec, ptr %data)
  %isLike = call i1 @array(ptr %rec, ptr %data, ptr %i)
  GO no UNLESS %isLike
  %number = LOAD i64 %i 5
  GO yes IF eq i64 %number, -1
  %nodeName = LOAD ptr %rec NODE
  %node = API PyObject_GetAttr(ptr %object, ptr %nodeName) OR bad
  call void @hold(ptr %rec, ptr %node)
  %given = LOAD ptr %rec GIVEN
  %nodes = LOAD ptr %rec NODES
  STORE ptr %data %given %number
  STORE ptr %node %nodes %number
  br label %yes
yes:
  ret i1 true
bad:
  API PyErr_Clear()
  ret i1 false
no:
  ret i1 false
}

; take an array for the program, if it is of this shape and type, and in one piece
define internal i1 @array(ptr %rec, ptr %data, ptr %i) {
  %array = LOAD ptr %rec ARRAY
  %isArray = call i1 @is(ptr %data, ptr %array)
  GO no UNLESS %isArray
  %dtypeName = LOAD ptr %rec DTYPE
  %dtype = LOAD ptr %i 3
  %sameType = call i1 @has(ptr %data, ptr %dtypeName, ptr %dtype)
  GO no UNLESS %sameType
  %shapeName = LOAD ptr %rec SHAPE
  %shape = API PyObject_GetAttr(ptr %data, ptr %shapeName) OR bad
  %wanted = LOAD ptr %i 2
  %equal = API PyObject_RichCompareBool(ptr %shape, ptr %wanted, i32 2)
  API Py_DecRef(ptr %shape)
  GO bad UNLESS eq i32 %equal, 1
  ; an array that is in one piece already (C_CONTIGUOUS, ALIGNED) is its own copy
  %copy = API PyArray_FromArray(ptr %data, ptr null, i32 257) OR bad
  API Py_DecRef(ptr %copy)
  GO no UNLESS eq ptr %copy, %data
  call void @place(ptr %rec, ptr %data, ptr %i, i64 4)
  ret i1 true
bad:
  API PyErr_Clear()
  ret i1 false
no:
  ret i1 false
}

; whether something is recorded of one of the n tensors among the arguments
define internal i1 @recorded(ptr %rec, i64 %n) {
  %nodes = LOAD ptr %rec NODES
  %none = LOAD ptr %rec NONE
  FOR %k TO %n
    %node = LOAD ptr %nodes %k
    GO yes UNLESS eq ptr %node, %none
  END
  ret i1 false
yes:
  ret i1 true
}

; a tuple of n objects; null if there was no memory for it
define internal ptr @tuple(ptr %objects, i64 %n) {
  %tuple = API PyTuple_New(i64 %n) OR failed
  FOR %k TO %n
    %o = LOAD ptr %objects %k
    API Py_IncRef(ptr %o)
    %put = API PyTuple_SetItem(ptr %tuple, i64 %k, ptr %o)
  END
  ret ptr %tuple
failed:
  ret ptr null
}

; the record of the call, by a function; if there is none, an error is left
define internal i1 @record(ptr %rec, ptr %function, i64 %n) {
  %arrays = LOAD ptr %rec GIVEN
  %recorded = LOAD ptr %rec NODES
  %results = LOAD ptr %rec OUTS
  %many = LOAD i64 %rec RESULTS
  %given = call ptr @tuple(ptr %arrays, i64 %n)
  %nodes = call ptr @tuple(ptr %recorded, i64 %n)
  %outs = call ptr @tuple(ptr %results, i64 %many)
  GO out IF eq ptr %given, null
  GO out IF eq ptr %nodes, null
  GO out IF eq ptr %outs, null
  %made = API PyObject_CallFunctionObjArgs(ptr %function, ptr %given, ptr %nodes, ptr %outs, ptr null)
  GO out IF eq ptr %made, null
  call void @hold(ptr %rec, ptr %made)
  STORE ptr %made %rec RECORD
  br label %out
out:
  API Py_DecRef(ptr %given)
  API Py_DecRef(ptr %nodes)
  API Py_DecRef(ptr %outs)
  %record = LOAD ptr %rec RECORD
  %there = icmp ne ptr %record, null
  ret i1 %there
}

; whether all guards hold. If not, there may be an error: of what makes a record
define internal i1 @guarded(ptr %rec) {
  %out = alloca ptr
  %key = alloca ptr
  %next = alloca i64  ; place in a dict
  %none = LOAD ptr %rec NONE
  %first = LOAD ptr %rec GUARDS
  %registers = LOAD ptr %rec REGISTERS
  %pc = alloca ptr
  store ptr %first, ptr %pc
  br label %fetch
fetch:
  %i = load ptr, ptr %pc
  %later = getelementptr i64, ptr %i, i64 6
  store ptr %later, ptr %pc
  %op = LOAD i64 %i 0
  %a = LOAD ptr %i 1
  %b = LOAD ptr %i 2
  %c = LOAD ptr %i 3
  %d = LOAD ptr %i 4
  %size = LOAD i64 %i 2
  %place = LOAD i64 %i 4
  %register = LOAD i64 %i 1
  switch i64 %op, label %no [SWITCH]
name:
  %named = API PyDict_GetItemWithError(ptr %a, ptr %b)
  GO fetch IF eq ptr %named, %c
  br label %clear
variable:
  %inCell = API PyCell_Get(ptr %a)
  API Py_DecRef(ptr %inCell)
  GO fetch IF eq ptr %inCell, %c
  br label %clear
count:
  %many = API PyObject_Size(ptr %a)
  GO fetch IF eq i64 %many, %size
  br label %clear
pair:
  GO follow UNLESS eq i64 %place, 1
  store i64 0, ptr %next
  br label %follow
follow:
  %more = API PyDict_Next(ptr %a, ptr %next, ptr %key, ptr %out)
  GO no IF eq i32 %more, 0
  %foundKey = load ptr, ptr %key
  GO no UNLESS eq ptr %foundKey, %b
  %foundValue = load ptr, ptr %out
  GO fetch IF eq ptr %foundValue, %c
  br label %no
element:
  %listed = API PyList_GetItem(ptr %a, i64 %size) OR clear
  GO fetch IF eq ptr %listed, %c
  br label %no
context:
  %failed = API PyContextVar_Get(ptr %a, ptr null, ptr %out)
  GO clear UNLESS eq i32 %failed, 0
  %state = load ptr, ptr %out
  API Py_DecRef(ptr %state)
  GO fetch IF eq ptr %state, %c
  %keyName = LOAD ptr %rec KEY
  %found1 = API PyObject_GetAttr(ptr %state, ptr %keyName) OR clear
  %alike = API PyObject_RichCompareBool(ptr %found1, ptr %d, i32 2)
  API Py_DecRef(ptr %found1)
  GO fetch IF eq i32 %alike, 1
  br label %clear
attribute:
  %has = call i1 @has(ptr %a, ptr %b, ptr %c)
  GO fetch IF %has
  br label %no
alive:
  %living = API PyObject_CallNoArgs(ptr %c) OR clear
  call void @hold(ptr %rec, ptr %living)
  GO fetch UNLESS eq ptr %living, %none
  br label %no
true:
  %answer = API PyObject_CallObject(ptr %a, ptr %c) OR clear
  API Py_DecRef(ptr %answer)
  %true1 = LOAD ptr %rec TRUE
  GO fetch IF eq ptr %answer, %true1
  br label %no
module:
  %module1 = LOAD ptr %registers %register
  %told = API PyObject_CallNoArgs(ptr %c) OR clear
  API Py_DecRef(ptr %told)
  GO no UNLESS eq ptr %told, %module1
  %parts = API PyDict_GetItemWithError(ptr %d, ptr %b) OR clear
  API Py_IncRef(ptr %parts)
  call void @hold(ptr %rec, ptr %parts)
  br label %fetch
same:
  %it = LOAD ptr %registers %register
  GO fetch IF eq ptr %it, %c
  br label %no
dict:
  store i64 0, ptr %next
  br label %sized
tuple:
  br label %sized
list:
  br label %sized
sized:
  %container = LOAD ptr %registers %register
  %isOfType = call i1 @is(ptr %container, ptr %c)
  GO no UNLESS %isOfType
  %itsSize = API PyObject_Size(ptr %container)
  GO fetch IF eq i64 %itsSize, %size
  br label %clear
of_tuple:
  %tuple2 = LOAD ptr %registers %register
  %inTuple = API PyTuple_GetItem(ptr %tuple2, i64 %size) OR clear
  store ptr %inTuple, ptr %out
  br label %item
of_list:
  %list2 = LOAD ptr %registers %register
  %inList = API PyList_GetItem(ptr %list2, i64 %size) OR clear
  store ptr %inList, ptr %out
  br label %item
of_dict:
  %dict2 = LOAD ptr %registers %register
  %some = API PyDict_Next(ptr %dict2, ptr %next, ptr %key, ptr %out)
  GO no IF eq i32 %some, 0
  %found = load ptr, ptr %key
  GO item IF eq ptr %found, %b
  br label %no
item:
  %value = load ptr, ptr %out
  API Py_IncRef(ptr %value)
  call void @hold(ptr %rec, ptr %value)
  STORE ptr %value %registers %place
  br label %fetch
object:
  %node1 = LOAD ptr %registers %register
  %isOfClass = call i1 @is(ptr %node1, ptr %c)
  GO fetch IF %isOfClass
  br label %no
of_object:
  %node2 = LOAD ptr %registers %register
  %field = API PyObject_GetAttr(ptr %node2, ptr %b) OR clear
  call void @hold(ptr %rec, ptr %field)
  STORE ptr %field %registers %place
  br label %fetch
tensor:
  %tensor1 = LOAD ptr %registers %register
  %isLike = call i1 @tensor(ptr %rec, ptr %tensor1, ptr %i)
  GO fetch IF %isLike
  br label %no
array:
  %array1 = LOAD ptr %registers %register
  %isArray = call i1 @array(ptr %rec, ptr %array1, ptr %i)
  GO fetch IF %isArray
  br label %no
record:
  %when = LOAD i64 %i 5
  GO fetch IF eq i64 %when, 0
  GO wanted IF eq i64 %when, 2
  %any = call i1 @recorded(ptr %rec, i64 %register)
  GO fetch UNLESS %any
  br label %wanted
wanted:
  GO no IF eq ptr %c, null
  %isMade = call i1 @record(ptr %rec, ptr %c, i64 %register)
  GO fetch IF %isMade
  br label %no
clear:
  API PyErr_Clear()
  ret i1 false
no:
  ret i1 false
end:
  ret i1 true
}
""".replace("SWITCH", " ".join(f"i64 {i}, label %{name}" for name, i in NUMBERS.items()))
