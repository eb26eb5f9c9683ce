import pytest
import yaml
from click.testing import CliRunner

from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cli import main
from pytest_agentlatency.testing.builders import growing, recording
from tests.support import foreign_recordings as foreign


@pytest.fixture
def convert():
    def run(*arguments):
        return CliRunner().invoke(main, ["convert", *map(str, arguments)])

    return run


@pytest.fixture
def cassette(tmp_path):
    path = tmp_path / "run.yaml"
    store.save(path, Document(recording(growing("linear", 4))))
    return path


def test_to_vcrpy_and_back_gives_the_same_bytes(convert, cassette, tmp_path):
    plain, back = tmp_path / "plain.yaml", tmp_path / "back.yaml"
    assert convert(cassette, "--to", "vcrpy", "-o", plain).exit_code == 0
    assert convert(plain, "--to", "agentlatency", "-o", back).exit_code == 0
    assert back.read_bytes() == cassette.read_bytes()


def test_plain_vcrpy_sees_every_body_in_full(convert, cassette):
    written = yaml.safe_load(convert(cassette, "--to", "vcrpy").stdout_bytes)
    bodies = [attempt.request.body for attempt in store.load(cassette).recording.attempts]
    assert [each["request"]["body"].encode() for each in written["interactions"]] == bodies


def test_anybodys_recording_becomes_a_cassette_with_its_bodies_and_without_times(convert, tmp_path):
    source, out = tmp_path / "theirs.har", tmp_path / "ours.yaml"
    source.write_bytes(foreign.vcrpy())
    assert convert(source, "--to", "agentlatency", "-o", out).exit_code == 0
    attempts = store.load(out).recording.attempts
    assert [each.request.body.decode() for each in attempts] == [
        foreign.text(foreign.QUESTION),
        foreign.text(foreign.SECOND),
    ]
    assert [each.response.body.decode() for each in attempts] == [foreign.text(foreign.ANSWER), foreign.SSE]
    assert [each.stamps for each in attempts] == [None, None]


def test_a_credential_header_of_theirs_is_left_behind(convert, tmp_path):
    tree = foreign.vcrpy_tree()
    tree["interactions"][0]["request"]["headers"]["x-api-key"] = ["sk-ant-api03-" + "Kq7vRt2x" * 11]
    source = tmp_path / "theirs.yaml"
    source.write_bytes(foreign.dumped(tree))
    result = convert(source, "--to", "agentlatency")
    assert result.exit_code == 0
    assert b"sk-ant" not in result.stdout_bytes


def test_a_secret_in_a_body_of_theirs_stops_it_and_is_not_repeated(convert, tmp_path):
    secret = "sk-ant-api03-" + "Kq7vRt2x" * 11
    tree = foreign.vcrpy_tree()
    body = tree["interactions"][0]["request"]
    body["body"] = body["body"].replace("parcel 7", secret)
    source, out = tmp_path / "theirs.yaml", tmp_path / "ours.yaml"
    source.write_bytes(foreign.dumped(tree))
    result = convert(source, "--to", "agentlatency", "-o", out)
    assert result.exit_code == 2
    assert "model call 1" in result.stderr
    assert secret not in result.stderr
    assert not out.exists()


def test_a_file_that_is_there_is_replaced_only_when_told_to(convert, cassette, tmp_path):
    out = tmp_path / "there.yaml"
    out.write_text("mine")
    result = convert(cassette, "--to", "vcrpy", "-o", out)
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert out.read_text() == "mine"
    assert convert(cassette, "--to", "vcrpy", "-o", out, "--force").exit_code == 0
    assert out.read_text() != "mine"


def test_nothing_but_the_result_is_left_in_the_folder(convert, cassette, tmp_path):
    convert(cassette, "--to", "vcrpy", "-o", tmp_path / "new" / "plain.yaml")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["plain.yaml"]


def test_a_file_that_is_no_recording_ends_with_2_and_writes_nothing(convert, tmp_path):
    source, out = tmp_path / "text", tmp_path / "out.yaml"
    source.write_text("hello")
    assert convert(source, "--to", "vcrpy", "-o", out).exit_code == 2
    assert not out.exists()


def test_a_folder_that_can_not_be_written_to_ends_with_2(convert, cassette, tmp_path):
    (tmp_path / "file").write_text("")
    result = convert(cassette, "--to", "vcrpy", "-o", tmp_path / "file" / "plain.yaml")
    assert result.exit_code == 2
    assert "can't be written" in result.stderr
