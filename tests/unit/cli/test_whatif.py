"""`agentlatency whatif`: what is printed, as text and as JSON, and what a wrong word gets."""

import json

import pytest
from click.testing import CliRunner

from pytest_agentlatency.analysis.calibration import Calibration
from pytest_agentlatency.analysis.prefill import LatencyModel, Sample, fit
from pytest_agentlatency.capture import calibrations
from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cli import main
from pytest_agentlatency.testing.builders import growing, recording

MS = 1_000_000


@pytest.fixture
def cassette(tmp_path):
    path = tmp_path / "agent.yaml"
    store.save(path, Document(recording(growing("linear", 6), model="local", tools=["search", "spare"])))
    return path


@pytest.fixture
def folder(tmp_path):
    model = fit([Sample(0, size, 200 * MS + size * MS // 10) for size in (500, 1000, 2000, 4000, 8000, 16_000, 32_000)])
    assert isinstance(model, LatencyModel)
    calibrations.save(tmp_path / "models", Calibration("anthropic", "local", "", "2026-11-30", model))
    return tmp_path / "models"


def run(*arguments) -> str:
    result = CliRunner().invoke(main, ["whatif", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_levers_stand_in_their_order_within_the_width(cassette, folder):
    output = run(cassette, "--calibrations", folder, "--width", 100)
    groups = ["1 shrink the context", "2 reuse the prefix", "4 a faster model"]
    places = [output.index(group) for group in groups]
    assert places == sorted(places)
    assert "unused tools dropped: never called: spare" in output
    assert max(map(len, output.splitlines())) <= 100


def test_a_calibration_lets_the_times_be_believed(cassette, folder):
    assert "believe the times" not in run(cassette, "--calibrations", folder)
    assert "believe the times" in run(cassette)


def test_json_holds_every_lever_with_its_interval(cassette, folder):
    found = json.loads(run(cassette, "--calibrations", folder, "--json"))
    assert found["schema"] == "agentlatency.whatif"
    halved = next(each for each in found["levers"] if each["name"] == "context halved")
    assert halved["saved_low_ns"] <= halved["saved_ns"] <= halved["saved_high_ns"]
    assert halved["duration_ns"] + halved["saved_ns"] == found["duration_ns"]
    assert len(halved["turns_ns"]) == 6


def test_one_lever_alone(cassette, folder):
    found = json.loads(run(cassette, "--calibrations", folder, "--lever", "decode twice as fast", "--json"))
    assert [each["name"] for each in found["levers"]] == ["decode twice as fast"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lever", "smaller"], "no what-if is called 'smaller': allowed are 'context halved'"),
        (["--counter", "beans"], "beans"),
    ],
)
def test_a_wrong_word_ends_with_2_and_says_what_is_allowed(cassette, arguments, message):
    result = CliRunner().invoke(main, ["whatif", str(cassette), *arguments])
    assert result.exit_code == 2
    assert message in result.output


def test_a_file_that_is_none_ends_with_2(tmp_path):
    result = CliRunner().invoke(main, ["whatif", str(tmp_path / "none.yaml")])
    assert result.exit_code == 2
