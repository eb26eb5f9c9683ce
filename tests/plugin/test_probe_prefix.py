"""`--latency-probe-prefix`: what only shows on another day or in another process."""

import re

import pytest

from pytest_agentlatency.testing.builders import growing, recording
from tests.support.prepared import Told, marked, names, run, write_suite

OBSERVED = recording(growing("linear", 3), tools=["search", "refund", "lookup", "cancel"])
TITLE = "latency: requests under another clock and other hash seeds"


def system(expression):
    """A change of each body: something at the end of its system prompt."""
    return f"lambda body: body.update(system='You are an agent. ' + {expression})"


MINUTE = (  # looked at once: a test that goes over the minute would have a break of its own
    "lambda body, minute=datetime.now().strftime('%H:%M'): body.update(system='You are an agent. It is ' + minute)"
)
LATE = (
    "lambda body: len(body['messages']) > 4 "
    "and body['messages'][-1]['content'].append(dict(type='text', text=time.ctime()))"
)
OUT_OF_A_SET = (
    "lambda body: body.update(tools=[dict((t['name'], t) for t in body['tools'])[name] "
    "for name in {t['name'] for t in body['tools']}])"
)
STABLE = "prefix stable"
TESTS = (
    marked("test_minute", STABLE, change=MINUTE),
    marked("test_date", change=system("date.today().isoformat()")),
    marked("test_weekday", change=system("time.strftime('%A')")),
    marked("test_year", change=system("str(datetime.now().year)")),
    marked("test_text", change=system("time.ctime()[:10]")),
    marked("test_seconds", change=system("str(int(time.time()) // 86400)")),
    marked("test_tools", STABLE, change=OUT_OF_A_SET),
    marked("test_chance", change=system("os.urandom(8).hex()")),
    marked("test_steady", STABLE),
    marked("test_late", STABLE, change=LATE),
    marked("test_excepted", "prefix stable except turns 3", change=LATE),
    marked(
        "test_waived", STABLE, change=system("time.ctime()"), marks="@pytest.mark.moves_cache_prefix(reason='a clock')"
    ),
    marked("test_torn", STABLE, change="lambda body: os.environ.get('PYTHONHASHSEED') == '2' and 1 / 0"),
    "\ndef test_of_another_kind():\n    assert True\n",
)


def write(folder, *tests):
    write_suite(folder, tests, dict.fromkeys(names(tests), OBSERVED))


def files(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}


class Probed(Told):
    """Every test of the suite, run in one session with the flag."""

    def __init__(self, folder):
        write(folder, *TESTS)
        self.before = files(folder)
        super().__init__(run(folder, "--latency-probe-prefix", "-rA", "-p", "no:cacheprovider").stdout)
        self.after = files(folder)


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    return Probed(tmp_path_factory.mktemp("suite"))


def test_a_minute_in_the_system_prompt_is_found_though_all_turns_are_within_it(probed):
    """Field note D2."""
    told = probed.of("test_minute")
    assert not probed.passed("test_minute")
    assert "1 prefix break, first at turn 1: system_changed" in told
    assert "turn 1: system_changed at system[0], time differs with another clock: " in told
    assert "turn 1 and 2 more: system_changed at system[0]: time differs with another clock" in told


@pytest.mark.parametrize("name", ["date", "weekday", "year", "text", "seconds"])
def test_a_date_is_found_however_it_is_asked_for(probed, name):
    told = probed.of(f"test_{name}")
    assert probed.passed(f"test_{name}")  # no budget of its is about the prefix
    assert TITLE in told
    assert re.search(r"system_changed at system\[0\]: .*differs with another clock", told)


def test_each_test_whose_requests_change_is_in_the_summary(probed):
    changed = re.findall(
        r"^requests that a second pass changed: test_agent.py::test_(\w+) ", probed.output, re.MULTILINE
    )
    expected = "minute date weekday year text seconds tools chance late excepted waived"
    assert sorted(changed) == sorted(expected.split())


def test_tools_out_of_a_set_are_found_as_reordered_by_another_hash_seed(probed):
    """Field note D3."""
    assert not probed.passed("test_tools")
    assert "tools reordered (same set) with another hash seed" in probed.of("test_tools")


def test_an_id_out_of_chance_is_put_down_to_neither(probed):
    assert "differs with any second run" in probed.of("test_chance")


def test_of_an_agent_that_depends_on_nothing_nothing_is_said(probed):
    assert probed.passed("test_steady")
    assert TITLE not in probed.of("test_steady")


def test_a_date_at_one_turn_is_excused_where_that_turn_is(probed):
    assert not probed.passed("test_late")
    assert "turn 3: messages_changed at messages[4]" in probed.of("test_late")
    assert probed.passed("test_excepted")
    assert TITLE in probed.of("test_excepted")


def test_a_test_that_says_why_it_moves_its_prefix_is_not_judged_for_it(probed):
    assert probed.passed("test_waived")
    assert re.search(r"waived +prefix stable: moves_cache_prefix: a clock", probed.of("test_waived"))


def test_a_pass_that_was_cut_short_fails_the_test_and_shows_what_it_printed(probed):
    """Nothing to compare is no stable prefix."""
    assert not probed.passed("test_torn")
    told = probed.of("test_torn")
    assert "no second pass of test_agent.py::test_torn: calls made: plain 3, clock 3, seed 2 0, seed 3 3" in told
    assert "ZeroDivisionError" in told


def test_tests_of_another_kind_are_left_alone(probed):
    assert probed.passed("test_of_another_kind")


def test_no_file_is_changed(probed):
    assert probed.after == probed.before


def test_under_xdist_each_worker_probes_its_own_test(tmp_path):
    write(tmp_path, marked("test_year", STABLE, change=system("time.strftime('%Y')")))
    done = run(tmp_path, "--latency-probe-prefix", "-n1")
    assert "with another clock" in done.stdout, done.stdout
    assert "1 failed" in done.stdout


def in_process(pytester, *tests):
    write(pytester.path, *tests)
    return pytester.runpytest_inprocess()


def test_without_the_flag_there_is_no_second_pass(pytester):
    result = in_process(pytester, marked("test_minute", STABLE, change=system("datetime.now().strftime('%Y')")))
    result.assert_outcomes(passed=1)


def test_the_waiver_holds_for_that_budget_only(pytester):
    marks = "@pytest.mark.moves_cache_prefix(reason='a counter is wanted')"
    change = "lambda body: body.update(system=str(len(body['messages'])))"
    result = in_process(
        pytester,
        marked("test_counter", STABLE, change=change),
        marked("test_waived", STABLE, change=change, marks=marks),
        marked("test_longer", STABLE, "turns at most 2", change=change, marks=marks),
    )
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*3 turns, budget 2*"])


@pytest.mark.parametrize("arguments", ["", "'because'", "reason=''", "reason=1", "reason='x', turns=3"])
def test_a_waiver_without_a_reason_is_refused_at_collection(pytester, arguments):
    result = in_process(pytester, marked("test_it", marks=f"@pytest.mark.moves_cache_prefix({arguments})"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_agent.py::test_it: moves_cache_prefix takes a reason*"])
