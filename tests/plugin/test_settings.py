"""Where a value comes from: command line, then marker, then ini file; a bad one is refused by its source."""

import pytest

MARKED = """
@pytest.mark.agent_latency(mode="{mode}")
def test_agent(url):
    loop(url)
"""
ALL = ["replay", "record", "once", "live"]
FILES = {"replay": False, "record": True, "once": True, "live": False}


def obeyed(suite, mode):
    """Whether the one test was run in that mode, by what reached the model and the disk."""
    calls = 0 if mode == "replay" else 3
    return (suite.received, bool(suite.files())) == (calls, FILES[mode])


@pytest.mark.parametrize("mode", ALL)
def test_every_mode_can_be_set_on_the_command_line(suite, mode):
    """Field note A17."""
    suite.write()
    suite.run(f"--latency-mode={mode}")
    assert obeyed(suite, mode)


@pytest.mark.parametrize("mode", ALL)
def test_every_mode_can_be_set_in_the_ini_file(suite, mode):
    suite.ini(f"latency_mode = {mode}")
    suite.write()
    suite.run()
    assert obeyed(suite, mode)


@pytest.mark.parametrize("mode", ALL)
def test_every_mode_can_be_set_in_a_marker(suite, mode):
    suite.write(MARKED.format(mode=mode))
    suite.run()
    assert obeyed(suite, mode)


def test_the_command_line_goes_before_the_marker(suite):
    suite.write(MARKED.format(mode="record"))
    suite.run("--latency-mode=live").assert_outcomes(passed=1)
    assert suite.files() == []


def test_the_marker_goes_before_the_ini_file(suite):
    suite.ini("latency_mode = live")
    suite.write(MARKED.format(mode="record"))
    suite.run().assert_outcomes(passed=1)
    assert suite.files() == ["test_agent/test_agent.yaml"]


def test_the_nearest_marker_counts(suite):
    suite.write("""
pytestmark = pytest.mark.agent_latency(mode="record")

@pytest.mark.agent_latency(mode="live")
def test_agent(url):
    loop(url)
""")
    suite.run().assert_outcomes(passed=1)
    assert suite.files() == []


@pytest.mark.parametrize(
    ("options", "ini", "told"),
    [
        (["--latency-mode=rewrite"], "", "--latency-mode is 'rewrite': allowed are 'replay', 'record', 'once', 'live'"),
        ([], "latency_mode = all", "ini value latency_mode is 'all': allowed are 'replay'"),
        (["--latency-drift=loose"], "", "--latency-drift is 'loose': allowed are 'retime', 'strict'"),
        ([], "latency_drift = loose", "ini value latency_drift is 'loose': allowed are 'retime', 'strict'"),
        ([], "latency_counter = gpt2", "ini value latency_counter is 'gpt2': allowed are 'chars', 'tiktoken'"),
        (
            [],
            "latency_volatile =\n    [0-9",
            "ini value latency_volatile holds '[[]0-9', which is no regular expression",
        ),
    ],
)
def test_a_bad_value_names_itself_its_source_and_what_is_allowed(suite, options, ini, told):
    suite.ini(ini)
    suite.write()
    result = suite.run(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {told}*"])
    assert suite.received == 0


def test_a_bad_strict_growth_is_refused(suite):
    suite.ini("latency_strict_growth = maybe")
    suite.write()
    result = suite.run()
    assert result.ret != 0
    assert "maybe" in result.stderr.str() + result.stdout.str()


@pytest.mark.skipif(pytest.version_tuple < (9,), reason="pytest 8 doesn't read the native table")
def test_the_native_toml_table_takes_the_same_names(suite):
    """[tool.pytest] of pytest 9, strictly typed."""
    (suite.path / "tox.ini").unlink()
    (suite.path / "pyproject.toml").write_text("""\
[tool.pytest]
strict = true
addopts = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
asyncio_default_fixture_loop_scope = "function"
latency_mode = "live"
latency_drift = "strict"
latency_counter = "chars"
latency_volatile = ["run-[0-9]+"]
latency_allow_hosts = ["db.example"]
latency_strict_growth = true
""")
    suite.write()
    suite.run().assert_outcomes(passed=1)
    assert suite.received == 3
    assert suite.files() == []


def test_the_help_names_every_switch(suite):
    told = suite.run("--help").stdout.str()
    for name in ("--latency-mode=MODE", "--latency-drift=POLICY", "--latency-allow-live", "latency_counter (string)"):
        assert name in told
