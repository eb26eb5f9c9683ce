"""Everybody's recordings, for real: every model call of eight public test suites is read, its input counted exactly.

Needs a package index at the first run, and 37 MB of cache. See `material`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pytest_agentlatency.analysis.assembly import assemble
from pytest_agentlatency.cassette import foreign
from pytest_agentlatency.wire import registry
from tests.corpus import material, rules

COVERAGE = 0.99
"""Part of the files with model calls that must be read whole."""

NOT_READ = {
    f"ecologits/tests/cassettes/test_huggingface_hub/test_huggingface_hub_{name}.yaml": "no request body was recorded"
    for name in ("async_chat", "async_stream_chat")
} | {
    f"opentelemetry-instrumentation-anthropic/tests/cassettes/test_completion/test_anthropic_completion_{name}.yaml": (
        "Anthropic's text completions (/v1/complete), its API before messages, which never told its usage"
    )
    for name in ("legacy", "with_events_with_content", "with_events_with_no_content")
}
"""Every file that isn't read whole, with its reason."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One file: its calls by the package and by the rules."""

    name: str
    read: list[tuple[bytes, int, int | None]]
    """Request body, status, input tokens."""
    said: list[rules.Said]
    found: foreign.Foreign

    @property
    def whole(self) -> bool:
        return self.read == [(each.request, each.status, each.context) for each in self.said]

    @property
    def differences(self) -> str:
        pairs = [(mine[2], each.context) for mine, each in zip(self.read, self.said, strict=False)]
        return f"{self.name}: {len(self.read)} of {len(self.said)} calls read, (read, recorded) tokens {pairs}"


def compared(release: material.Release) -> Iterator[Compared]:
    for path, data in material.recordings(release):
        found = foreign.read(data)
        calls = [
            (attempt.request.body, attempt.response.status, context(attempt)) for attempt in found.recording.attempts
        ]
        yield Compared(f"{release.name}/{path}", calls, rules.calls(data), found)


def context(attempt):
    return registry.recognise(attempt.request).answer(attempt.response).usage.context


@pytest.fixture(scope="module")
def corpus() -> list[Compared]:
    return [each for release in material.RELEASES for each in compared(release)]


def test_every_recording_of_the_releases_is_there(corpus):
    expected = {release.name: release.files for release in material.RELEASES}

    assert {name: sum(each.name.startswith(f"{name}/") for each in corpus) for name in expected} == expected


def test_input_tokens_are_the_recorded_ones_exactly(corpus):
    """Every call that both sides see, status and request included."""
    wrong = [each.differences for each in corpus if not each.whole and each.name not in NOT_READ]

    assert wrong == []


def test_what_is_not_read_is_listed_with_its_reason_and_nothing_else_is(corpus):
    assert sorted(each.name for each in corpus if not each.whole) == sorted(NOT_READ)


def test_nearly_every_file_with_model_calls_is_read_whole(corpus):
    files = [each for each in corpus if each.said]
    whole = [each for each in files if each.whole]
    calls = [call for each in whole for call in each.said]
    counted = [call for call in calls if call.context is not None]

    print(  # noqa: T201 - the figures of docs/recordings.md
        f"{len(whole)} of {len(files)} files with model calls read whole ({len(whole) / len(files):.2%}); "
        f"{len(calls)} calls, {len(counted)} with usage, {sum(call.context for call in counted):,} input tokens"
    )
    assert len(whole) >= COVERAGE * len(files)
    assert len(counted) > 2000


def test_no_honest_recording_is_taken_for_an_edited_one(corpus):
    """Images, server tools, dropped thinking, compaction: none of these calls was edited afterwards."""
    assert [str(doubt) for each in corpus for doubt in each.found.warnings if doubt.call is not None] == []


def test_every_recording_becomes_a_run_with_all_its_calls(corpus):
    runs = [(each.name, assemble(each.found.recording), each.found.recording.calls) for each in corpus]

    assert [name for name, run, calls in runs if len(run.calls) != len(calls)] == []


LONG_RUNS = {
    "crewai/tests/cassettes/tools/test_max_usage_count_is_respected.yaml": 6,
    "crewai/tests/cassettes/utilities/TestAnthropicStructuredPlanning"
    ".test_anthropic_research_workflow_generates_steps.yaml": 10,
    "chatlas/tests/_vcr/test_provider_google/test_google_mixed_tools_end_to_end.yaml": 7,
}
"""Runs whose turns were counted by hand."""


@pytest.mark.parametrize("name", LONG_RUNS)
def test_a_long_run_has_its_turns_in_one_lane(corpus, name):
    run = assemble(next(each.found.recording for each in corpus if each.name == name))

    longest = max((lane.turns for lane in run.lanes), key=len)
    contexts = [turn.call.usage.context for turn in longest]

    assert len(longest) == LONG_RUNS[name]
    assert contexts == sorted(contexts)
