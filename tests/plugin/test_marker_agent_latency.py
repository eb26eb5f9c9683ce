"""`@pytest.mark.agent_latency(cassette=..., mode=..., drift=...)`: what it takes, and where the cassette stands."""

import pytest

USAGE = pytest.ExitCode.USAGE_ERROR


def refused(suite, marker, *told):
    """The suite isn't run, and each line is told with the test's node id; nothing is asked or written."""
    suite.write(f"""
@pytest.mark.agent_latency{marker}
def test_agent(agent_run, url):
    loop(url)
""")
    result = suite.run("--latency-mode=record")
    assert result.ret == USAGE, result.stdout.str()
    result.stderr.fnmatch_lines([f"*test_agent.py::test_agent: {line}" for line in told])
    assert suite.received == 0
    assert suite.files() == []


def test_an_unknown_argument_is_refused(suite):
    refused(
        suite, "(casette='a')", "agent_latency doesn't take 'casette': allowed are cassette=..., mode=..., drift=...*"
    )


def test_a_positional_argument_is_refused(suite):
    refused(suite, "('a.yaml')", "agent_latency takes no positional argument, got 'a.yaml': allowed are cassette=...*")


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("mode='all'", "agent_latency(mode=...) is 'all': allowed are 'replay', 'record', 'once', 'live'"),
        ("drift='loose'", "agent_latency(drift=...) is 'loose': allowed are 'retime', 'strict'"),
        ("cassette=3", "agent_latency(cassette=...) takes a file name, got 3"),
    ],
)
def test_a_bad_value_is_refused(suite, argument, told):
    refused(suite, f"({argument})", told)


@pytest.mark.parametrize(
    "name", ["/etc/agent.yaml", "../agent.yaml", "a/../../agent", "C:\\\\agent.yaml", "..\\\\agent", "", ".."]
)
def test_a_name_that_leads_out_of_the_cassette_folder_is_refused(suite, name):
    refused(suite, f"(cassette='{name}')", "cassette name *: a relative path below *cassettes without '..' is allowed*")


def test_a_link_out_of_the_cassette_folder_is_refused(suite, tmp_path_factory):
    (suite.path / "cassettes").mkdir()
    target = tmp_path_factory.mktemp("elsewhere")
    (suite.path / "cassettes" / "out").symlink_to(target, target_is_directory=True)
    suite.write("@pytest.mark.agent_latency(cassette='out/agent')\ndef test_agent(url): loop(url)")
    result = suite.run("--latency-mode=record")
    assert result.ret == USAGE
    result.stderr.fnmatch_lines(["*is a link to *outside *"])
    assert list(target.iterdir()) == []


def test_a_cassette_can_be_named(suite):
    suite.write("""
@pytest.mark.agent_latency(cassette="shared/parcel.yaml")
def test_agent(url):
    loop(url)
""")
    suite.record()
    assert suite.files() == ["shared/parcel.yaml"]
    suite.run().assert_outcomes(passed=1)


def test_a_named_cassette_can_be_replayed_by_several_tests(suite):
    suite.write("""
@pytest.mark.agent_latency(cassette="parcel")
def test_first(url):
    loop(url)

@pytest.mark.agent_latency(cassette="parcel")
def test_second(url):
    loop(url)
""")
    suite.record("-k", "first")
    suite.run().assert_outcomes(passed=2)
    assert suite.received == 3


@pytest.mark.parametrize("mode", ["record", "once"])
def test_two_tests_that_would_record_one_cassette_are_refused(suite, mode):
    suite.write("""
@pytest.mark.agent_latency(cassette="parcel")
def test_first(url):
    loop(url)

@pytest.mark.agent_latency(cassette="parcel")
def test_second(url):
    loop(url)
""")
    result = suite.run(f"--latency-mode={mode}")
    assert result.ret == USAGE
    result.stderr.fnmatch_lines([
        "*two tests would record the cassette *parcel.yaml: test_agent.py::test_first and test_agent.py::test_second.*"
    ])  # fmt: skip
    assert suite.received == 0


