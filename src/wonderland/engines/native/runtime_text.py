"""The native loop that runs programs and hands out chunks, as LLVM text.

It is translated as it stands (`light` in `machine.py`), where no register lives from block to block: so each case of
the loop reads the words of its instruction where it needs them. `%v = WORD type n` is the n-th word of an instruction,
and `%v = PLACE n` the address in the table that it tells.
"""

from __future__ import annotations

import re

CLOSED = 1 << 62  # the counter of chunks while there is no work

LINE = 8  # words of a cache line
# Words of the state that threads share; what is written often has a cache line of its own.
NEXT, ACTIVE, OWNER, SLEEPERS, STOP = 0, 8, 16, 24, 32
ROUTINE, TABLE, SLOTS, CHUNKS = 40, 41, 42, 43
MUTEX, CONDITION, SIZE = 48, 64, 96

PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
PAUSE["arm64"] = PAUSE["aarch64"]


def text(paused: int, triple: str) -> str:
    """The text; a loop that takes long returns `paused` minus its position."""
    declared, pause = PAUSE.get(triple.split("-")[0], ("", ""))

    def word(name: str, place: int) -> str:
        return f"  %{name} = getelementptr i64, ptr %pool, i64 {place}\n"

    fields = "".join(
        word(name, place)
        for name, place in [
            ("next", NEXT),
            ("active", ACTIVE),
            ("owner", OWNER),
            ("sleepers", SLEEPERS),
            ("stop", STOP),
            ("routine", ROUTINE),
            ("table", TABLE),
            ("slots", SLOTS),
            ("chunks", CHUNKS),
            ("mutex", MUTEX),
            ("condition", CONDITION),
        ]
    )
    unfolded = re.sub(
        r"(%\w+) = PLACE (\d)", r"\1.n = WORD i64 \2\n  \1 = getelementptr i64, ptr %table, i64 \1.n", TEXT
    )
    unfolded = re.sub(
        r"(%[\w.]+) = WORD (\w+) (\d)", r"\1.p = getelementptr i64, ptr %i, i64 \3\n  \1 = load \2, ptr \1.p", unfolded
    )
    return (
        unfolded.replace("; FIELDS\n", fields)
        .replace("; PAUSE", pause)
        .replace("; DECLARE PAUSE", declared)
        .replace("CLOSED", str(CLOSED))
        .replace("PAUSED", str(paused))
    )


