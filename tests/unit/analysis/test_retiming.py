"""Re-timing: identity, sign, monotony and exact phases as laws; overlaps and cache effects by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.analysis.calibration import Calibration
from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.analysis.drift import LiveCall, Replayed, replayed
from pytest_agentlatency.analysis.fits import Fit, fits, key_of
from pytest_agentlatency.analysis.prefill import LatencyModel, Load, Sample, fit
from pytest_agentlatency.analysis.retiming import by_fits, retime
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Recording
from pytest_agentlatency.model.run import Call, Run, Verdict
from pytest_agentlatency.model.usage import Usage
from pytest_agentlatency.testing import strategies
from pytest_agentlatency.testing.builders import edited, growing, recording, tool, turn, untimed, with_longer_system
from tests.support.run_strategies import a_few

MS = 1_000_000


def _model() -> LatencyModel:
    """200 ms and 0.1 ms a token, known well."""
    found = fit([Sample(0, size, 200 * MS + size * MS // 10) for size in (500, 1000, 2000, 4000, 8000, 16_000, 32_000)])
    assert isinstance(found, LatencyModel)
    return found


MODEL = _model()
KNOWN = Fit(MODEL, "a test")


def live(observed: Recording, changed: Recording, without: int = 0) -> Replayed:
    """The replay of an agent that sends the requests of `changed` against the recording, but for one call."""
    last = {attempt.call: attempt for attempt in observed.attempts}
    now = {attempt.call: attempt for attempt in changed.attempts}
    calls = [
        LiveCall(
            call,
            now[call].request,
            Verdict.IDENTICAL if now[call].request.body == last[call].request.body else Verdict.DRIFTED,
        )
        for call in sorted(now)
        if call != without
    ]
    return replayed(observed, calls, counter("chars"))


def phases_sum(run: Run) -> None:
    assert sum(run.phases.values()) == (run.duration or 0)
    for each in run.all_turns:
        assert sum(each.phases.values()) == (each.duration or 0)


# --- laws


@a_few
@given(strategies.recordings())
def test_an_unchanged_run_is_itself_to_the_nanosecond(observed):
    told = live(observed, observed)
    assert retime(told, lambda _: KNOWN).run == told.run


@a_few
@given(strategies.recordings(), st.integers(1, 3000))
def test_a_changed_run_still_sums_exactly_and_lies_in_its_interval(observed, tokens):
    told = live(observed, with_longer_system(observed, tokens))
    found = retime(told, lambda _: KNOWN)
    for run in (found.run, found.low, found.high):
        phases_sum(run)
    if found.run.duration is not None:
        assert found.low.duration <= found.run.duration <= found.high.duration
        assert found.run.duration >= told.run.duration


@a_few
@given(strategies.recordings(whole=True), st.integers(1, 3000))
def test_only_prefill_is_projected(observed, tokens):
    told = live(observed, with_longer_system(observed, tokens))
    found = retime(told, lambda _: KNOWN)
    for before, after in zip(told.run.calls, found.run.calls, strict=True):
        assert after.decode == before.decode
        assert after.usage == before.usage
    assert [each.end - each.start for each in found.run.tools] >= [each.end - each.start for each in told.run.tools]


@a_few
@given(strategies.recordings(whole=True), st.integers(0, 2000), st.integers(0, 2000))
def test_more_tokens_never_make_a_run_faster(observed, tokens, more):
    small, large = (
        retime(live(observed, with_longer_system(observed, each)), lambda _: KNOWN).run.duration
        for each in (tokens, tokens + more)
    )
    assert small <= large


@a_few
@given(st.lists(st.integers(100, 900), min_size=1, max_size=4), st.integers(1, 2000))
def test_without_a_cache_fewer_tokens_never_make_a_run_slower(steps, tokens):
    """With one they may: a shorter prompt that lost its prefix is read again."""
    observed = recording([turn(sum(steps[: n + 1]) + 100, tool_ms=50) for n in range(len(steps))])
    told = live(with_longer_system(observed, tokens), observed)
    assert retime(told, lambda _: KNOWN).run.duration <= told.run.duration


@a_few
@given(strategies.recordings(), st.integers(1, 3000))
def test_stamps_stay_in_order(observed, tokens):
    for told in (
        live(observed, with_longer_system(observed, tokens)),
        live(with_longer_system(observed, tokens), observed),
    ):
        for call in retime(told, lambda _: KNOWN).run.calls:
            stamps = call.attempts[-1].stamps
            if stamps is not None:
                assert stamps.start <= stamps.end
                assert list(stamps.arrived) == sorted(stamps.arrived)
                assert all(asked <= came for asked, came in zip(stamps.asked, stamps.arrived, strict=False))


@a_few
@given(strategies.recordings(whole=True), st.integers(1, 2000), st.integers(0, 3))
def test_a_run_that_leaves_out_a_turn_and_changes_the_others_still_sums_exactly(observed, tokens, left_out):
    told = live(observed, with_longer_system(observed, tokens), without=left_out)
    if told.readings:
        found = retime(told, lambda _: KNOWN)
        phases_sum(found.run)
        assert found.run.duration >= told.run.duration


# --- by hand


def slower(told: Replayed) -> Run:
    return retime(told, lambda _: KNOWN).run


def test_later_turns_move_and_keep_their_length():
    observed = recording(growing("linear", 4))
    changed = edited(
        observed, lambda call, body: body.update(system=body["system"] + " more" * 2000) if call == 2 else 0
    )
    told = live(observed, changed)
    run = slower(told)
    delta = run.duration - told.run.duration
    assert delta > 100 * MS
    assert run.turn(2).duration - told.run.turn(2).duration == delta
    assert [each.provenance for each in run.turns] == [
        Provenance.REPLAYED,
        Provenance.PROJECTED,
        Provenance.REPLAYED,
        Provenance.REPLAYED,
    ]
    assert run.turn(4).start - told.run.turn(4).start == delta
    assert run.turn(4).duration == told.run.turn(4).duration


def sub_agents(*, parallel: bool) -> Recording:
    workers = [tool(f"worker{n}", turns=[turn(1000, prefill_ms=200), turn(1500, prefill_ms=300)]) for n in (1, 2)]
    return recording([turn(2000, 200, tools=workers, parallel=parallel), turn(4000)])


@pytest.mark.parametrize(("parallel", "share"), [(True, 1), (False, 2)])
def test_sub_agents_side_by_side_delay_the_run_once_and_one_after_the_other_twice(parallel, share):
    observed = sub_agents(parallel=parallel)

    def longer(_, body):
        if "sub-agent" in body["system"]:
            body["system"] += " more" * 2000

    told = live(observed, edited(observed, longer))
    run = slower(told)
    phases_sum(run)
    lanes = [lane for lane in run.lanes if lane.id != 1]
    one = sum(each.call.retimed.projected - each.call.retimed.recorded for each in lanes[0].turns)
    assert one > 100 * MS
    assert run.duration - told.run.duration == share * one
    assert run.turn(1).provenance is Provenance.PROJECTED
    assert run.turn(2).provenance is Provenance.REPLAYED


def test_one_of_two_sub_agents_longer_delays_only_what_waits_for_it():
    observed = sub_agents(parallel=True)
    seen = []

    def longer(call, body):
        if "sub-agent" in body["system"] and call % 2:
            seen.append(call)
            body["system"] += " more" * 2000

    told = live(observed, edited(observed, longer))
    run = slower(told)
    other = next(lane for lane in run.lanes if lane.id != 1 and not any(each.call.retimed for each in lane.turns))
    assert seen
    before = next(lane for lane in told.run.lanes if lane.id == other.id)
    assert [each.start for each in other.turns] == [each.start for each in before.turns]


def test_a_call_without_a_stream_keeps_its_time_and_says_so():
    observed = recording([turn(1000, streamed=False), turn(2000)])
    found = retime(live(observed, with_longer_system(observed, 500)), lambda _: KNOWN)
    assert "not streamed" in found.why_stale(found.run.turn(1))
    assert found.why_stale(found.run.turn(2)) == ""
    assert found.run.turn(1).provenance is Provenance.REPLAYED
    assert any(note.startswith("tokens only: the time of changed turn 1 ") for note in found.run.notes)


def test_without_a_model_every_time_stays_and_the_run_says_so():
    observed = recording(growing("linear", 2))
    told = live(observed, with_longer_system(observed, 500))
    models = fits(told.recorded)
    found = retime(told, lambda reading: models[key_of(reading)])
    assert found.run.duration == told.run.duration
    assert not found.projected
    assert any("tokens only" in note and "three are needed" in note for note in found.run.notes)


def test_a_recording_without_times_has_tokens_and_no_notes_of_times():
    observed = untimed(recording(growing("linear", 3)))
    found = retime(live(observed, with_longer_system(observed, 500)), lambda _: KNOWN)
    assert found.run.duration is None
    assert not found.stale
    assert found.run.turn(3).call.usage.context > 4000


def test_a_changed_call_whose_provider_told_no_tokens_says_that_its_time_is_stale():
    observed = recording(growing("linear", 2))
    told = live(observed, with_longer_system(observed, 500))
    blind = [replace(each, call=replace(each.call, usage=Usage())) for each in told.recorded]
    now = [replace(each, call=replace(each.call, usage=Usage())) for each in told.readings]
    found = by_fits(replace(told, recorded=tuple(blind), readings=tuple(now)))
    assert "did not say" in found.why_stale(found.run.turn(1))


def test_a_wide_fit_projects_with_a_caution():
    noisy = Fit(replace(MODEL, covariance=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))), "a guess")
    observed = recording(growing("linear", 3))
    found = retime(live(observed, with_longer_system(observed, 500)), lambda _: noisy)
    assert "factor of" in found.caution(found.run.turn(2))
    assert "factor of" in found.caution(None)


def test_a_model_of_known_cost_is_recovered_from_the_recordings_own_calls():
    """400 ms and 0.1 ms a token, nine turns: what some 1,000 tokens more cost is known within its interval."""
    sizes = [1000 * n for n in range(1, 10)]
    observed = recording([turn(size, prefill_ms=400 + size / 10) for size in sizes], model="local")
    told = live(observed, with_longer_system(observed, 1000))
    models = fits(told.recorded)
    found = retime(told, lambda reading: models[key_of(reading)])
    for size, each in zip(sizes, found.run.calls, strict=True):
        cost = (each.usage.context - size) * MS / 10
        low, change, high = (
            end - each.retimed.recorded for end in (each.retimed.low, each.retimed.projected, each.retimed.high)
        )
        assert low <= cost <= high
        assert change == pytest.approx(cost, rel=0.3)


def pinned() -> Recording:
    """Usage says cached, and the server prefills the whole context all the same: 100 ms and 0.1 ms a token."""
    sizes = [2000 * number for number in range(1, 11)]
    turns = [
        turn(size, prefill_ms=100 + size / 10, cached=before, tool_ms=10)
        for before, size in zip((0, *sizes), sizes, strict=False)
    ]
    return recording(turns, model="local")


def swept(model: str = "local") -> Calibration:
    """Cold prompts on the same server: attention costs nothing that shows."""
    samples = [Sample(0, size, 100 * MS + size * MS // 10) for size in (500, 1000, 2000, 4000, 8000, 16000, 32000)]
    return Calibration("anthropic", model, "", "2026-12-01", fit(samples))


def test_a_cache_that_the_times_do_not_show_is_doubted_in_a_run_without_any_change():
    """Field note D9: with a calibration, attention can't be what the times follow."""
    observed = pinned()
    found = by_fits(live(observed, observed), [swept()])
    assert any(note.startswith("cache not effective") for note in found.run.notes)
    assert not found.projected


