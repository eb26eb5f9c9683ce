"""HTTP that is no model call is recorded and replayed by vcrpy, in the same cassette."""

import pytest

from tests.support.suite import interactions
from tests.support.webapp import WebApp

LOOKS_UP = """
import os
import urllib.request

import aiohttp
import httpx
import httpx2
import requests
import urllib3

def by_urllib(url):
    return urllib.request.urlopen(url).read().decode()

def by_requests(url):
    return requests.get(url).text

def by_urllib3(url):
    return urllib3.PoolManager().request("GET", url).data.decode()

def by_httpx(url):
    return httpx.get(url).text

def by_httpx2(url):
    return httpx2.get(url).text

def by_aiohttp(url):
    async def main():
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return await answer.text()
    return asyncio.run(main())

def by_async_httpx2(url):
    async def main():
        async with httpx2.AsyncClient() as client:
            return (await client.get(url)).text
    return asyncio.run(main())

@pytest.mark.agent_latency
def test_agent(agent_run, url):
    with agent_run.tool("search"):
        found = {client}(os.environ["APP_URL"] + "/parcels?town=Kassel")
    assert found == "answer 1"
    assert loop(url, result=found) == "It was found."
"""
CLIENTS = ["by_urllib", "by_requests", "by_urllib3", "by_httpx", "by_httpx2", "by_aiohttp", "by_async_httpx2"]


@pytest.fixture
def app(suite):
    app = WebApp()
    suite.setenv("APP_URL", app.url)
    yield app
    app.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_tools_own_http_replays_from_the_same_cassette(suite, app, client):
    """Offline: the service is gone, and would answer otherwise if it were asked again."""
    suite.written(LOOKS_UP.replace("{client}", client))
    assert app.asked == ["GET /parcels?town=Kassel"]
    found = interactions(suite.cassette())
    assert [each["request"]["method"] for each in found] == ["POST"] * 3 + ["GET"]
    assert [each["request"]["uri"] for each in found][-1] == f"{app.url}/parcels?town=Kassel"
    suite.run().assert_outcomes(passed=1)
    app.close()
    suite.run().assert_outcomes(passed=1)
    assert app.asked == ["GET /parcels?town=Kassel"]


def test_plain_vcrpy_reads_the_cassette(suite, app):
    """Its conventions are the file's."""
    import vcr  # noqa: PLC0415

    cassette = suite.written(LOOKS_UP.replace("{client}", "by_requests"))
    with vcr.use_cassette(str(cassette), record_mode="none") as played:
        assert len(played.requests) == 4


def test_a_request_that_was_not_recorded_is_refused_and_named(suite, app):
    suite.written(LOOKS_UP.replace("{client}", "by_requests"))
    suite.write(LOOKS_UP.replace("{client}", "by_requests").replace("Kassel", "Fulda"))
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"requests asked for GET {app.url}/parcels?town, which the cassette doesn't hold."])
    assert len(app.asked) == 1


def test_one_that_the_agent_swallows_is_told_all_the_same(suite, app):
    suite.written(LOOKS_UP.replace("{client}", "by_requests"))
    suite.write("""
import os
import requests

@pytest.mark.agent_latency
def test_agent(url):
    loop(url, result="answer 1")
    try:
        requests.get(os.environ["APP_URL"] + "/other")
    except Exception:
        pass
""")
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["requests asked for *"])


def test_measuring_live_leaves_it_alone(suite, app):
    suite.write(LOOKS_UP.replace("{client}", "by_requests"))
    suite.run("--latency-mode=live").assert_outcomes(passed=1)
    assert app.asked == ["GET /parcels?town=Kassel"]
    assert suite.files() == []
