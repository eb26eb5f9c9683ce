"""No secret reaches the disk, and none is shown. Field note A25, A26, A27."""

import pytest

from tests.support.webapp import WebApp

KEY = "sk-ant-api03-" + "Zx9Kq2Lm7Pw4" * 7 + "-AAAA"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def on_disk(suite):
    folder = suite.path / "cassettes"
    return b"".join(each.read_bytes() for each in folder.rglob("*") if each.is_file()) if folder.exists() else b""


def test_a_key_in_a_header_is_not_stored(suite):
    """The 2.x SDK sends it as a bearer token; a team's own gateway has headers of its own."""
    suite.written(f"""
import anthropic

@pytest.mark.agent_latency
def test_agent(url):
    headers = {{"x-gateway-secret": "{TOKEN}", "cookie": "session={TOKEN}"}}
    with anthropic.Anthropic(base_url=url, api_key="{KEY}", default_headers=headers) as client:
        ask(client, [{{"role": "user", "content": "hi"}}])
""")
    sent = suite.model.requests[0].headers
    assert KEY in sent.get("authorization", "") + sent.get("x-api-key", "")
    assert sent["x-gateway-secret"] == TOKEN
    assert KEY.encode() not in on_disk(suite)
    assert TOKEN.encode() not in on_disk(suite)
    suite.run().assert_outcomes(passed=1)


@pytest.mark.parametrize("secret", [KEY, TOKEN], ids=["the key", "a token"])
@pytest.mark.parametrize("outcome", ["passes", "fails"])
def test_a_secret_in_a_tools_result_is_not_written(suite, secret, outcome):
    """Not as a cassette, not as a rejected one; the message says where and what, never the value."""
    suite.write(f"""
import os

@pytest.mark.agent_latency
def test_agent(url):
    loop(url, result="the parcel's file says " + os.environ["SECRET"])
    assert {outcome == "passes"}
""")
    suite.setenv("SECRET", secret)
    result = suite.run("--latency-mode=record", "-vv", "--showlocals", "--tb=long")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*not recorded: the run holds what looks like secrets*", "*model call 2*request body*: *"]
    )
    assert suite.files() == []
    if outcome == "passes":
        result.stdout.no_fnmatch_line(f"*{secret}*")


def test_an_old_cassette_stays_when_the_new_one_holds_a_secret(suite):
    cassette = suite.written()
    before = cassette.read_bytes()
    suite.write(f"""
@pytest.mark.agent_latency
def test_agent(url):
    loop(url, result="{TOKEN}")
""")
    suite.run("--latency-mode=record").assert_outcomes(failed=1)
    assert cassette.read_bytes() == before
    assert suite.files() == ["test_agent/test_agent.yaml"]


def test_the_key_that_was_sent_is_known_whatever_it_looks_like(suite):
    """A gateway's key has no shape that a rule could know: it is known because it was sent."""
    suite.write("""
@pytest.mark.agent_latency
def test_agent(url):
    import anthropic
    with anthropic.Anthropic(base_url=url, api_key="our-gateway-9f3a7c21e5") as client:
        ask(client, [{"role": "user", "content": "My key is our-gateway-9f3a7c21e5, is it good?"}])
""")
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*model call 1*request body*: *"])
    assert suite.files() == []


def test_a_secret_in_a_tools_own_http_is_left_out(suite):
    """Where a credential belongs, it is taken out: in a header, in a parameter that has its name."""

    app = WebApp()
    suite.setenv("APP_URL", app.url)
    suite.write(f"""
import os
import requests

@pytest.mark.agent_latency
def test_agent(url):
    requests.get(os.environ["APP_URL"], headers={{"Authorization": "Bearer {TOKEN}"}})
    requests.get(os.environ["APP_URL"] + "/?access_token={TOKEN}")
    loop(url)
""")
    suite.record()
    app.close()
    assert TOKEN.encode() not in on_disk(suite)
    suite.run().assert_outcomes(passed=1)


def test_a_secret_elsewhere_in_a_tools_own_http_is_not_written(suite):
    app = WebApp()
    suite.setenv("APP_URL", app.url)
    suite.write(f"""
import os
import requests

@pytest.mark.agent_latency
def test_agent(url):
    requests.post(os.environ["APP_URL"], data="remember {TOKEN}")
    loop(url)
""")
    result = suite.run("--latency-mode=record")
    app.close()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*other HTTP 1 request body*: *"])
    assert suite.files() == []


# --- what is shown


def test_a_key_in_a_path_is_told_by_no_message_of_ours(suite):
    """A bot's address holds its token; what the cassette lacks is named all the same."""
    suite.written()
    suite.write(f"""
import requests

@pytest.mark.agent_latency
def test_agent(url):
    loop(url)
    requests.get("https://api.example.com/bot/{TOKEN}/send")
""")
    result = suite.run("--tb=short", "--no-showlocals", "-rA")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["requests asked for GET https://api.example.com/bot/*/send, which the cassette*"])
    result.stdout.no_fnmatch_line(f"*{TOKEN}*")


GATEWAY = f"""
import anthropic

@pytest.mark.agent_latency(drift="strict")
@pytest.mark.latency_budget("prefix stable")
def test_agent(agent_run, url):
    with anthropic.Anthropic(base_url=url + "/KEY", api_key="{TOKEN}", max_retries=0) as client:
        try:
            ask(client, [{{"role": "user", "content": "hi"}}])
        except anthropic.APIError:
            pass
"""


def test_an_error_that_echoes_the_key_adds_nothing_to_what_the_sdk_says(suite):
    """The gateway's address holds the key, and its 404 says it back: the agent swallows that, we tell nothing of it."""
    suite.write(GATEWAY.replace("/KEY", f"/{TOKEN}"))
    result = suite.run("--latency-mode=record", "-rA")
    result.assert_outcomes(failed=1)
    assert TOKEN in suite.model.requests[0].path
    result.stdout.fnmatch_lines(["*not recorded: the run holds what looks like secrets*"])
    result.stdout.no_fnmatch_line(f"*{TOKEN}*")
    assert suite.files() == []


def test_a_drifted_address_is_shown_without_the_key_in_it(suite):
    suite.written(GATEWAY.replace("/KEY", ""))
    suite.write(GATEWAY.replace("/KEY", f"/{TOKEN}"))
    result = suite.run("-rA")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*first difference: url"])
    result.stdout.no_fnmatch_line(f"*{TOKEN}*")


@pytest.mark.parametrize("secret", [TOKEN, KEY], ids=["a token", "a key longer than what is quoted"])
@pytest.mark.parametrize("system", ["Use SECRET at {number}.", "{number} uses SECRET.", "Use SECRET{number}."])
def test_the_evidence_of_a_broken_budget_shows_no_part_of_a_secret(suite, secret, system):
    """What broke the prefix is quoted from where it differs, in the middle of a secret, too; the place is told."""
    suite.write(f"""
import anthropic

@pytest.mark.agent_latency
@pytest.mark.latency_budget("prefix stable")
def test_agent(agent_run, url):
    with anthropic.Anthropic(base_url=url, api_key="not-a-key") as client:
        messages = [{{"role": "user", "content": "hi"}}]
        for number in range(3):
            message = ask(client, messages, system=f"{system.replace("SECRET", secret)}")
            messages += [{{"role": "assistant", "content": "Yes."}}, {{"role": "user", "content": "go on"}}]
""")
    result = suite.run("--latency-mode=record", "-rA")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*turn 2: system_changed at system*"])
    for start in range(0, len(secret) - 12, 4):
        assert secret[start : start + 12] not in result.stdout.str()
