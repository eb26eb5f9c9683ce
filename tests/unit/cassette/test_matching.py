"""Which recorded call answers a live one. Requests are Anthropic bodies; answers say who gave them."""

import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.cassette.masks import Masks
from pytest_agentlatency.cassette.matching import Match, Matcher, Unmatched
from pytest_agentlatency.cassette.secrets import Learned
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Attempt, CallRecord, Facts, Recording, Request, Response, Stamps
from pytest_agentlatency.model.run import Verdict

SYSTEM = "You answer customers of a parcel service. Be short and polite."
SEARCH = {"name": "search", "description": "Find pages.", "input_schema": {"type": "object"}}

Said = dict[str, Any]


def user(text: str) -> Said:
    return {"role": "user", "content": text}


def assistant(text: str) -> Said:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def ask(*messages: Said, **more: Any) -> Request:
    body = {"model": "m", "system": SYSTEM, "tools": [SEARCH], "messages": list(messages), **more}
    return Request("POST", "https://host/v1/messages", (), json.dumps(body).encode())


def reply(text: str, status: int = 200) -> Response:
    if status != 200:
        return Response(status, chunks=(b'{"type":"error","error":{"type":"overloaded_error"}}',))
    content = [{"type": "text", "text": text}]
    body = {"type": "message", "id": f"msg_{text}", "role": "assistant", "content": content}
    return Response(status, chunks=(json.dumps(body).encode(),))


def recorded(*calls: Request | tuple[Request, ...], test: str = "", together: bool = False) -> Recording:
    """Call n, from 1, was answered `a<n>`; a tuple is a call with failed attempts before the last.

    With `together` all calls were in flight at the same time.
    """
    attempts, records = [], []
    for number, requests in enumerate(calls, start=1):
        tries = requests if isinstance(requests, tuple) else (requests,)
        for position, request in enumerate(tries, start=1):
            start = number if together else 1000 * number + 10 * position
            stamps = Stamps(Ns(start), Ns(1_000_000 if together else start + 5))
            status = 200 if position == len(tries) else 529
            attempts.append(Attempt(number, request, reply(f"a{number}", status), stamps))
        records.append(CallRecord(number))
    return Recording(tuple(attempts), tuple(records), facts=Facts(test=test))


def conversation(task: str, turns: int, first: int = 1, results: Callable[[int], str] = "r{}".format) -> list[Request]:
    """Requests of a lane whose answers are `a<first>`, `a<first + 1>`, ..."""
    history, requests = [user(task)], []
    for turn in range(turns):
        requests.append(ask(*history))
        history += [assistant(f"a{first + turn}"), user(results(turn))]
    return requests


def take_all(matcher: Matcher, requests: Sequence[Request]) -> list[Match]:
    return [matcher.take(number, request) for number, request in enumerate(requests, start=1)]


def places(matches: Sequence[Match]) -> list[tuple[int, int]]:
    return [(match.lane, match.turn) for match in matches]


def test_unchanged_run_is_identical_call_by_call():
    requests = conversation("Q", 4)
    matcher = Matcher(recorded(*requests))
    matches = take_all(matcher, requests)
    assert {match.verdict for match in matches} == {Verdict.IDENTICAL}
    assert places(matches) == [(1, 1), (1, 2), (1, 3), (1, 4)]
    assert matcher.pairs == ((1, 1), (2, 2), (3, 3), (4, 4))
    assert matcher.unused() == ()
    assert all(match.difference is None for match in matches)


def test_key_order_white_space_and_host_are_no_drift_a9():
    request = ask(user("Q"))
    body = json.loads(request.body)
    other = json.dumps(dict(reversed(body.items())), indent=2).encode()
    match = Matcher(recorded(request)).take(1, Request("POST", "http://127.0.0.1:8080/v1/messages", (), other))
    assert match.verdict is Verdict.IDENTICAL


def test_grown_system_prompt_drifts_every_turn_and_plays_on_a1():
    def changed(request: Request) -> Request:
        body = json.loads(request.body)
        return Request(request.method, request.url, (), json.dumps({**body, "system": SYSTEM + "x" * 2000}).encode())

    requests = conversation("Q", 3)
    matches = take_all(Matcher(recorded(*requests)), [changed(each) for each in requests])
    assert places(matches) == [(1, 1), (1, 2), (1, 3)]
    assert {match.verdict for match in matches} == {Verdict.DRIFTED}
    assert {match.difference.path for match in matches if match.difference} == {"system"}
    assert not any(match.masked for match in matches)
    with pytest.raises(Unmatched, match="strict"):
        Matcher(recorded(*requests), strict=True).take(1, changed(requests[0]))