def test_without_a_calibration_the_doubt_is_told_and_projected_times_fail_no_test():
    """Field note D9: dear attention to a cached context looks the same as a cache without effect."""
    observed = pinned()
    found = by_fits(live(observed, with_longer_system(observed, 500)))
    assert any("the cache has no effect, or attention is dear" in note for note in found.run.notes)
    assert "agentlatency calibrate" in found.caution(None)


def test_a_calibration_tells_warm_turns_what_a_token_costs():
    """With a cache all turns bring about as much, so alone they can't tell a token's cost from a fixed one."""
    cost = LatencyModel(10e6, 4.2e5, 2384, KNOWN.model.covariance, 0.02, 12)
    slower = replace(cost, fixed_ns=12e6, token_ns=5e5)  # on the day of the recording
    turns = [
        turn(sum(load), prefill_ms=slower.predict(load).ns / MS, cached=load.cached, tool_ms=10)
        for load in map(Load, (0, 495, 963, 1512, 2078, 2651, 3202), (495, 468, 549, 566, 573, 551, 526))
    ]
    observed = recording(turns, model="local")
    sweep = fit([Sample(0, size, cost.predict(Load(0, size)).ns) for size in (250, 500, 1000, 2000, 4000, 8000)])
    known = Calibration("anthropic", "local", "", "2026-12-01", sweep)
    found = by_fits(live(observed, with_longer_system(observed, 500)), [known])
    assert any("7 streamed calls of this recording" in note for note in found.run.notes)
    for old, new in zip(observed_calls(observed), found.run.calls, strict=True):
        load, now = (Load(call.usage.cache_read, int(call.usage.prefill_work)) for call in (old, new))
        change = slower.predict(now).ns - slower.predict(load).ns
        assert new.retimed.projected - new.retimed.recorded == pytest.approx(change, rel=0.25)


