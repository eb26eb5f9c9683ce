"""The same conversation, whoever recorded it."""

import pytest
import yaml

from pytest_agentlatency.cassette import document
from pytest_agentlatency.cassette.errors import Refused, Unreadable
from pytest_agentlatency.cassette.foreign import read
from pytest_agentlatency.cassette.limits import Limits
from pytest_agentlatency.model.recording import Recording
from pytest_agentlatency.wire import registry
from tests.support import foreign_recordings as made


def usages(recording: Recording) -> list[int | None]:
    contexts = []
    for attempt in recording.attempts:
        provider = registry.recognise(attempt.request)
        assert provider
        assert attempt.response
        contexts.append(provider.answer(attempt.response).usage.context)
    return contexts


@pytest.mark.parametrize("name", made.EVERY)
def test_every_container_gives_the_same_calls(name):
    found = read(made.EVERY[name]())

    assert [call.id for call in found.recording.calls] == [1, 2]
    assert [attempt.request.body for attempt in found.recording.attempts] == [
        made.text(made.QUESTION).encode(),
        made.text(made.SECOND).encode(),
    ]
    assert [attempt.response.body for attempt in found.recording.attempts] == [
        made.text(made.ANSWER).encode(),
        made.SSE.encode(),
    ]
    assert usages(found.recording) == [21, 34]
    assert [each.request.url for each in found.others] == [made.TOOL_URL]
    assert found.others[0].response.body == "Köln".encode()


@pytest.mark.parametrize("name", made.EVERY)
def test_no_container_but_har_gives_a_run_clock(name):
    """A time that is not in the file is unknown, not zero."""
    assert all(attempt.stamps is None for attempt in read(made.EVERY[name]()).recording.attempts)


@pytest.mark.parametrize("name", made.EVERY | made.ALONE)
def test_a_foreign_recording_becomes_a_cassette_of_ours_and_back(name):
    found = read((made.EVERY | made.ALONE)[name]())

    again = document.loads(document.dumps(found.document), "again")

    assert [each.request.body for each in again.recording.attempts] == [
        each.request.body for each in found.recording.attempts
    ]
    assert [each["response"]["body"] for each in again.others] == [
        {"string": each.response.body} for each in found.others
    ]


