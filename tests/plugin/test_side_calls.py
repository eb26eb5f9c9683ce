"""What an agent asks of a model's host beside generation: counting tokens, batches, files."""

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
