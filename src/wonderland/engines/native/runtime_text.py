"""The native loop that runs programs and hands out chunks, as LLVM text."""

from __future__ import annotations

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
    return (
        TEXT.replace("; FIELDS\n", fields)
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

define i64 @run(ptr %table, ptr %code, i64 %start, ptr %pool, i64 %profile, ptr %begun) {
entry:
  %ticks = alloca i64
  %since = alloca i64
  store i64 0, ptr %ticks
  store i64 0, ptr %since
  %pausing = icmp ne ptr %begun, null
  %timed = icmp ne i64 %profile, 0
  %shared = icmp ne ptr %pool, null
  br label %fetch
fetch:
  %pc = phi i64 [%start, %entry], [%pc1, %next], [%to, %leap], [%to, %tick], [%to, %first], [%to, %look], [%to, %late]
  %base = mul i64 %pc, 64
  %i = getelementptr i8, ptr %code, i64 %base
  %op = load i64, ptr %i
  %pa = getelementptr i64, ptr %i, i64 1
  %pb = getelementptr i64, ptr %i, i64 2
  %pcc = getelementptr i64, ptr %i, i64 3
  %a = load i64, ptr %pa
  %b = load i64, ptr %pb
  %c = load i64, ptr %pcc
  %ta = getelementptr i64, ptr %table, i64 %a
  %tb = getelementptr i64, ptr %table, i64 %b
  switch i64 %op, label %stop [i64 0, label %run i64 2, label %python i64 3, label %set i64 4, label %move
    i64 5, label %plus i64 6, label %swap i64 7, label %count i64 8, label %unless i64 9, label %go
    i64 10, label %differs i64 11, label %check i64 12, label %same i64 13, label %copy]
run:
  %f = inttoptr i64 %a to ptr
  %s = inttoptr i64 %b to ptr
  br i1 %timed, label %clock, label %call
clock:
  %before = call i64 @now()
  br label %call
call:
  %t0 = phi i64 [0, %run], [%before, %clock]
  %one = icmp eq i64 %c, 1
  br i1 %one, label %single, label %several
single:
  call void %f(ptr %table, ptr %s, i64 0)
  br label %called
several:
  br i1 %shared, label %fork, label %inorder
fork:
  call void @parallel(ptr %pool, ptr %f, ptr %table, ptr %s, i64 %c)
  br label %called
inorder:
  call void @serial(ptr %f, ptr %table, ptr %s, i64 %c)
  br label %called
called:
  br i1 %timed, label %unclock, label %next
unclock:
  %t1 = call i64 @now()
  %spent = sub i64 %t1, %t0
  %pt = getelementptr i64, ptr %i, i64 7
  %sofar = load i64, ptr %pt
  %total = add i64 %sofar, %spent
  store i64 %total, ptr %pt
  br label %next
set:
  store i64 %b, ptr %ta
  br label %next
move:
  %mv = load i64, ptr %tb
  %mv2 = add i64 %mv, %c
  store i64 %mv2, ptr %ta
  br label %next
plus:
  %pv = load i64, ptr %ta
  %pv2 = add i64 %pv, %b
  store i64 %pv2, ptr %ta
  br label %next
swap:
  %sa = load i64, ptr %ta
  %sb = load i64, ptr %tb
  store i64 %sa, ptr %tb
  store i64 %sb, ptr %ta
  br label %next
count:
  %cv = load i64, ptr %ta
  %cv2 = add i64 %cv, 1
  store i64 %cv2, ptr %ta
  %again = icmp slt i64 %cv2, %b
  br i1 %again, label %jump, label %next
unless:
  %up = load ptr, ptr %ta
  %uv = load i8, ptr %up
  %zero = icmp eq i8 %uv, 0
  br i1 %zero, label %jump, label %next
differs:
  %dp = load ptr, ptr %ta
  %dv = load i64, ptr %dp
  %other = icmp ne i64 %dv, %b
  br i1 %other, label %jump, label %next
same:
  %ea = load i64, ptr %ta
  %eb = load i64, ptr %tb
  %equal = icmp eq i64 %ea, %eb
  br i1 %equal, label %jump, label %next
copy:
  %yt = load ptr, ptr %ta
  %ys = load ptr, ptr %tb
  %yr = call ptr @memcpy(ptr %yt, ptr %ys, i64 %c)
  br label %next
check:
  %kp = load ptr, ptr %ta
  br label %word
word:
  %ki = phi i64 [0, %check], [%kj, %clean]
  %kq = getelementptr i64, ptr %kp, i64 %ki
  %kv = load i64, ptr %kq
  %dirty = icmp ne i64 %kv, 0
  br i1 %dirty, label %bad, label %clean
clean:
  %kj = add i64 %ki, 1
  %left = icmp slt i64 %kj, %b
  br i1 %left, label %word, label %next
bad:
  ret i64 -2
jump:
  br label %leap
go:
  br label %leap
leap:
  %to = phi i64 [%c, %jump], [%a, %go]
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
  %paused = sub i64 PAUSED, %to
  ret i64 %paused
next:
  %pc1 = add i64 %pc, 1
  br label %fetch
python:
  ret i64 %pc
stop:
  ret i64 -1
}
"""
