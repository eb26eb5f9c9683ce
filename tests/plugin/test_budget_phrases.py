"""Every kind of budget over tokens, prefix, growth and memory, judged end to end on a cassette with known figures."""

import json

import pytest

from pytest_agentlatency.testing.builders import edited, growing, recording, turn
from tests.support.prepared import Told, marked, run, write_suite

TURNS = 10
SIZES = [10_000 + 1000 * number for number in range(TURNS)]
"""Each turn adds 1,000 tokens: an answer of 50, and what its search found."""


def observed(*, cached):
    """Ten turns of a model whose configuration is published; `refund` is offered and never called."""
    turns = [
        turn(size, 50, cached=size - 1000 if cached and number else 0, tool_ms=100 if number < TURNS - 1 else None)
        for number, size in enumerate(SIZES)
    ]
    return recording(turns, tools=["search", "refund"], model="meta-llama/Llama-3.1-8B-Instruct")


def moved(call, body):
    """Another system prompt from turn 5 on."""
    if call >= 5:
        body["system"] = "You are another agent."


RECORDINGS = {
    "cached": observed(cached=True),
    "uncached": observed(cached=False),
    # without a cache and with little at the start, nearly all of what is prefilled was prefilled before
    "steep": recording(growing("linear", TURNS)),
    "moved": edited(observed(cached=True), moved),
}
KEPT = [
    # 10,000 of 11,000 at turn 2
    ("cached", "cached share over 80% from turn 2", "91% at turn 2, headroom 11%"),
    ("cached", "cached share over 80% at turn 10", "95% at turn 10"),
    ("cached", "tool results under 2k tokens each", "headroom 1,0"),
    ("cached", "tool 'search' results at most 50% of context", "≈45% at turn 10"),
    ("cached", "tool 'refund' results at most 0% of context", "≈0"),
    ("cached", "largest step under 5k tokens", "1,000, headroom 4,000"),
    ("cached", "unused tools at most 2", "1, headroom 1"),
    # the contexts of turns 1 to 9
    ("cached", "re-read cost under 126k tokens", "≈126,000, headroom 0"),
    # 19,050 tokens of 128 KiB each
    ("cached", "kv cache under 2.5 GB at turn 10", "≈2.5 GB at turn 10"),
    ("cached", "prefix stable", ""),
    ("moved", "prefix stable except turns 5", "allowed to break: turn 5 (system_changed)"),
    ("cached", "cumulative prefill growth is at most linear", "exponent"),
    ("cached", "context growth is linear", "exponent 1.00"),
    ("cached", "context growth is at most linear", "exponent 1.00"),
    ("cached", "output growth is constant", "constant"),
    ("cached", "tool result growth is at most linear", "permutation p"),
    ("cached", "turn time growth is constant", "constant"),
    ("cached", "context under 20k at every turn", "19,000 at turn 10, headroom 1,000"),
]
BROKEN = [
    ("uncached", "cached share over 80% from turn 2", "0.0% cached at turn 2, budget at least 80%"),
    ("cached", "tool results under 0.5k tokens each", "tool result tokens in one, budget 500"),
    # about 940 of each search: 8,500 of 19,000 at the last turn
    (
        "cached",
        "tool 'search' results at most 20% of context",
        "≈45% tool 'search' result tokens, budget 20% of context",
    ),
    ("cached", "largest step under 900 tokens", "1,000 largest step, budget 900"),
    ("cached", "unused tools at most 0", "1 unused tools, budget 0"),
    ("cached", "re-read cost under 100k tokens", "≈126,000 re-read cost, budget 100,000"),
    ("cached", "kv cache under 2 GB at turn 10", "≈2.5 GB kv cache at turn 10, budget 2 GB"),
    ("moved", "prefix stable", "1 prefix break, first at turn 5: system_changed"),
    ("moved", "prefix stable except turns 6", "1 prefix break, first at turn 5: system_changed"),
    ("steep", "cumulative prefill growth is at most linear", "superlinear cumulative prefill growth, budget"),
    ("cached", "context growth is constant", "t^1.00 linear context growth, budget constant"),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """All of them, in one session."""
    folder = tmp_path_factory.mktemp("suite")
    cases = {f"test_{number:02}": each for number, each in enumerate([*KEPT, *BROKEN])}
    tests = [marked(name, phrase) for name, (_, phrase, _) in cases.items()]
    write_suite(folder, tests, {name: RECORDINGS[kind] for name, (kind, _, _) in cases.items()})
    return Told(run(folder, "-rA", "-p", "no:cacheprovider").stdout)


@pytest.mark.parametrize(
    ("number", "case"), list(enumerate(KEPT)), ids=[f"{kind}: {phrase}" for kind, phrase, _ in KEPT]
)
def test_a_budget_that_is_kept_passes_and_shows_its_figure(told, number, case):
    _, phrase, figure = case
    report = told.of(f"test_{number:02}")
    assert told.passed(f"test_{number:02}"), report
    kept = " ".join(report[report.index("\nkept ") :].split())  # long ones are folded
    assert kept.startswith(f"kept {phrase}")
    assert figure in kept


@pytest.mark.parametrize(
    ("number", "case"), list(enumerate(BROKEN, len(KEPT))), ids=[f"{kind}: {phrase}" for kind, phrase, _ in BROKEN]
)
def test_a_budget_that_is_broken_fails_with_its_figure_first(told, number, case):
    _, phrase, headline = case
    report = told.of(f"test_{number:02}")
    assert not told.passed(f"test_{number:02}")
    first = report.strip().splitlines()[0]
    assert headline in first
    assert f"{phrase!r}" in report or f'"{phrase}"' in report


def test_a_given_configuration_decides_the_kv_cache_of_a_model_that_is_not_published(pytester):
    """2 * 4 heads * 16 * 2 layers * 2 bytes = 512 a token; 3,050 tokens at turn 2."""
    own = recording(growing("linear", 2), model="our-model")
    kept = marked("test_kept", "kv cache under 1.5617 MB at turn 2")
    broken = marked("test_broken", "kv cache under 1.5 MB at turn 2")
    write_suite(pytester.path, [kept, broken], {"test_kept": own, "test_broken": own})
    config = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64, "torch_dtype": "float16"}
    (pytester.path / "models").mkdir()
    (pytester.path / "models" / "config.json").write_text(json.dumps(config))
    ini = (pytester.path / "pytest.ini").read_text() + "latency_kv_configs = our-model = models/config.json\n"
    (pytester.path / "pytest.ini").write_text(ini)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*≈1.56 MB kv cache at turn 2, budget 1.5 MB*"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("our-model", "allowed are lines of model = path/to/config.json"),
        ("our-model = nowhere.json", "*nowhere.json*give*"),
    ],
)
def test_a_configuration_that_can_not_be_had_is_told(pytester, line, said):
    write_suite(pytester.path, [marked("test_kept", "turns at most 2")], {"test_kept": recording(growing("linear", 2))})
    ini = (pytester.path / "pytest.ini").read_text() + f"latency_kv_configs = {line}\n"
    (pytester.path / "pytest.ini").write_text(ini)
    result = pytester.runpytest_inprocess()
    assert result.ret != 0
    (result.stderr if "=" not in line else result.stdout).fnmatch_lines([f"*{said}*"])