def observed_calls(observed: Recording) -> list[Call]:
    return [each.call for each in assembly.read(observed)]


def test_dear_attention_that_a_calibration_saw_is_no_doubt():
    """A small server on a CPU (N = 2,384): its warm turns get slower as the context grows, with a cache that works."""
    cost = LatencyModel(2e6, 4.2e5, 2384, KNOWN.model.covariance, 0.02, 12)
    sizes = [500 * number for number in range(1, 10)]
    loads = [Load(before, size - before) for before, size in zip((0, *sizes), sizes, strict=False)]
    turns = [turn(sum(load), prefill_ms=cost.predict(load).ns / MS, cached=load.cached, tool_ms=10) for load in loads]
    observed = recording(turns, model="local")
    sweep = fit([Sample(0, size, cost.predict(Load(0, size)).ns) for size in (250, 500, 1000, 2000, 4000, 8000)])
    known = Calibration("anthropic", "local", "", "2026-12-01", sweep)
    assert by_fits(live(observed, observed), [known]).run.notes == ()


def test_a_cache_that_works_is_not_doubted():
    sizes = [2000 * number for number in range(1, 11)]
    turns = [
        turn(size, prefill_ms=100 + (size - before) / 10, cached=before, tool_ms=10)
        for before, size in zip((0, *sizes), sizes, strict=False)
    ]
    observed = recording(turns, model="local")
    assert by_fits(live(observed, observed)).run.notes == ()


