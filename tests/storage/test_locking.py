"""One run in a folder at a time: processes, threads, forks, kills, and file systems without locks."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import wonderland as wl
from wonderland.errors import FileError
from wonderland.storage import LockWarning, locked, locking

HOLD = """
import sys
from wonderland.storage import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder, code=HOLD):
    environment = os.environ | {"PYTHONPATH": str(Path(wl.__file__).parent.parent)}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    return process


def close(process):
    process.stdin.close()
    process.wait(60)
    process.stdout.close()


def test_another_process_is_refused_and_named(tmp_path):
    process = holder(tmp_path / "run")
    try:
        with (
            pytest.raises(FileError, match=rf"in use by another run \(process {process.pid} on "),
            locked(tmp_path / "run"),
        ):
            pass
    finally:
        close(process)
    with locked(tmp_path / "run"):
        pass
    assert os.listdir(tmp_path / "run") == []


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_killed_process_leaves_no_lock(tmp_path):
    process = holder(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    close(process)
    assert os.listdir(tmp_path) == [locking.NAME]
    with locked(tmp_path):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_worker_does_not_keep_the_lock_of_a_killed_run(tmp_path):
    code = HOLD.replace(
        "    print(",
        """    import os
    begun, tell = os.pipe()
    if os.fork() == 0:
        os.write(tell, b"!")
        sys.stdin.read()
        os._exit(0)
    os.read(begun, 1)
    print(""",
    )
    process = holder(tmp_path, "import warnings; warnings.simplefilter('ignore')\n" + code)
    process.kill()
    process.wait(60)
    with locked(tmp_path):  # the worker is alive: it waits for our end of the pipe
        pass
    close(process)


def test_another_thread_is_refused(tmp_path):
    found = []

    def other():
        try:
            with locked(tmp_path):
                found.append("held")
        except FileError as error:
            found.append(str(error).splitlines()[0])

    with locked(tmp_path):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(found) == 1
    assert "in use" in found[0]
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert found[1] == "held"


def test_the_lock_is_given_back_after_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="inside"), locked(tmp_path):
        raise RuntimeError("inside")
    with locked(tmp_path):
        pass


def test_many_take_turns_and_never_two_at_once(tmp_path):
    inside, most, turns = [], [], []

    def work():
        while len(turns) < 200:
            try:
                with locked(tmp_path):
                    inside.append(1)
                    most.append(len(inside))
                    turns.append(1)
                    inside.pop()
            except FileError:
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1


def test_a_file_system_without_locks_warns_and_goes_on(tmp_path, monkeypatch):
    def refuse(descriptor):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(locking, "_lock", refuse)
    with pytest.warns(LockWarning, match="file system without locks"), locked(tmp_path):
        pass


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot write"), locked(tmp_path / "file" / "run"):
        pass