def test_rewritten_system_prompt_of_the_only_lane_drifts():
    requests = conversation("Where is my parcel?", 2)
    body = json.loads(requests[0].body)
    changed = json.dumps({**body, "system": "Act as a courteous clerk at all times."}).encode()
    match = Matcher(recorded(*requests)).take(1, Request("POST", requests[0].url, (), changed))
    assert (match.lane, match.turn, match.verdict) == (1, 1, Verdict.DRIFTED)


def test_tool_that_returns_the_time_drifts_masked_and_completes_a13():
    requests = conversation("Q", 4, results=lambda _turn: f"It is {time.time()}.")
    live = conversation("Q", 4, results=lambda _turn: f"It is {time.time() + 86_400}.")
    for strict in (False, True):  # volatile spans are declared not to matter: strict lets them pass
        matches = take_all(Matcher(recorded(*requests), strict=strict), live)
        assert [match.verdict for match in matches] == [Verdict.IDENTICAL, *[Verdict.DRIFTED] * 3]
        assert [match.masked for match in matches] == [False, True, True, True]
    assert matches[1].difference is not None
    assert matches[1].difference.path == "messages[2].content"


def test_now_in_the_prompt_matches_and_is_told_a12():
    live = ask(user("Q"), system="It is 2026-08-22T12:03:19Z.")
    match = Matcher(recorded(ask(user("Q"), system="It is 2026-08-21T09:00:00Z."))).take(1, live)
    assert (match.verdict, match.masked) == (Verdict.DRIFTED, True)
    assert match.difference is not None
    assert match.difference.path == "system"


def test_mask_declared_after_the_recording_hits_a14():
    recording = recorded(ask(user("order-1")), ask(user("Another thing entirely, with more words")))
    match = Matcher(recording, masks=Masks([r"order-\d+"])).take(1, ask(user("order-2")))
    assert match.masked


def test_of_two_that_differ_in_volatile_spans_the_nearer_is_taken():
    """Two calls for two days, each with a fresh uuid: the day tells them apart."""
    first, second = (ask(user(f"{uuid.uuid4()} Weather on 2026-01-0{day}?")) for day in (1, 2))
    live = ask(user(f"{uuid.uuid4()} Weather on 2026-01-02?"))
    assert Matcher(recorded(first, second)).take(1, live).record.id == 2


def test_bodies_that_are_no_json_are_never_equal_unless_their_bytes_are_a11():
    one, other = (
        Request("POST", "https://host/v1/messages", (), body) for body in (b'\xff"messages"1', b'\xff"messages"2')
    )
    matcher = Matcher(recorded(one, other))
    assert matcher.take(1, other).record.id == 2
    with pytest.raises(Unmatched):
        matcher.take(2, Request("POST", "https://host/v1/messages", (), b'\xfe"messages"3'))


def test_equal_requests_are_taken_first_in_first_out():
    matches = take_all(Matcher(recorded(*[ask(user("Q"))] * 3)), [ask(user("Q"))] * 3)
    assert [match.record.id for match in matches] == [1, 2, 3]


def test_parallel_calls_pair_the_same_in_any_order_50_of_50_a5():
    requests = [ask(user(f"Task {n}")) for n in range(8)]
    recording = recorded(*requests, together=True)
    for seed in range(50):
        order = list(range(8))
        random.Random(seed).shuffle(order)  # noqa: S311
        matcher = Matcher(recording)
        paired = {n: matcher.take(position, requests[n]) for position, n in enumerate(order, start=1)}
        assert {n: match.record.id for n, match in paired.items()} == {n: n + 1 for n in range(8)}
        assert {match.verdict for match in paired.values()} == {Verdict.IDENTICAL}


def test_parallel_lanes_that_drift_pair_the_same_in_any_order_50_of_50_a5():
    """Three conversations of three turns, interleaved at will, each with a longer result than recorded."""
    tasks = ["Find a hotel in Rome", "Compare train tickets", "Write a packing list"]
    lanes = [conversation(task, 3, first=3 * n + 1) for n, task in enumerate(tasks)]
    changed = [
        conversation(task, 3, first=3 * n + 1, results=lambda t: f"r{t} and more") for n, task in enumerate(tasks)
    ]
    recording = recorded(*[request for lane in lanes for request in lane])
    for seed in range(50):
        order = [0, 0, 0, 1, 1, 1, 2, 2, 2]
        random.Random(seed).shuffle(order)  # noqa: S311
        matcher, turns = Matcher(recording), [0, 0, 0]
        for position, lane in enumerate(order, start=1):
            match = matcher.take(position, changed[lane][turns[lane]])
            turns[lane] += 1
            assert (match.lane, match.turn) == (lane + 1, turns[lane])
            assert match.verdict is (Verdict.IDENTICAL if turns[lane] == 1 else Verdict.DRIFTED)