# --- tokens


def test_a_longer_system_prompt_is_named_since_the_first_turn():
    observed = recording(growing("linear", 4, start=9000), model="local")
    told = live(observed, with_longer_system(observed, 1240))
    for each in told.run.turns:
        drift = each.call.drift
        assert drift.delta == pytest.approx(1240, rel=0.25)
        assert [(change.what, change.since) for change in drift.changes] == [("system prompt", 1)]
        assert sum(change.tokens for change in drift.changes) == drift.delta


def test_a_changed_tool_result_is_named_since_the_turn_that_brought_it():
    observed = recording(growing("linear", 5))

    def longer(_, body):
        if len(body["messages"]) > 4:
            block = body["messages"][4]["content"][0]
            block["content"] = f"{block['content']} and more" * 9

    told = live(observed, edited(observed, longer))
    assert [each.call.verdict for each in told.run.turns] == [Verdict.IDENTICAL] * 2 + [Verdict.DRIFTED] * 3
    assert {(change.what, change.since) for change in told.run.turn(5).call.drift.changes} == {("result of search", 3)}


def test_the_output_of_a_drifted_call_is_still_the_recorded_one():
    observed = recording(growing("linear", 2))
    usage = live(observed, with_longer_system(observed, 500)).run.turn(2).call.usage
    assert usage.provenance is Provenance.PROJECTED
    assert usage.output_provenance is not Provenance.PROJECTED