TEXT = r"""
; DECLARE PAUSE
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @clock_gettime(i32, ptr)

; take chunks of the present work until there are none left
define internal void @take(ptr %pool) {
; FIELDS
  br label %more
more:
  %c = atomicrmw add ptr %next, i64 1 acq_rel
  %n = load i64, ptr %chunks
  %some = icmp slt i64 %c, %n
  br i1 %some, label %work, label %out
work:
  %f = load ptr, ptr %routine
  %t = load ptr, ptr %table
  %s = load ptr, ptr %slots
  call void %f(ptr %t, ptr %s, i64 %c)
  br label %more
out:
  ret void
}

define void @worker(ptr %pool) {
entry:
; FIELDS
  br label %idle
idle:
  %k = phi i64 [0, %entry], [%k2, %wait], [0, %work], [0, %woken]
  %st = load atomic i64, ptr %stop acquire, align 8
  %stopping = icmp ne i64 %st, 0
  br i1 %stopping, label %out, label %look
look:
  %c = load atomic i64, ptr %next monotonic, align 8
  %n = load atomic i64, ptr %chunks monotonic, align 8
  %some = icmp slt i64 %c, %n
  br i1 %some, label %work, label %wait
work:
  %a = atomicrmw add ptr %active, i64 1 seq_cst
  call void @take(ptr %pool)
  %b = atomicrmw sub ptr %active, i64 1 release
  br label %idle
wait:
  ; PAUSE
  %k2 = add i64 %k, 1
  %tired = icmp sgt i64 %k2, 4000
  br i1 %tired, label %sleep, label %idle
sleep:
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %s1 = atomicrmw add ptr %sleepers, i64 1 seq_cst
  br label %check
check:
  %st2 = load atomic i64, ptr %stop seq_cst, align 8
  %c2 = load atomic i64, ptr %next seq_cst, align 8
  %closed = icmp sge i64 %c2, CLOSED
  %going = icmp eq i64 %st2, 0
  %stay = and i1 %closed, %going
  br i1 %stay, label %doze, label %woken
doze:
  %w = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %check
woken:
  %s2 = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %idle
out:
  ret void
}

; let the threads end
define void @stop(ptr %pool) {
; FIELDS
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i64 1, ptr %stop seq_cst, align 8
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}

define internal void @serial(ptr %routine, ptr %table, ptr %slots, i64 %chunks) {
entry:
  br label %more
more:
  %c = phi i64 [0, %entry], [%c2, %more]
  call void %routine(ptr %table, ptr %slots, i64 %c)
  %c2 = add i64 %c, 1
  %some = icmp slt i64 %c2, %chunks
  br i1 %some, label %more, label %out
out:
  ret void
}

define internal void @parallel(ptr %pool, ptr %f, ptr %t, ptr %s, i64 %n) {
; FIELDS
  %got = cmpxchg ptr %owner, i64 0, i64 1 acq_rel monotonic
  %mine = extractvalue { i64, i1 } %got, 1
  br i1 %mine, label %publish, label %alone
alone:
  call void @serial(ptr %f, ptr %t, ptr %s, i64 %n)
  ret void
publish:
  store ptr %f, ptr %routine
  store ptr %t, ptr %table
  store ptr %s, ptr %slots
  store i64 %n, ptr %chunks
  store atomic i64 0, ptr %next seq_cst, align 8
  %sl = load atomic i64, ptr %sleepers seq_cst, align 8
  %any = icmp ne i64 %sl, 0
  br i1 %any, label %wake, label %join
wake:
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %br = call i32 @pthread_cond_broadcast(ptr %condition)
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %join
join:
  call void @take(ptr %pool)
  %x = atomicrmw xchg ptr %next, i64 CLOSED seq_cst
  br label %wait
wait:
  %k = phi i64 [0, %join], [%k2, %again], [0, %yield]
  %a = load atomic i64, ptr %active acquire, align 8
  %busy = icmp ne i64 %a, 0
  br i1 %busy, label %spin, label %done
spin:
  %long = icmp sgt i64 %k, 10000
  br i1 %long, label %yield, label %again
again:
  ; PAUSE
  %k2 = add i64 %k, 1
  br label %wait
yield:
  %y = call i32 @sched_yield()
  br label %wait
done:
  store atomic i64 0, ptr %owner release, align 8
  ret void
}

; put the addresses of NumPy's arrays into the table, from a list of the objects; the flags that all of them have
define i64 @bind(ptr %list, i64 %n, ptr %places, ptr %table, ptr %flags, i64 %inside, i64 %at) {
entry:
  %items = getelementptr i8, ptr %list, i64 %inside
  %objects = load ptr, ptr %items
  %none = icmp eq i64 %n, 0
  br i1 %none, label %out, label %more
more:
  %i = phi i64 [0, %entry], [%j, %more]
  %all = phi i64 [-1, %entry], [%both, %more]
  %po = getelementptr ptr, ptr %objects, i64 %i
  %o = load ptr, ptr %po
  %pd = getelementptr i8, ptr %o, i64 %at
  %d = load i64, ptr %pd
  %pp = getelementptr i64, ptr %places, i64 %i
  %p = load i64, ptr %pp
  %pt = getelementptr i64, ptr %table, i64 %p
  store i64 %d, ptr %pt
  %pf = getelementptr i8, ptr %pd, i64 48
  %f = load i32, ptr %pf
  %fw = zext i32 %f to i64
  %pg = getelementptr i64, ptr %flags, i64 %i
  store i64 %fw, ptr %pg
  %both = and i64 %all, %fw
  %j = add i64 %i, 1
  %some = icmp slt i64 %j, %n
  br i1 %some, label %more, label %out
out:
  %result = phi i64 [-1, %entry], [%both, %more]
  ret i64 %result
}

define internal i64 @now() {
  %t = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 1, ptr %t)
  %s = load i64, ptr %t
  %q = getelementptr i64, ptr %t, i64 1
  %n = load i64, ptr %q
  %m = mul i64 %s, 1000000000
  %v = add i64 %m, %n
  ret i64 %v
}

; all chunks, by the threads of the pool if there is one
define internal void @share(ptr %pool, ptr %f, ptr %t, ptr %s, i64 %n) {
  %alone = icmp eq ptr %pool, null
  %one = icmp eq i64 %n, 1
  %here = or i1 %alone, %one
  br i1 %here, label %inorder, label %fork
inorder:
  call void @serial(ptr %f, ptr %t, ptr %s, i64 %n)
  ret void
fork:
  call void @parallel(ptr %pool, ptr %f, ptr %t, ptr %s, i64 %n)
  ret void
}

; the same, and the nanoseconds that it takes added up
define internal void @measure(ptr %pool, ptr %f, ptr %t, ptr %s, i64 %n, ptr %spent) {
  %before = call i64 @now()
  call void @share(ptr %pool, ptr %f, ptr %t, ptr %s, i64 %n)
  %after = call i64 @now()
  %took = sub i64 %after, %before
  %sofar = load i64, ptr %spent
  %total = add i64 %sofar, %took
  store i64 %total, ptr %spent
  ret void
}

define i64 @run(ptr %table, ptr %code, i64 %start, ptr %pool, i64 %profile, ptr %begun) {
entry:
  %at = alloca i64
  store i64 %start, ptr %at
  %ticks = alloca i64
  %since = alloca i64
  store i64 0, ptr %ticks
  store i64 0, ptr %since
  %pausing = icmp ne ptr %begun, null
  %untimed = icmp eq i64 %profile, 0
  br label %fetch
fetch:
  %pc = load i64, ptr %at
  %pc1 = add i64 %pc, 1
  store i64 %pc1, ptr %at
  %base = mul i64 %pc, 64
  %i = getelementptr i8, ptr %code, i64 %base
  %op = load i64, ptr %i
  switch i64 %op, label %stop [i64 0, label %run i64 2, label %python i64 3, label %set i64 4, label %move
    i64 5, label %plus i64 6, label %swap i64 7, label %count i64 8, label %unless i64 9, label %go
    i64 10, label %differs i64 11, label %check i64 12, label %same i64 13, label %copy]
run:
  %several = WORD i64 3
  %one = icmp eq i64 %several, 1
  %simple = and i1 %one, %untimed
  br i1 %simple, label %single, label %chunks
single:
  %f = WORD ptr 1
  %s = WORD ptr 2
  call void %f(ptr %table, ptr %s, i64 0)
  br label %fetch
chunks:
  %fn = WORD ptr 1
  %sn = WORD ptr 2
  %n = WORD i64 3
  br i1 %untimed, label %share, label %measure
share:
  call void @share(ptr %pool, ptr %fn, ptr %table, ptr %sn, i64 %n)
  br label %fetch
measure:
  %spent = getelementptr i64, ptr %i, i64 7
  call void @measure(ptr %pool, ptr %fn, ptr %table, ptr %sn, i64 %n, ptr %spent)
  br label %fetch
set:
  %sp = PLACE 1
  %sv = WORD i64 2
  store i64 %sv, ptr %sp
  br label %fetch
move:
  %mp = PLACE 1
  %mq = PLACE 2
  %mv = load i64, ptr %mq
  %mw = WORD i64 3
  %mx = add i64 %mv, %mw
  store i64 %mx, ptr %mp
  br label %fetch
plus:
  %pp = PLACE 1
  %pv = load i64, ptr %pp
  %pw = WORD i64 2
  %px = add i64 %pv, %pw
  store i64 %px, ptr %pp
  br label %fetch
swap:
  %wp = PLACE 1
  %wq = PLACE 2
  %wv = load i64, ptr %wp
  %ww = load i64, ptr %wq
  store i64 %wv, ptr %wq
  store i64 %ww, ptr %wp
  br label %fetch
count:
  %cp = PLACE 1
  %cv = load i64, ptr %cp
  %cw = add i64 %cv, 1
  store i64 %cw, ptr %cp
  %ce = WORD i64 2
  %again = icmp slt i64 %cw, %ce
  br i1 %again, label %jump, label %fetch
unless:
  %up = PLACE 1
  %uq = load ptr, ptr %up
  %uv = load i8, ptr %uq
  %zero = icmp eq i8 %uv, 0
  br i1 %zero, label %jump, label %fetch
differs:
  %dp = PLACE 1
  %dq = load ptr, ptr %dp
  %dv = load i64, ptr %dq
  %de = WORD i64 2
  %other = icmp ne i64 %dv, %de
  br i1 %other, label %jump, label %fetch
same:
  %ep = PLACE 1
  %eq = PLACE 2
  %ev = load i64, ptr %ep
  %ew = load i64, ptr %eq
  %equal = icmp eq i64 %ev, %ew
  br i1 %equal, label %jump, label %fetch
copy:
  %yp = PLACE 1
  %yq = PLACE 2
  %yt = load ptr, ptr %yp
  %ys = load ptr, ptr %yq
  %yn = WORD i64 3
  %yr = call ptr @memcpy(ptr %yt, ptr %ys, i64 %yn)
  br label %fetch
check:
  %kp = PLACE 1
  %ka = load ptr, ptr %kp
  %kn = WORD i64 2
  br label %word
word:
  %ki = phi i64 [0, %check], [%kj, %clean]
  %kq = getelementptr i64, ptr %ka, i64 %ki
  %kv = load i64, ptr %kq
  %dirty = icmp ne i64 %kv, 0
  br i1 %dirty, label %bad, label %clean
clean:
  %kj = add i64 %ki, 1
  %left = icmp slt i64 %kj, %kn
  br i1 %left, label %word, label %fetch
bad:
  ret i64 -2
jump:
  %there = WORD i64 3
  br label %leap
go:
  %here = WORD i64 1
  br label %leap
leap:
  %to = phi i64 [%there, %jump], [%here, %go]
  store i64 %to, ptr %at
  %backwards = icmp sle i64 %to, %pc
  %mayPause = and i1 %backwards, %pausing
  br i1 %mayPause, label %tick, label %fetch
tick:
  %k = load i64, ptr %ticks
  %k1 = add i64 %k, 1
  store i64 %k1, ptr %ticks
  %k7 = and i64 %k, 7
  %due = icmp eq i64 %k7, 0
  br i1 %due, label %watch, label %fetch
watch:
  %time = call i64 @now()
  %began = load i64, ptr %since
  %new = icmp eq i64 %began, 0
  br i1 %new, label %first, label %look
first:
  store i64 %time, ptr %since
  br label %fetch
look:
  %elapsed = sub i64 %time, %began
  %long = icmp sgt i64 %elapsed, 50000000
  br i1 %long, label %late, label %fetch
late:
  %over = load i64, ptr %begun
  %untouched = icmp eq i64 %over, 0
  br i1 %untouched, label %pause, label %fetch
pause:
  %going = load i64, ptr %at
  %paused = sub i64 PAUSED, %going
  ret i64 %paused
python:
  ret i64 %pc
stop:
  ret i64 -1
}
"""
