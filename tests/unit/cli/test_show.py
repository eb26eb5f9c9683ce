import gzip
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document, dumps
from pytest_agentlatency.cli import main
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.testing.builders import failure, growing, recording, tool, turn
from tests.support import foreign_recordings as foreign


@pytest.fixture
def show():
    def run(*arguments):
        return CliRunner().invoke(main, ["show", *map(str, arguments)], terminal_width=80)

    return run


@pytest.fixture
def cassette(tmp_path):
    path = tmp_path / "run.yaml"
    store.save(path, Document(recording(growing("linear", 3, prefill_ms=200, decode_ms=500, tool_ms=100))))
    return path


def test_a_cassette_is_shown_with_the_times_that_were_recorded(show, cassette):
    result = show(cassette)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == (f"{cassette}; tests/test_agent.py::test_agent; recorded 2026-01-01T00:00:00Z; claude-simulated")
    first = next(line.split() for line in lines if line.strip().startswith("1 "))
    assert first == ["1", "800", "200", "25%", "500", "62%", "100", "12%", "200", "2,000", "0", "50"]
    assert "times in ms, replayed" in result.stdout


def test_no_line_is_wider_than_asked_for(show, cassette):
    assert max(map(len, show(cassette, "--width", 50).stdout.splitlines()[1:])) <= 50


def test_json_holds_whole_nanoseconds(show, cassette):
    told = json.loads(show(cassette, "--json").stdout)
    assert told["schema"] == "agentlatency.run"
    assert [each["phases"]["prefill"]["ns"] for each in told["lanes"][0]["turns"]] == [200_000_000] * 3
    assert told["provenance"] == "replayed"


def test_where_the_agent_told_it_the_hand_over_is_shown_beside_the_first_token(show, tmp_path):
    made = recording([turn(2000, prefill_ms=200, decode_ms=500)])
    told = replace(made, calls=(replace(made.calls[0], delivered=Ns(650_000_000)),))
    store.save(tmp_path / "run.yaml", Document(told))
    lines = show(tmp_path / "run.yaml", "--width", 200).stdout.splitlines()
    assert [lines[2].split()[-5:], lines[4].split()[-5:]] == [
        ["ttft", "delivered", "context", "cached", "output"],
        ["200", "650", "2,000", "0", "50"],
    ]
    call = json.loads(show(tmp_path / "run.yaml", "--json").stdout)["lanes"][0]["turns"][0]["call"]
    assert (call["ttft_ns"], call["delivered_ns"]) == (200_000_000, 650_000_000)


@pytest.mark.parametrize("name", foreign.EVERY)
def test_of_a_recording_without_times_they_are_not_available_and_never_zero(show, tmp_path, name):
    path = tmp_path / "anything"
    path.write_bytes(foreign.EVERY[name]())
    result = show(path)
    assert result.exit_code == 0
    row = next(line.split() for line in result.stdout.splitlines() if line.strip().startswith("1 "))
    assert row[:3] == ["1", "n/a", "n/a"]
    assert "21" in row  # context by the provider's usage
    assert "n/a not measured" in result.stdout


def test_what_is_doubtful_about_a_recording_is_said(show, tmp_path):
    tree = foreign.vcrpy_tree()
    answer = {**foreign.ANSWER, "usage": {"input_tokens": 90_000, "output_tokens": 5}}
    tree["interactions"][0]["response"]["body"]["string"] = foreign.text(answer)
    path = tmp_path / "edited.yaml"
    path.write_bytes(foreign.dumped(tree))
    assert "call 1: " in show(path).stdout


def test_times_that_the_server_gives_of_itself_stand_beside(show, tmp_path):
    """llama.cpp's `timings`: milliseconds, read from the answer's body."""
    timings = {"prompt_n": 21, "prompt_ms": 41.5, "predicted_n": 5, "predicted_ms": 160.25}
    body = {"model": "m", "messages": [{"role": "user", "content": "Where?"}]}
    answer = {
        "id": "chatcmpl-1", "object": "chat.completion", "model": "m", "timings": timings,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Here."}}],
        "usage": {"prompt_tokens": 21, "completion_tokens": 5, "total_tokens": 26},
    }  # fmt: skip
    request = {"method": "POST", "uri": "http://127.0.0.1:8080/v1/chat/completions", "body": foreign.text(body)}
    response = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": foreign.text(answer)}}
    path = tmp_path / "llama.yaml"
    path.write_bytes(
        foreign.dumped({"interactions": [{"request": {**request, "headers": {}}, "response": response}], "version": 1})
    )
    shown = show(path).stdout
    assert "the servers' own times (server)" in shown
    row = shown.splitlines()[-1].split()
    assert row[:5] == ["1", "42", "ms", "160", "ms"]


def test_a_gzipped_recording_is_read(show, tmp_path):
    path = tmp_path / "run.gz"
    path.write_bytes(gzip.compress(foreign.vcrpy()))
    assert show(path).exit_code == 0


def test_retries_and_lanes_are_shown(show, tmp_path):
    path = tmp_path / "run.yaml"

    turns = [turn(2000, tools=(tool("ask", 10, turns=[turn(500), turn(700)]),)), turn(3000, failures=(failure(),))]
    store.save(path, Document(recording(turns)))
    shown = show(path, "--width", 120).stdout
    assert "lane" in shown
    assert "retry" in shown


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"nothing of the kind", "no recording known here"),
        (b"", "nothing is in it (0 bytes"),
        (dumps(Document(recording([turn(1000)])))[:-30], "the end is missing"),
    ],
)
def test_a_file_that_is_no_recording_ends_with_2_and_says_what_is_wrong(show, tmp_path, content, said):
    path = tmp_path / "file"
    path.write_bytes(content)
    result = show(path)
    assert result.exit_code == 2
    assert str(path) in result.stderr
    assert said in result.stderr


def test_a_missing_file_ends_with_2(show, tmp_path):
    result = show(tmp_path / "nothing.yaml")
    assert result.exit_code == 2
    assert "nothing.yaml" in result.stderr


def test_a_cassette_of_a_later_version_is_not_read_as_somebody_elses(show, cassette):
    cassette.write_text(cassette.read_text().replace("agentlatency:\n  version: 1", "agentlatency:\n  version: 99"))
    result = show(cassette)
    assert result.exit_code == 2
    assert "99" in result.stderr


def test_the_exit_codes_are_told(show):
    assert "Ends with 0, or with 2" in show("--help").stdout
