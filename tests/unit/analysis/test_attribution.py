"""The walk of the blocking path: laws over random trees, the cases that other walks get wrong, and the field's."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.analysis.attribution import Activity, blocking_path, parallelism, without, work
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.recording import Pause

LEAVES = [Phase.PREFILL, Phase.DECODE, Phase.TOOL, Phase.RETRY]


def activity(number, start, end, phase=Phase.TOOL, *children, detail=""):
    return Activity(number, start, end, phase, detail=detail or f"a{number}", children=children)


def by_detail(spans):
    sums = {}
    for span in spans:
        sums[span.detail] = sums.get(span.detail, 0) + span.duration
    return sums


def total(spans):
    return sum(span.duration for span in spans)


@st.composite
def trees(draw, *, depth=3):
    """A root over [0, 60) with up to four children a level; they overlap, stick out, or take no time at all."""
    ids = iter(range(1, 1000))

    def node(level):
        bounds = draw(st.tuples(st.integers(-5, 65), st.integers(-5, 65)))
        phase = draw(st.sampled_from(LEAVES))
        return activity(next(ids), min(bounds), max(bounds), phase, *children(level + 1))

    def children(level):
        return [node(level) for _ in range(draw(st.integers(0, 4 if level < 2 else 2)))] if level < depth else []

    return activity(0, 0, 60, Phase.OVERHEAD, *children(0))


def changed(tree, change):
    return change(tree, tuple(changed(child, change) for child in tree.children))


def moved(tree, *, by=0, scale=1):
    return changed(
        tree, lambda a, kids: Activity(a.id, a.start * scale + by, a.end * scale + by, a.phase, a.detail, a.lane, kids)
    )


def naive_path(node, start, end, owners):
    """The definition itself, instant by instant: whom does each instant belong to?"""
    time = end
    while time > start:
        running = [c for c in node.children if max(c.start, start) < min(time, c.end)]
        if not running:
            break
        child = min(running, key=lambda c: (-min(c.end, time), max(c.start, start), c.id))
        stop, begin = min(child.end, time), max(child.start, start)
        owners.update(dict.fromkeys(range(stop, time), node))
        naive_path(child, begin, stop, owners)
        time = begin
    owners.update(dict.fromkeys(range(start, time), node))
    return owners


@given(trees())
def test_any_tree_sums_to_the_wall_exactly_in_contiguous_nonempty_spans(tree):
    spans = blocking_path(tree)
    assert total(spans) == 60
    assert (spans[0].start, spans[-1].end) == (0, 60)
    assert all(span.start < span.end for span in spans)
    assert all(before.end == after.start for before, after in pairwise(spans))


@given(trees())
def test_any_tree_gives_each_instant_to_the_owner_that_the_definition_names(tree):
    spans = blocking_path(tree)
    owners = naive_path(tree, 0, 60, {})
    assert {time: owners[time].detail for time in range(60)} == {
        time: span.detail for span in spans for time in range(span.start, span.end)
    }


@given(trees())
def test_an_owner_is_active_at_its_instants_and_none_of_its_children_is(tree):
    found = {}
    changed(tree, lambda a, _: found.setdefault(a.detail, a))
    for span in blocking_path(tree):
        owner = found[span.detail]
        assert owner.start <= span.start < span.end <= owner.end
        assert not any(max(child.start, span.start) < min(child.end, span.end) for child in owner.children)


@given(trees(), st.integers(-1000, 1000), st.integers(1, 9))
def test_shifting_and_scaling_a_timeline_changes_nothing_else(tree, by, scale):
    expected = [(s.detail, s.start * scale + by, s.end * scale + by) for s in blocking_path(tree)]
    assert [(s.detail, s.start, s.end) for s in blocking_path(moved(tree, by=by, scale=scale))] == expected


@given(trees(), st.randoms(use_true_random=False))
def test_the_order_in_which_children_are_listed_changes_nothing(tree, rng):
    def shuffle(a, kids):
        return Activity(a.id, a.start, a.end, a.phase, a.detail, a.lane, tuple(rng.sample(kids, len(kids))))

    assert blocking_path(changed(tree, shuffle)) == blocking_path(tree)
    assert work(changed(tree, shuffle)) == work(tree)


@given(st.lists(st.integers(0, 60), min_size=2, max_size=8, unique=True))
def test_without_overlap_each_activity_gets_its_own_duration(cuts):
    bounds = list(pairwise(sorted(cuts)))[::2]
    root = activity(0, 0, 60, Phase.OVERHEAD, *[activity(n, s, e) for n, (s, e) in enumerate(bounds, 1)])
    sums = by_detail(blocking_path(root))
    assert {k: v for k, v in sums.items() if k != "a0"} == {f"a{n}": e - s for n, (s, e) in enumerate(bounds, 1)}
    assert parallelism(root) == 1.0


@given(trees())
def test_work_by_phase_is_never_less_than_the_path_shows(tree):
    done = work(tree)
    shown = {phase: sum(s.duration for s in blocking_path(tree) if s.phase is phase) for phase in Phase}
    assert all(shown[phase] <= done.get(phase, 0) for phase in Phase)
    assert parallelism(tree) == sum(done.values()) / 60 >= 1


@given(trees(), st.data())
def test_a_child_strictly_inside_a_sibling_on_the_path_changes_nothing(tree, data):
    shown = {span.detail for span in blocking_path(tree)}
    hosts = [child for child in tree.children if child.detail in shown and child.end - child.start > 2]
    if not hosts:
        return
    host = data.draw(st.sampled_from(hosts))
    start = data.draw(st.integers(host.start + 1, host.end - 2))
    end = data.draw(st.integers(start + 1, host.end - 1))
    hidden = activity(999, start, end)
    fuller = Activity(0, 0, 60, Phase.OVERHEAD, "a0", children=(*tree.children, hidden))
    assert blocking_path(fuller) == blocking_path(tree)


def test_staggered_tools_split_where_the_second_began():
    root = activity(0, 0, 1000, Phase.OVERHEAD, activity(1, 0, 600, detail="A"), activity(2, 400, 1000, detail="B"))
    assert by_detail(blocking_path(root)) == {"A": 400, "B": 600}
    assert work(root) == {Phase.TOOL: 1200}


def test_a_tool_that_starts_inside_decode_keeps_the_decode_before_it():
    model = activity(
        1, 0, 1500, Phase.UNSPLIT, activity(2, 0, 600, Phase.PREFILL), activity(3, 600, 1500, Phase.DECODE)
    )
    root = activity(0, 0, 2000, Phase.OVERHEAD, model, activity(4, 900, 1900, Phase.TOOL))
    spans = blocking_path(root)
    assert [(s.phase, s.start, s.end) for s in spans] == [
        (Phase.PREFILL, 0, 600),
        (Phase.DECODE, 600, 900),
        (Phase.TOOL, 900, 1900),
        (Phase.OVERHEAD, 1900, 2000),
    ]


def test_prefill_and_decode_that_touch_are_both_kept():
    root = activity(
        0, 0, 2900, Phase.OVERHEAD, activity(1, 0, 800, Phase.PREFILL), activity(2, 800, 2900, Phase.DECODE)
    )
    assert [(s.phase, s.duration) for s in blocking_path(root)] == [(Phase.PREFILL, 800), (Phase.DECODE, 2100)]


def test_b21_parallel_tools_keep_their_durations_and_the_wave_is_their_union():
    """Field note B21: A 1-4 and B 2-5 were shown as 2 s + 1 s because they shared one start."""
    wave = activity(0, 1, 5, Phase.OVERHEAD, activity(1, 1, 4, detail="A"), activity(2, 2, 5, detail="B"))
    assert total(blocking_path(wave)) == 4
    assert {s.phase for s in blocking_path(wave)} == {Phase.TOOL}
    assert work(wave) == {Phase.TOOL: 6}
    assert parallelism(wave) == 1.5


def test_b21_chained_overlaps_are_one_stretch_of_tool_time():
    root = activity(0, 0, 12, Phase.OVERHEAD, activity(1, 0, 5), activity(2, 4, 9), activity(3, 8, 12))
    assert total(blocking_path(root)) == 12
    assert {s.phase for s in blocking_path(root)} == {Phase.TOOL}
    assert work(root) == {Phase.TOOL: 14}


def test_b22_a_thirty_second_approval_leaves_the_figures_as_they_were():
    second = 1_000_000_000
    quick = activity(0, 0, 9 * second, Phase.OVERHEAD, activity(1, second, 4 * second, Phase.DECODE))
    slow = activity(0, 0, 39 * second, Phase.OVERHEAD, activity(1, second, 4 * second, Phase.DECODE))
    cut = without(blocking_path(slow), [Pause(5 * second, 35 * second, "approval")])
    assert by_detail(cut) == by_detail(blocking_path(quick))
    assert all(span.end <= 5 * second or span.start >= 35 * second for span in cut)


@given(trees(), st.lists(st.tuples(st.integers(-5, 65), st.integers(-5, 65)), max_size=4))
def test_pauses_take_out_exactly_the_paused_time_inside(tree, bounds):
    pauses = [Pause(min(each), max(each)) for each in bounds]
    paused = {time for pause in pauses for time in range(pause.start, pause.end)}
    left = without(blocking_path(tree), pauses)
    seen = {time for span in left for time in range(span.start, span.end)}
    assert seen == set(range(60)) - paused
    assert total(left) == len(seen)


def test_an_activity_that_ends_before_it_starts_takes_no_time():
    """A server may answer before the upload is over: first token before `sent`."""
    root = activity(0, 0, 10, Phase.OVERHEAD, activity(1, 7, 3, Phase.PREFILL), activity(2, 7, 10, Phase.DECODE))
    assert by_detail(blocking_path(root)) == {"a0": 7, "a2": 3}
    assert work(root) == {Phase.DECODE: 3, Phase.OVERHEAD: 7}


def test_a_run_that_took_no_time_has_an_empty_path():
    assert blocking_path(activity(0, 5, 5)) == ()
    assert parallelism(activity(0, 5, 5)) == 1.0


def test_equal_children_are_told_apart_by_id():
    twins = [activity(2, 0, 10, detail="second"), activity(1, 0, 10, detail="first")]
    assert by_detail(blocking_path(activity(0, 0, 10, Phase.OVERHEAD, *twins))) == {"first": 10}


def test_neighbours_that_say_the_same_are_one_span():
    parts = [activity(n, n, n + 1, detail="search") for n in range(10)]
    assert len(blocking_path(activity(0, 0, 10, Phase.OVERHEAD, *parts))) == 1


def test_lanes_are_carried_and_keep_spans_apart():
    left = Activity(1, 0, 5, Phase.DECODE, lane=1)
    right = Activity(2, 5, 9, Phase.DECODE, lane=2)
    spans = blocking_path(Activity(0, 0, 9, Phase.OVERHEAD, children=(left, right)))
    assert [(s.lane, s.duration) for s in spans] == [(1, 5), (2, 4)]


@pytest.mark.parametrize("shape", ["wide", "deep"])
def test_ten_thousand_activities_are_no_matter(shape):
    """Neither the recursion limit nor quadratic time: this would take minutes if each step looked at every sibling."""
    rng = random.Random(7)  # noqa: S311
    if shape == "wide":
        starts = [rng.randrange(10**6) for _ in range(10_000)]
        children = [activity(n, s, s + rng.randrange(1, 5000)) for n, s in enumerate(starts, 1)]
        tree = activity(0, 0, 10**6, Phase.OVERHEAD, *children)
    else:
        tree = activity(10_000, 10_000, 10**6 - 10_000)
        for n in range(9_999, -1, -1):
            tree = activity(n, n, 10**6 - n, Phase.TOOL, tree)
    assert total(blocking_path(tree)) == 10**6
    assert work(tree)