@pytest.mark.parametrize(
    ("name", "container"),
    [
        ("vcrpy yaml", "vcrpy"),
        ("langchain parallel lists", "vcrpy"),
        ("go-vcr", "go-vcr"),
        ("ruby and R vcr", "ruby vcr"),
        ("single exchange", "single exchange"),
        ("har", "har"),
    ],
)
def test_the_container_is_told_by_content_not_by_name(name, container, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes((made.EVERY | made.ALONE)[name]())

    assert read(path).container == container


def test_python_object_tags_are_plain_data():
    found = read(made.multidict_tags())

    assert found.recording.attempts[0].request.headers == (("Content-Type", "application/json"), ("X-Two", "a"))


def test_parsed_bodies_are_said_to_be_written_anew():
    found = read(made.parsed_body())

    assert [str(each) for each in found.warnings] == [
        "bodies are stored parsed; their bytes are written anew (1 of 3 exchanges)"
    ]


def test_a_filter_of_the_recorder_plays_no_part_on_load(tmp_path):
    """Field note A15: a record-time filter that also ran on load deleted stored interactions."""
    path = tmp_path / "a.yaml"
    path.write_bytes(made.vcrpy())
    before = path.read_bytes()

    found = read(path)

    assert len(found.recording.attempts) + len(found.others) == 3
    assert path.read_bytes() == before


def test_a_redacted_address_is_still_a_model_call():
    """Field note A31: hosts are redacted in recordings; what a request is, its path and body say."""
    hidden = made.vcrpy().replace(b"https://api.anthropic.com/", b"https://**REDACTED**/")

    assert [call.id for call in read(hidden).recording.calls] == [1, 2]


def test_a_cassette_of_ours_is_pointed_to_its_own_reader():
    ours = document.dumps(read(made.vcrpy()).document)
    saved_by_vcrpy = yaml.safe_load(ours)
    del saved_by_vcrpy["agentlatency"]

    for each in (ours, made.dumped(saved_by_vcrpy)):
        with pytest.raises(Unreadable, match="cassette of this plugin"):
            read(each)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"   \n", "is empty"),
        (b"just words", "holds text, which is no recording"),
        (b"[1, 2]", "holds a list"),
        (b'{"messages": []}', "with 'messages' at its top"),
        (b"interactions: 3", "interactions is a int, where a list"),
        (b"interactions:\n- request: {uri: a}\n", r"interactions\[0\].response is missing"),
        (b"interactions:\n- request: {}\n  response: {}\n", r"interactions\[0\].request has no uri"),
        (b"interactions:\n- request: {uri: a}\n  response: {}\n", "no status code"),
        (b"interactions:\n- request: {uri: a}\n  response: {status: ten}\n", "no status code"),
        (b"requests: [1]\nresponses: []", "1 requests stand beside 0 responses"),
        (b'{"log": {"entries": [{"request": {}, "response": {}}]}}', r"log.entries\[0\].request has no url"),
        (b'{"interactions": [', "broken JSON"),
        (b'{"interactions": "\xff\xfe"}', "broken JSON|no recording|where a list"),
        (b"interactions: [\n", "can't be read as YAML"),
        (b"\x1f\x8b\x08 not gzip at all", "broken gzip"),
        (b"a: 1\n---\nb: 2\n", "several documents"),
    ],
)
def test_what_is_no_recording_is_refused_with_the_fault_and_its_place(content, said):
    with pytest.raises(Unreadable, match=said):
        read(content)


def test_an_empty_run_is_a_recording_without_calls():
    assert read(b"interactions: []\nversion: 1\n").recording.calls == ()


def test_a_message_never_quotes_a_body():
    broken = b"interactions:\n- request: sk-ant-secret\n  response: {}\n"

    with pytest.raises(Unreadable) as caught:
        read(broken)

    assert "secret" not in str(caught.value)


def test_a_path_that_is_not_there_is_named():
    with pytest.raises(Unreadable, match=r"'nowhere/at/all.yaml' can't be read: No such file"):
        read("nowhere/at/all.yaml")


def test_a_directory_is_refused(tmp_path):
    with pytest.raises(Unreadable, match="not a regular file"):
        read(tmp_path)


def test_a_path_with_a_nul_is_refused():
    with pytest.raises(Unreadable, match="can't be read"):
        read("a\0b")


def test_a_file_over_the_limit_is_refused_before_it_is_parsed(tmp_path):
    path = tmp_path / "zeros.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 30)  # sparse: a gigabyte of zeros on no disk

    with pytest.raises(Refused, match="134,217,728 are read"):
        read(path)


def test_limits_can_be_set():
    with pytest.raises(Refused, match="at most 100 are read"):
        read(made.vcrpy(), Limits(file=100))


def test_blanks_that_a_gateway_sends_before_the_answer_hide_nothing():
    """OpenRouter keeps a slow connection alive with lines of spaces; the JSON comes after them."""
    tree = made.vcrpy_tree()
    stored = tree["interactions"][0]["response"]["body"]
    stored["string"] = "         \n\n" * 40 + stored["string"]

    assert usages(read(made.dumped(tree)).recording) == [21, 34]


def test_a_model_call_whose_request_was_not_kept_is_named():
    tree = made.vcrpy_tree()
    tree["interactions"][0]["request"]["body"] = ""

    found = read(made.dumped(tree))

    assert [each.id for each in found.recording.calls] == [1]
    (warning,) = map(str, found.warnings)
    assert warning.startswith("a request was stored without its body and answered with token usage: a model call that")
    assert warning.endswith(f"(1 of {len(tree['interactions'])} exchanges)")