# --- the cache


def cached(sizes, **figures) -> Recording:
    """A lane that reads all of its previous request: a prefix cache at work."""
    return recording(
        [turn(size, cached=before, tool_ms=10, **figures) for before, size in zip((0, *sizes), sizes, strict=False)],
        model="local",
    )


def test_a_longer_first_message_of_a_cached_lane_is_read_and_not_prefilled_again():
    observed = cached([4000, 5000, 6000])
    told = live(observed, with_longer_system(observed, 1000))
    first, second, third = (each.call.usage for each in told.run.turns)
    assert first.cache_read == 0
    for usage, before in ((second, first), (third, second)):
        assert usage.cache_read == pytest.approx(before.context, rel=0.02)
        assert usage.prefill_work == pytest.approx(1000, abs=60)


def test_a_server_that_read_nothing_still_reads_nothing():
    observed = recording([turn(size, tool_ms=10) for size in (4000, 5000, 6000)])
    told = live(observed, with_longer_system(observed, 1000))
    assert [each.call.usage.cache_read for each in told.run.turns] == [0, 0, 0]


def test_a_volatile_system_prompt_loses_the_cache():
    observed = cached([4000, 5000, 6000])

    def volatile(call, body):
        body["system"] = f"It is now {call} o'clock. {body['system']}"

    told = live(observed, edited(observed, volatile))
    third = told.run.turn(3).call
    assert third.usage.cache_read < 200
    assert third.drift.recorded_read == 5000
    assert third.drift.cache_miss == "system_changed"
    found = retime(told, lambda _: KNOWN)
    assert found.run.turn(3).time(Phase.PREFILL) > told.run.turn(3).time(Phase.PREFILL) + 400 * MS


def test_a_prefix_cached_by_somebody_else_is_lost_with_the_prefix():
    observed = recording([turn(4000, cached=3900)], model="local")
    told = live(observed, edited(observed, lambda _, body: body.update(system=f"Changed. {body['system']}")))
    assert told.run.turn(1).call.usage.cache_read < 200


@a_few
@given(strategies.recordings(), st.integers(1, 3000))
def test_cached_written_and_uncached_add_up_to_the_context(observed, tokens):
    for told in (
        live(observed, with_longer_system(observed, tokens)),
        live(with_longer_system(observed, tokens), observed),
    ):
        for reading in told.readings:
            usage = reading.call.usage
            assert min(usage.uncached or 0, usage.cache_read, usage.cache_write) >= 0
            if reading.call.drift and reading.call.drift.live_context is not None:
                assert usage.context == reading.call.drift.live_context


def test_assembly_of_the_projected_readings_is_the_projected_run():
    observed = recording(growing("linear", 3))
    told = live(observed, with_longer_system(observed, 500))
    found = retime(told, lambda _: KNOWN)
    again = assembly.from_readings(found.readings, replace(told.recording, tools=found.run.tools, bounds=None))
    assert [each.duration for each in again.turns][:-1] == [each.duration for each in found.run.turns][:-1]
