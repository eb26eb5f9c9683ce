"""What an agent asks of a model's host beside generation: counting tokens, batches, files."""

import pytest

from tests.support.agents import searches
from tests.support.webapp import WebApp

COUNTING = """
import anthropic

@pytest.mark.agent_latency
def test_agent(agent_run, url):
    with anthropic.Anthropic(base_url=url, api_key="a-key-of-24-characters-1") as client:
        count = client.messages.count_tokens(model="claude-sim", messages=[{"role": "user", "content": "%s"}])
    assert count.input_tokens
    assert loop(url) == "It was found."
    assert agent_run.calls == 3
"""


def test_counting_tokens_is_no_model_call_and_is_replayed(suite):
    cassette = suite.written(COUNTING % "How much?")
    asked = suite.received
    assert "a-key-of" not in cassette.read_text()
    suite.run().assert_outcomes(passed=1)
    assert suite.received == asked


@pytest.mark.parametrize("first", [True, False], ids=["before the model calls", "behind them"])
def test_it_moves_with_the_model_calls_to_another_base_url(suite, first):
    """A gateway in between, another port: the host is no part of a model call either."""
    counted, looped = COUNTING[COUNTING.index("    with ") : COUNTING.index("    assert loop")], "    loop(url)\n"
    head = COUNTING[: COUNTING.index("    with ")]
    suite.written((head + (counted + looped if first else looped + counted)) % "How much?")
    old, asked = suite.model, suite.received
    suite.serve(searches(3))
    assert suite.model.url != old.url
    suite.run().assert_outcomes(passed=1)
    assert (len(old.requests), suite.received) == (asked, 0)


def test_at_another_base_url_another_body_is_still_refused(suite):
    suite.written(COUNTING % "How much?")
    suite.serve(searches(3))
    suite.write(COUNTING % "How much is it now?")
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*/v1/messages/count_tokens, which the cassette doesn't hold."])
    assert suite.received == 0


def test_a_tools_own_service_that_moved_is_refused(suite):
    """Only what is asked of the model's host moves with it."""
    first, second = WebApp(), WebApp()
    suite.setenv("APP_URL", first.url)
    suite.written("""
import os
import requests

@pytest.mark.agent_latency
def test_agent(url):
    requests.get(os.environ["APP_URL"] + "/v1/models")
    loop(url)
""")
    suite.setenv("APP_URL", second.url)
    suite.run().assert_outcomes(failed=1)
    assert second.asked == []
    first.close()
    second.close()


def test_what_the_cassette_does_not_hold_fails_at_once_with_its_own_message_told_once(suite):
    """Not as the SDK's "Connection error." after two retries."""
    suite.written(COUNTING % "How much?")
    asked = suite.received
    suite.write(COUNTING % "How much is it now?")
    result = suite.run()
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert text.count("/v1/messages/count_tokens, which the cassette doesn't hold.") == 1
    assert "Connection error" not in text
    assert suite.received == asked
