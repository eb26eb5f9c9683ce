import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pytest_agentlatency.cassette import document, store
from pytest_agentlatency.cassette.errors import Missing, Refused, Truncated, TwoWriters, Unreadable, Unwritable
from pytest_agentlatency.cassette.limits import Limits
from tests.support import documents as some

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals, modes and links of POSIX")


def python(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    """Another process, that says a line when it is ready."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603


def test_what_was_saved_is_loaded(tmp_path):
    path = tmp_path / "deep" / "er" / "test_agent.yaml"
    store.save(path, some.session(3))
    assert store.load(path) == some.session(3)
    assert [each.name for each in path.parent.iterdir()] == ["test_agent.yaml"]


def test_a_missing_cassette_says_so_and_makes_nothing(tmp_path):
    with pytest.raises(Missing, match="no such cassette"):
        store.load(tmp_path / "a" / "x.yaml")
    assert list(tmp_path.iterdir()) == []


def test_a_truncated_cassette_stays_as_it_is(tmp_path):
    path = tmp_path / "x.yaml"
    cut = document.dumps(some.session(1))[:500]
    path.write_bytes(cut)
    with pytest.raises(Truncated, match=r"x\.yaml"):
        store.load(path)
    assert path.read_bytes() == cut


def test_a_file_of_a_thousand_megabytes_of_zeros_is_refused_unread(tmp_path):
    path = tmp_path / "x.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(Refused, match=r"1,073,741,824 bytes, at most 134,217,728 are read"):
        store.load(path)


def test_the_limit_can_be_raised(tmp_path):
    path = tmp_path / "x.yaml"
    store.save(path, some.session(2))
    with pytest.raises(Refused, match="at most 100"):
        store.load(path, Limits(file=100))
    assert store.load(path, Limits(file=1 << 30)) == some.session(2)


def test_a_directory_is_no_cassette(tmp_path):
    with pytest.raises(Unreadable):
        store.load(tmp_path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs an endless file")
def test_an_endless_file_is_no_cassette(tmp_path):
    (tmp_path / "x.yaml").symlink_to("/dev/zero")
    with pytest.raises(Unreadable, match="not a regular file"):
        store.load(tmp_path / "x.yaml")


def test_a_rejected_recording_lies_beside_the_untouched_cassette(tmp_path):
    path = tmp_path / "x.yaml"
    store.save(path, some.session(1))
    before = path.read_bytes()
    rejected = store.reject(path, some.session(2))
    assert rejected.name == "x.yaml.rejected"
    assert document.loads(rejected.read_bytes(), "it") == some.session(2)
    assert path.read_bytes() == before


def test_a_document_that_cannot_be_written_leaves_the_old_one_and_no_trace(tmp_path, monkeypatch):
    path = tmp_path / "x.yaml"
    store.save(path, some.session(1))

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unwritable, match=r"x\.yaml: can't be written: No space left on device; nothing was changed"):
        store.save(path, some.session(2))
    assert [each.name for each in tmp_path.iterdir()] == ["x.yaml"]
    assert store.load(path) == some.session(1)


@posix
def test_permissions_are_kept(tmp_path):
    path = tmp_path / "x.yaml"
    store.save(path, some.session(1))
    path.chmod(0o640)
    store.save(path, some.session(2))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@posix
def test_a_new_cassette_has_the_permissions_of_any_new_file(tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    store.save(tmp_path / "x.yaml", some.session(1))
    assert (tmp_path / "x.yaml").stat().st_mode == plain.stat().st_mode


KILLED = """
    import os, signal, sys, time
    from pathlib import Path
    from pytest_agentlatency.cassette import store
    path, one, other = map(Path, sys.argv[1:])
    whole = [store.load(one), store.load(other)]
    store.save(path, whole[0])
    for attempt in range(80):
        writer = os.fork()
        while writer == 0:
            for each in whole:
                store.save(path, each)
        time.sleep(0.0005 * attempt)  # spreads the kills; nothing depends on where they fall
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        assert store.load(path) in whole, attempt
    print("whole", flush=True)
"""


@posix
def test_a_recorder_killed_at_any_moment_leaves_a_whole_cassette(tmp_path):
    """SIGKILL at 80 moments of a loop that does nothing but save; the next save removes what the dead left."""
    path, one, other = (tmp_path / name / "x.yaml" for name in ("a", "b", "c"))
    store.save(one, some.session(2))
    store.save(other, some.session(40))
    killer = python(KILLED, path, one, other)
    assert killer.communicate()[0] == b"whole\n"
    store.save(path, some.session(1))
    assert [each.name for each in path.parent.iterdir()] == ["x.yaml"]


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x", "a/../../x", "..", "", "C:\\x", "\\\\host\\x", "a\\..\\..\\x", "a\0b"]
)
def test_a_name_that_leads_out_of_the_directory_is_refused(tmp_path, name):
    with pytest.raises(Refused, match="a relative path below"):
        store.path_for(tmp_path, name)


@posix
@pytest.mark.parametrize("name", ["link", "dir/x"])
def test_a_link_that_leads_out_of_the_directory_is_refused(tmp_path, name):
    inside, outside = tmp_path / "cassettes", tmp_path / "elsewhere"
    inside.mkdir()
    outside.mkdir()
    (inside / "link.yaml").symlink_to(outside / "x.yaml")
    (inside / "dir").symlink_to(outside)
    with pytest.raises(Refused, match=r"is a link to .*elsewhere"):
        store.path_for(inside, name)


@posix
def test_a_link_that_stays_inside_is_followed_and_kept(tmp_path):
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    path = store.path_for(tmp_path, "link")
    store.save(path, some.session(1))
    assert path.is_symlink()
    assert store.load(tmp_path / "real.yaml") == some.session(1)


@pytest.mark.parametrize("name", ["test_a", "test_a.yaml", "sub/test_a", "test_a[x.y]", "tëst 📦"])
def test_a_plain_name_gets_its_suffix_once(tmp_path, name):
    path = store.path_for(tmp_path, name)
    assert path == tmp_path / (name.removesuffix(".yaml") + ".yaml")
    store.save(path, some.session(1))


def test_names_longer_than_a_file_system_allows_stay_apart(tmp_path):
    one, two = (store.path_for(tmp_path, "x" * 300 + end) for end in "ab")
    assert one != two
    assert store.reject(one, some.session(1)).exists()


def test_a_second_writer_in_the_same_process_is_refused_by_name(tmp_path):
    path = tmp_path / "x.yaml"
    with store.writing(path, "test_a.py::test_one"):  # noqa: SIM117 -- the second one must fail inside the first
        with pytest.raises(TwoWriters, match=r"x\.yaml is being written by test_a\.py::test_one .process \d+."):
            with store.writing(path, "test_b.py::test_two"):
                pass
    with store.writing(path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_writers_of_different_cassettes_do_not_meet(tmp_path):
    with store.writing(tmp_path / "x.yaml"), store.writing(tmp_path / "y.yaml"):
        pass


HOLDER = """
    import sys, time
    from pathlib import Path
    from pytest_agentlatency.cassette import store
    with store.writing(Path(sys.argv[1]), "the other worker"):
        print("held", flush=True)
        sys.stdin.read()
        time.sleep(60)
"""


@posix
def test_a_writer_in_another_process_is_refused_until_it_dies(tmp_path):
    path = tmp_path / "x.yaml"
    holder = python(HOLDER, path)
    holder.stdout.readline()
    with pytest.raises(TwoWriters, match="the other worker"), store.writing(path):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    assert (tmp_path / ".x.yaml.lock").exists()
    with store.writing(path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_can_not_be_made_is_told_before_the_recording_starts(tmp_path):
    (tmp_path / "cassettes").touch()
    with pytest.raises(Unwritable, match="can't be written"), store.writing(tmp_path / "cassettes" / "run.yaml"):
        pytest.fail("nobody may write here")