def test_the_tests_of_a_class_have_a_cassette_each(suite):
    suite.write("""
@pytest.mark.agent_latency
class TestSupport:
    def test_parcel(self, agent_run, url):
        loop(url)
        assert agent_run.calls == 3

    def test_refund(self, url):
        loop(url)
""")
    suite.record()
    assert suite.files() == ["test_agent/TestSupport.test_parcel.yaml", "test_agent/TestSupport.test_refund.yaml"]
    suite.run().assert_outcomes(passed=2)
    assert suite.received == 6


def test_a_method_of_a_test_case_is_a_marked_test_too(suite):
    suite.write("""
import os
import unittest

@pytest.mark.agent_latency
class TestSupport(unittest.TestCase):
    def test_parcel(self):
        self.assertEqual(loop(os.environ["MODEL_URL"]), "It was found.")
""")
    suite.record()
    assert suite.files() == ["test_agent/TestSupport.test_parcel.yaml"]
    suite.run().assert_outcomes(passed=1)
    assert suite.received == 3


def test_the_whole_module_can_be_marked(suite):
    suite.write("""
pytestmark = pytest.mark.agent_latency

def test_parcel(url):
    loop(url)

def test_refund(url):
    loop(url)
""")
    suite.record()
    assert suite.files() == ["test_agent/test_parcel.yaml", "test_agent/test_refund.yaml"]
    suite.run().assert_outcomes(passed=2)


def test_each_parameter_has_a_cassette(suite):
    suite.write("""
@pytest.mark.agent_latency
@pytest.mark.parametrize("town", ["Hamburg", "a/b: c"])
def test_parcel(url, town):
    loop(url, question=f"Where is {town}?")
""")
    suite.record()
    assert suite.files() == ["test_agent/test_parcel[Hamburg].yaml", "test_agent/test_parcel[a-b- c].yaml"]
    suite.run().assert_outcomes(passed=2)


def test_parameters_whose_file_names_are_one_are_refused(suite):
    suite.write("""
@pytest.mark.agent_latency
@pytest.mark.parametrize("town", ["a/b", "a:b"])
def test_parcel(url, town):
    loop(url)
""")
    result = suite.run("--latency-mode=record")
    assert result.ret == USAGE
    result.stderr.fnmatch_lines(["*two tests would record the cassette *"])


def test_a_cassette_of_another_test_is_not_replayed(suite):
    """A file renamed or copied by hand: the test says whose it is."""
    cassette = suite.written()
    cassette.rename(suite.cassette("test_other"))
    suite.write("""
@pytest.mark.agent_latency
def test_other(url):
    loop(url)
""")
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "*cassette of another test: *test_other.yaml was recorded by test_agent.py::test_agent.*",
        "*pytest test_agent.py::test_other --latency-mode=record*",
    ])  # fmt: skip
    assert suite.received == 3


def test_it_does_not_matter_where_pytest_was_started(suite):
    """The node id in a cassette is relative to the root directory, and people start pytest in many places."""
    folder = suite.path / "tests"
    folder.mkdir()
    suite.write()
    for name in ("test_agent.py", "conftest.py"):
        (suite.path / name).rename(folder / name)
    suite.record()
    (folder / "pytest.ini").write_text((suite.path / "tox.ini").read_text())
    suite.run("-c", str(folder / "pytest.ini"), f"--rootdir={folder}", str(folder)).assert_outcomes(passed=1)
    assert suite.received == 3


def test_the_marker_is_registered(suite):
    suite.run("--markers").stdout.fnmatch_lines(
        [
            "@pytest.mark.agent_latency(cassette=..., mode=..., drift=...*): *",
            "@pytest.mark.latency_budget([*]phrases): *",
        ]
    )


def test_an_item_that_takes_no_fixtures_is_refused_by_name(suite):
    """A hook may mark whatever was collected, files of other kinds among it."""
    (suite.path / "cases.yml").touch()
    (suite.path / "conftest.py").write_text("""
import pytest

class Cases(pytest.File):
    def collect(self):
        yield Case.from_parent(self, name="one")

class Case(pytest.Item):
    def runtest(self):
        pass

def pytest_collect_file(parent, file_path):
    if file_path.suffix == ".yml":
        return Cases.from_parent(parent, path=file_path)

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.agent_latency)
""")
    result = suite.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: cases.yml::one: agent_latency can't be used on a Case, which takes no fixtures.*"]
    )
