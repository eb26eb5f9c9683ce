"""`--latency-probe-prefix`: what only shows on another day or in another process."""

from pathlib import Path

import pytest

from pytest_agentlatency.testing.builders import growing, recording
from tests.support.prepared import marked, prepare

ROOT = str(Path(__file__).parents[2])
TITLE = "*latency: requests under another clock and other hash seeds*"


@pytest.fixture
def probe(pytester, monkeypatch):
    """Run a test that changes each body before it is sent, with and without the flag."""
    monkeypatch.setenv("PYTHONPATH", ROOT)
    prepare(pytester.path, recording(growing("linear", 3), tools=["search", "refund", "lookup", "cancel"]))
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider\n")

    def run(change, *options, phrases=("prefix stable",), marks=""):
        source = marked(*phrases, body=f"run({change})", marks=marks)
        (pytester.path / "test_agent.py").write_text(source, encoding="utf-8")
        return pytester.runpytest_inprocess("-p", "no:randomly", *options)

    return run


def system(expression):
    return f"lambda body: body.update(system='You are an agent. ' + {expression})"


def test_a_minute_in_the_system_prompt_passes_within_it_and_is_found_by_the_second_pass(probe):
    """FIELD_NOTES D2: all turns of a test are in one minute."""
    clock = system("datetime.now().strftime('%H:%M')")
    probe(clock).assert_outcomes(passed=1)
    result = probe(clock, "--latency-probe-prefix")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "*turn 1: system_changed at system*: time differs with another clock*",
        "* became *",
        TITLE,
        "turn 1 and 2 more: system_changed at system*",
    ])  # fmt: skip


@pytest.mark.parametrize(
    "today",
    [
        "date.today().isoformat()",
        "time.strftime('%A')",
        "str(datetime.now().year)",
        "time.ctime()[:10]",
        "str(int(time.time()) // 86400)",
    ],
)
def test_a_date_is_found_however_it_is_asked_for(probe, today):
    result = probe(system(today), "--latency-probe-prefix", phrases=("turns at most 3",))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["requests that a second pass changed: *::test_agent (system*another clock*)"])


def test_tools_out_of_a_set_are_found_as_reordered_by_another_hash_seed(probe):
    """FIELD_NOTES D3."""
    shuffled = "lambda body: body.update(tools=[tools[name] for name in {tool['name'] for tool in body['tools']}])"
    change = shuffled.replace("tools[name]", "dict((t['name'], t) for t in body['tools'])[name]")
    result = probe(change, "--latency-probe-prefix")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*tools_changed*tools reordered (same set) with another hash seed*"])


def test_an_id_out_of_chance_is_put_down_to_neither(probe):
    result = probe(system("os.urandom(8).hex()"), "--latency-probe-prefix", phrases=("turns at most 3",))
    result.stdout.fnmatch_lines(["requests that a second pass changed: *any second run*"])


def test_an_agent_that_depends_on_nothing_passes_and_nothing_is_said(probe):
    result = probe("", "--latency-probe-prefix", "-rP")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line(TITLE)
    result.stdout.no_fnmatch_line("requests that a second pass changed*")


def test_a_date_at_the_end_of_the_conversation_is_excused_where_that_turn_is(probe):
    last = "body['messages'][-1]['content'].append(dict(type='text', text=time.ctime()))"
    change = f"lambda body: len(body['messages']) > 4 and {last}"
    result = probe(change, "--latency-probe-prefix", phrases=("prefix stable except turns 3",))
    result.assert_outcomes(passed=1)
    probe(change, "--latency-probe-prefix").assert_outcomes(failed=1)


def test_a_test_that_moves_its_prefix_and_says_why_is_not_judged_for_it(probe):
    marks = "@pytest.mark.moves_cache_prefix(reason='the clock is the product')"
    result = probe(system("time.ctime()"), "--latency-probe-prefix", "-rP", marks=marks)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["waived *: moves_cache_prefix: the clock is the product", "budgets: 1 waived"])


def test_the_waiver_holds_without_a_second_pass_too_and_for_that_budget_only(probe):
    marks = "@pytest.mark.moves_cache_prefix(reason='a counter is wanted')"
    change = "lambda body: body.update(system=str(len(body['messages'])))"
    probe(change).assert_outcomes(failed=1)
    probe(change, marks=marks).assert_outcomes(passed=1)
    probe(change, marks=marks, phrases=("prefix stable", "turns at most 2")).assert_outcomes(failed=1)


@pytest.mark.parametrize("arguments", ["", "'because'", "reason=''", "reason=1", "reason='x', turns=3"])
def test_a_waiver_without_a_reason_is_refused_at_collection(probe, arguments):
    result = probe("", marks=f"@pytest.mark.moves_cache_prefix({arguments})")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_agent.py::test_agent: moves_cache_prefix takes a reason*"])


def test_a_pass_that_can_not_be_done_fails_the_test_and_shows_what_it_printed(probe):
    """Nothing to compare is no stable prefix."""
    change = "lambda body: os.environ.get('PYTHONHASHSEED') == '2' and 1 / 0"
    result = probe(change, "--latency-probe-prefix")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the second pass of test_agent.py::test_agent sent nothing (seed 2)*"])


def test_the_cassette_and_the_folder_stay_as_they_were(probe, pytester):
    def files():
        return {
            path: path.read_bytes() for path in pytester.path.rglob("*") if path.is_file() and path.suffix != ".pyc"
        }

    (pytester.path / "test_agent.py").write_text(marked("prefix stable", body=f"run({system('time.ctime()')})"))
    before = files()
    probe(system("time.ctime()"), "--latency-probe-prefix")
    assert files() == before


def test_under_xdist_each_worker_probes_its_own_test(probe):
    result = probe(system("time.strftime('%Y')"), "--latency-probe-prefix", "-n1")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*with another clock*"])
