import os
import subprocess
import sys
import threading

import pytest

from pytest_agentlatency.cassette import lock
from pytest_agentlatency.cassette.errors import TwoWriters

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="flock")


def test_one_at_a_time_holds_it_however_many_try(tmp_path):
    """The holder removes the file: whoever opened the old one before must not take it for the lock."""
    path, inside, most = tmp_path / ".lock", [], []

    def work():
        for _ in range(200):
            try:
                with lock.held(path, "it", "me"):
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
            except TwoWriters:
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert not path.exists()


def test_it_is_let_go_when_the_block_fails(tmp_path):
    with pytest.raises(KeyError), lock.held(tmp_path / ".lock", "it", "me"):
        raise KeyError
    with lock.held(tmp_path / ".lock", "it", "me"):
        pass


def test_a_process_that_ended_is_not_alive():
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert not lock.alive(child.pid)
    assert lock.alive(os.getpid())
    assert lock.alive(1)
