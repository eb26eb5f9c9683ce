import json
import re

import pytest
from click.testing import CliRunner

from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cli import main
from pytest_agentlatency.testing.builders import edited, growing, recording, tool, turn
from tests.support import foreign_recordings as foreign


@pytest.fixture
def context(tmp_path):
    def run(observed, *arguments):
        path = tmp_path / "run.yaml"
        store.save(path, Document(observed))
        result = CliRunner().invoke(main, ["context", str(path), *map(str, arguments)])
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def rows(shown, header="turn"):
    """The first table's cells by column, as numbers."""
    lines = shown.splitlines()
    start = next(index for index, line in enumerate(lines) if line.strip().startswith(header))
    names = lines[start].split()
    found = []
    for line in lines[start + 2 :]:
        if not line.strip():
            break
        cells = line.split()
        found.append(dict(zip(names, cells, strict=True)))
    return found


def number(cell):
    return int(cell.replace(",", ""))


def test_the_sources_of_each_turn_add_up_to_the_recorded_usage(context):
    sizes = [2000, 3000, 4000, 5000, 6000, 7000]
    found = rows(context(recording(growing("linear", 6)), "--width", 200))
    assert [number(row["context"]) for row in found] == sizes
    sources = set(found[0]) - {"turn", "context", "new", "repeats"}
    assert {"system", "tools", "user", "results"} <= sources
    for row in found:
        assert sum(number(row[name]) for name in sources) == number(row["context"])


def test_what_is_sent_again_is_told_with_its_cost(context):
    """The first message is 1,975 tokens, and five later turns carry it."""
    shown = context(recording(growing("linear", 6)))
    assert re.search(r"9,875 +1,975 +x5  user, turn 1", shown)
    assert "one more turn sends 7,000 tokens again" in shown
    # contexts of turns 2 to 6 are 25,000 tokens, of which 5 * 1,000 were new
    assert "re-read cost: 20,000 tokens were sent again" in shown


def test_a_tool_that_nobody_called_is_named(context):
    shown = context(recording(growing("linear", 3), tools=["search", "refund"]))
    assert "unused tool: 'refund'" in shown
    assert "unused tool: 'search'" not in shown


def test_json_around_a_tools_values_is_told(context):
    def wrapped(_, body):
        for message in body["messages"]:
            for block in message["content"]:
                if block["type"] == "tool_result":
                    block["content"] = json.dumps({"results": [{"identifier": n, "title": "A"} for n in range(50)]})

    shown = context(edited(recording(growing("linear", 3)), wrapped))
    assert re.search(r"wrapping: up to [\d,]+ tokens of the results of 'search'", shown)


def test_a_history_nested_in_a_message_is_named_as_a_duplicate(context):
    told = " ".join(f"word{number}" for number in range(200))

    def nested(call, body):
        body["messages"][0]["content"][0]["text"] = told
        if call > 1:
            body["messages"][-1]["content"][0]["content"] = json.dumps({"history": told})

    shown = context(edited(recording(growing("linear", 2)), nested))
    assert re.search(r"duplicate: \d+ tokens at messages\[2\]", shown)


def test_a_stable_prefix_is_said_to_be_stable(context):
    shown = context(recording(growing("linear", 4)))
    assert [row["repeats"] for row in rows(shown, "turn")] == ["-", "100%", "100%", "100%"]
    assert "prefix: stable" in shown


def test_a_break_of_the_prefix_is_told_with_its_place_and_what_it_costs(context):
    def clock(call, body):
        body["system"] = f"You are an agent. It is 12:0{call}."

    shown = context(edited(recording(growing("linear", 3)), clock))
    assert "prefix: 2 of 2 turns break it" in shown
    assert "turn 2: system_changed at system" in shown
    assert "time differs" in shown
    assert "100%" not in [row["repeats"] for row in rows(shown)]


def test_growth_is_told_with_exponent_and_p_value_and_drawn(context):
    shown = " ".join(context(recording(growing("superlinear", 8))).split())
    found = re.search(r"context growth: superlinear growth; exponent ([\d.]+), permutation p ([\d.e-]+)", shown)
    assert 1.8 < float(found[1]) < 2.2  # start + step * k ** 2
    assert float(found[2]) < 0.05
    assert "the fitted curve" in shown


def test_the_phase_that_drives_growing_turn_times_is_named(context):
    shown = context(recording([turn(2000 + 500 * n, prefill_ms=100 * n, tool_ms=1) for n in range(1, 9)]))
    assert "driven by prefill: +100 ms of +100 ms a turn" in shown


def test_too_few_turns_are_inconclusive_and_say_so(context):
    assert "context growth: inconclusive: too few turns to tell" in context(recording(growing("linear", 3)))


def test_the_kv_cache_of_a_published_model_is_shown_in_bytes(context):
    """Llama 3.1 8B keeps 128 KiB a token: 2 * 32 layers * 8 heads * 128 * 2 bytes."""
    observed = recording([turn(1000, 24)], model="meta-llama/Llama-3.1-8B-Instruct")
    shown = context(observed, "--gpu-memory", "1.4")
    assert "kv cache: ≈134 MB at turn 1, 131 KB a token" in shown  # 1,024 tokens * 131,072 bytes
    assert "1.4 GB hold 10 conversations of that size" in shown


def test_a_closed_models_kv_cache_is_not_guessed(context):
    shown = context(recording([turn(1000)], model="claude-sonnet-4-5"))
    assert "kv cache: n/a" in shown
    assert "closed model" in shown


def test_a_given_configuration_decides_the_kv_cache(context, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps({"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64, "torch_dtype": "float16"})
    )
    # 2 * 4 heads * 16 * 2 layers * 2 bytes = 512 a token
    shown = context(recording([turn(1000, 24)]), "--kv-config", config)
    assert "kv cache: ≈524 KB at turn 1, 512 bytes a token" in shown


def test_each_lane_has_an_account_of_its_own(context):
    turns = [turn(2000, tools=(tool("ask", 10, turns=[turn(500), turn(700)]),)), turn(3000)]
    shown = context(recording(turns))
    assert "lane 1: 2 turns" in shown
    assert "lane 2: 2 turns" in shown


def test_no_line_is_wider_than_asked_for(context):
    shown = context(recording(growing("superlinear", 9), tools=["search", "refund"]), "--width", 60)
    assert max(len(line) for line in shown.splitlines()[1:]) <= 60


def test_a_foreign_recording_has_an_account_too(tmp_path):
    path = tmp_path / "theirs"
    path.write_bytes(foreign.go_vcr())
    result = CliRunner().invoke(main, ["context", str(path)])
    assert result.exit_code == 0
    assert [number(row["context"]) for row in rows(result.stdout)] == [21, 34]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--counter", "abacus"], "no token counter 'abacus'"),
        (["--kv-config", "missing.json"], "missing.json"),
        (["--gpu-memory", "0"], "0"),
    ],
)
def test_an_option_that_can_not_be_used_ends_with_2(tmp_path, options, said):
    path = tmp_path / "run.yaml"
    store.save(path, Document(recording([turn(1000)])))
    result = CliRunner().invoke(main, ["context", str(path), *options])
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_recording_without_model_calls_says_so(tmp_path):
    tree = foreign.vcrpy_tree()
    tree["interactions"] = tree["interactions"][1:2]
    path = tmp_path / "tools.yaml"
    path.write_bytes(foreign.dumped(tree))
    result = CliRunner().invoke(main, ["context", str(path)])
    assert result.exit_code == 0
    assert "no model calls" in result.stdout