def test_drifted_lane_leaves_the_exact_request_of_another_alone():
    """A and B were recorded; live, a changed B comes first. A's exact request still finds A."""
    recording = recorded(ask(user("Find a hotel in Rome")), ask(user("Compare train tickets")), together=True)
    matcher = Matcher(recording)
    changed = matcher.take(1, ask(user("Compare train tickets for two")))
    exact = matcher.take(2, ask(user("Find a hotel in Rome")))
    assert (changed.record.id, changed.verdict) == (2, Verdict.DRIFTED)
    assert (exact.record.id, exact.verdict) == (1, Verdict.IDENTICAL)


def test_thread_pool_loses_and_doubles_nothing_a6():
    requests = [ask(user(f"Task {n}")) for n in range(40)]
    recording = recorded(*requests, together=True)
    for _ in range(5):
        matcher = Matcher(recording)
        barrier = threading.Barrier(4)

        def work(n: int, matcher: Matcher = matcher, barrier: threading.Barrier = barrier) -> int:
            if n < 4:
                barrier.wait(10)
            return matcher.take(n, requests[n]).record.id

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, range(40))) == list(range(1, 41))
        assert matcher.unused() == ()


def test_side_call_and_main_lane_keep_apart():
    title = ask(user("Where is it?"), system="Write a title of five words.", tools=[])
    main = conversation("Where is it?", 2, first=2)
    matcher = Matcher(recorded(title, *main))
    matches = take_all(
        matcher, [ask(user("Where is it now?")), ask(user("Where is it now?"), assistant("a2"), user("r0"))]
    )
    assert places(matches) == [(2, 1), (2, 2)]
    assert [(call.lane, call.turn) for call in matcher.unused()] == [(1, 1)]


def test_retries_get_the_recorded_attempts_in_order():
    request = ask(user("Q"))
    matcher = Matcher(recorded((request, request, request)))
    statuses = [matcher.take(1, request).recorded.response for _ in range(3)]
    assert [each.status for each in statuses if each] == [529, 529, 200]
    with pytest.raises(Unmatched, match="made 4 attempts; the recorded one made 3"):
        matcher.take(1, request)


def test_re_ask_that_drifts_is_answered_by_the_recorded_re_ask():
    request, changed = ask(user("Q")), ask(user("Q, please"))
    recording = recorded(request, request, ask(user("Q"), assistant("a2"), user("go on")))
    matches = take_all(Matcher(recording), [changed, changed, ask(user("Q, please"), assistant("a2"), user("go on"))])
    assert [match.record.id for match in matches] == [1, 2, 3]


def test_re_ask_left_out_is_passed_over():
    request = ask(user("Q"))
    recording = recorded(request, request, ask(user("Q"), assistant("a2"), user("go on")))
    matcher = Matcher(recording)
    matches = take_all(matcher, [request, ask(user("Q"), assistant("a1"), user("go on"))])
    assert [match.record.id for match in matches] == [1, 3]
    assert [call.record.id for call in matcher.unused()] == [2]


def test_equal_drifted_requests_in_parallel_take_parallel_lanes():
    recording = recorded(*[ask(user("Roll a die"))] * 3, together=True)
    matches = take_all(Matcher(recording), [ask(user("Roll a die now"))] * 3)
    assert places(matches) == [(1, 1), (2, 1), (3, 1)]


def test_history_held_by_the_server_is_matched_by_its_chain():
    def continued(text: str, previous: str) -> Request:
        body = {"model": "m", "messages": [user(text)], "thread": {"previous_message_id": previous}}
        return Request("POST", "https://host/v1/messages", (), json.dumps(body).encode())

    recording = recorded(ask(user("Q")), continued("r1", "msg_a1"), continued("r2", "msg_a2"))
    live = [ask(user("Q")), continued("r1 longer", "msg_a1"), continued("r2 longer", "msg_a2")]
    assert places(take_all(Matcher(recording), live)) == [(1, 1), (1, 2), (1, 3)]


def test_run_that_stops_early_names_what_was_left_a20():
    requests = conversation("Q", 5)
    matcher = Matcher(recorded(*requests))
    take_all(matcher, requests[:2])
    assert [(call.lane, call.turn) for call in matcher.unused()] == [(1, 3), (1, 4), (1, 5)]


