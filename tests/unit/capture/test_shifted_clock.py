"""In a process of its own: what it does to one can't be undone."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

THEN = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
NS = 1_000_000_000
START = f"""\
import datetime as module, time, decimal
from datetime import date, datetime, timezone

def year():
    return datetime.now().year

for _ in range(500):  # the interpreter has specialised the call by now
    year()
class Mine(datetime): pass
before, tick, started = datetime.now(), time.perf_counter(), time.monotonic()
from pytest_agentlatency.capture import shifted_clock
shifted_clock.move_to({int(THEN.timestamp()) * NS})
"""


def says(expression):
    """What an expression is in a process that was moved to THEN."""
    command = [sys.executable, "-W", "ignore", "-c", f"{START}print({expression})"]
    return subprocess.run(command, capture_output=True, text=True, check=True, env={"TZ": "UTC"}).stdout.strip()  # noqa: S603


@pytest.mark.parametrize(
    "expression",
    [
        "year()",
        "datetime.now(timezone.utc).year",
        "datetime.today().year",
        "datetime.utcnow().year",
        "date.today().year",
        "module.datetime.now().year",
        "Mine.now().year",
        "time.localtime().tm_year",
        "time.gmtime().tm_year",
        "time.strftime('%Y')",
        "time.ctime()[-4:]",
        "time.asctime()[-4:]",
        "time.gmtime(time.time()).tm_year",
        "time.gmtime(time.time_ns() // 10**9).tm_year",
    ],
)
def test_every_way_to_ask_for_the_date_gives_the_other_one(expression):
    assert says(expression) == "2031"


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("time.gmtime(0).tm_year", "1970"),
        ("time.strftime('%Y', time.gmtime(0))", "1970"),
        ("time.ctime(0)[-4:]", "1970"),
        ("datetime.fromtimestamp(0).year", "1970"),
        ("datetime(2020, 1, 1)", "2020-01-01 00:00:00"),
        ("isinstance(before, datetime) and isinstance(datetime.now(), type(before))", "True"),
        ("type(Mine.now()).__name__", "Mine"),
        ("datetime.now(timezone.utc).tzinfo", "UTC"),
        ("time.perf_counter() - tick < 60 and time.monotonic() - started < 60", "True"),
    ],
)
def test_everything_else_stays_as_it_is(expression, answer):
    assert says(expression) == answer


def test_the_other_clock_goes_on():
    assert says("time.time_ns() < time.time_ns() + 1 and datetime.now() <= datetime.now()") == "True"