def test_call_beyond_the_recorded_turns_is_unmatched():
    requests = conversation("Q", 3)
    matcher = Matcher(recorded(*requests[:2], test="tests/test_a.py::test_b[x y]"))
    take_all(matcher, requests[:2])
    with pytest.raises(Unmatched) as error:
        matcher.take(3, requests[2])
    message = str(error.value)
    assert "lane 1 of the cassette holds 2 turn(s)" in message
    assert "nearest recorded call: lane 1, turn 2" in message
    assert "messages[3]" in message
    assert "pytest 'tests/test_a.py::test_b[x y]' --latency-mode=record" in message


def test_lane_that_runs_on_takes_nothing_from_another():
    """Both lanes have one system prompt; the second was recorded and is still to come."""
    first, second = conversation("Find a hotel in Rome", 2), conversation("Compare train tickets", 1, first=3)
    matcher = Matcher(recorded(*first, *second))
    take_all(matcher, first)
    with pytest.raises(Unmatched, match="lane 1 of the cassette holds 2 turn"):
        matcher.take(3, conversation("Find a hotel in Rome", 3)[2])
    assert matcher.take(4, second[0]).verdict is Verdict.IDENTICAL


def test_request_made_once_too_often_says_so():
    matcher = Matcher(recorded(ask(user("Q"))))
    matcher.take(1, ask(user("Q")))
    with pytest.raises(Unmatched, match=r"once more that the cassette holds 1 time"):
        matcher.take(2, ask(user("Q")))


def test_miss_is_told_in_few_lines_with_path_snippets_and_size_a8():
    """One word in message 4 of a long request, in a conversation that was not recorded."""
    history = [user("Q"), assistant("x"), user("y"), assistant("z"), user("word " * 20_000)]
    changed = [*history[:4], user("word " * 10_000 + "sword " + "word " * 9_999)]
    matcher = Matcher(recorded(ask(*history)))
    matcher.take(1, ask(*history))
    with pytest.raises(Unmatched) as error:
        matcher.take(2, ask(*changed))
    message = str(error.value)
    assert len(message.splitlines()) < 15
    assert "messages[4].content" in message
    assert "sword" in message
    assert error.value.characters == 1
    assert max(map(len, message.splitlines())) < 120


def test_miss_shows_no_secret_of_either_request():
    key = "sk-ant-api03-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8"
    matcher = Matcher(recorded(ask(user(f"My key is {key}."))))
    matcher.take(1, ask(user(f"My key is {key}.")))
    with pytest.raises(Unmatched) as error:
        matcher.take(2, ask(user(f"My key is {key[:-2]}Zz.")))
    assert "sk-ant" not in str(error.value) + repr(error.value)


def test_learned_credential_is_shown_in_no_difference():
    """It has no prefix that would give it away."""
    matcher = Matcher(recorded(ask(user("Q"))), learned=Learned(["gateway0123456789"]))
    match = matcher.take(1, ask(user("Q gateway0123456789")))
    assert match.difference is not None
    assert "gateway" not in match.difference.live


def test_empty_cassette_answers_nothing():
    matcher = Matcher(Recording())
    with pytest.raises(Unmatched, match="starts a conversation that the cassette doesn't hold"):
        matcher.take(1, ask(user("Q")))


def test_recorded_answer_that_the_caller_could_not_read_is_not_given():
    """A stream was recorded; the agent now asks for one JSON body."""
    with pytest.raises(Unmatched) as error:
        Matcher(recorded(ask(user("Q"), stream=True))).take(1, ask(user("Q")))
    assert error.value.difference is not None
    assert error.value.difference.path == "stream"


def test_conversation_unlike_any_recorded_one_is_unmatched():
    stranger = ask(user("Classify: spam or not?"), system="Reply with one label only.", tools=[], model="small")
    with pytest.raises(Unmatched, match="starts a conversation"):
        Matcher(recorded(*conversation("Where is my parcel?", 2))).take(1, stranger)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.randoms())
def test_every_live_call_ends_as_one_verdict_and_no_recorded_call_answers_two(order, drawn):
    """Lanes in any interleaving, their requests changed at random."""
    recording = recorded(*[each for n in range(3) for each in conversation(f"Task {n} " * 3, 4, first=4 * n + 1)])
    matcher, histories, ids = Matcher(recording), [[user(f"Task {n} " * 3)] for n in range(3)], []
    for number, lane in enumerate(order, start=1):
        try:
            match = matcher.take(number, ask(*histories[lane]))
        except Unmatched:
            continue
        ids.append(match.record.id)
        result = f"r{match.turn - 1}" if drawn.random() < 0.5 else f"result {drawn.random()}"
        histories[lane] += [assistant(f"a{match.record.id}"), user(result)]
    assert len(set(ids)) == len(ids)
    assert {call.record.id for call in matcher.unused()} == set(range(1, 13)) - set(ids)
