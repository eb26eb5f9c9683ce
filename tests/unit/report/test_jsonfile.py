import json

from hypothesis import given

from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Difference, Drift, Run, Verdict
from pytest_agentlatency.report.jsonfile import to_json
from tests.support.plain_runs import MS, grown, run_of, turn, usage
from tests.support.run_strategies import a_few, runs

PHRASES = ["prefill share under 40% at every turn", "context growth is linear", "prefix stable", "tpot under 1 s"]


@a_few
@given(runs())
def test_every_run_is_plain_json_and_the_same_twice(run: Run):
    judgements = [judge(parse(text), run) for text in PHRASES]
    text = json.dumps(to_json(run, judgements), allow_nan=False)
    assert text == json.dumps(to_json(run, judgements))
    assert json.loads(text) == to_json(run, judgements)


def test_a_file_names_its_schema_and_version_first():
    assert list(to_json(Run()))[:2] == ["schema", "version"]
    assert to_json(Run())["version"] == 1


def test_a_turn_gives_integers_and_fractions():
    data = json.loads(json.dumps(to_json(grown(1000))))
    one = data["lanes"][0]["turns"][0]
    assert one["phases"]["prefill"] == {"ns": 500 * MS, "share": 0.5}
    assert one["call"]["ttft_ns"] == 500 * MS
    assert one["call"]["delivered_ns"] is None
    assert one["call"]["tpot_ns"] == round(400 * MS / 39)
    assert one["call"]["tokens"]["context"] == 1000
    assert data["duration_ns"] == 1000 * MS


def test_unknown_is_null():
    data = json.loads(json.dumps(to_json(run_of(turn(1, [("unsplit", 9)], used=usage(None), streamed=False)))))
    one = data["lanes"][0]["turns"][0]["call"]
    assert (one["ttft_ns"], one["tpot_ns"], one["tokens"]["context"], one["request"]) == (None, None, None, None)


def test_a_judgement_carries_what_the_message_says():
    run = grown(1000, 2000)
    data = json.loads(json.dumps(to_json(run, [judge(parse("prefill share under 40% at every turn"), run)])))
    [budget] = data["budgets"]
    assert budget["phrase"] == "prefill share under 40% at every turn"
    assert budget["ruling"] == "broken"
    assert budget["headline"] == "50% prefill at turn 1, budget 40%"
    assert budget["decided_by"]["value"] == 0.5
    assert budget["decided_by"]["headroom"] == -0.1
    assert [point["turn"] for point in budget["points"]] == [1, 2]


def test_a_budget_carries_what_it_wants_and_why_it_did_not_get_it():
    run = grown(1000, provenance=Provenance.REPLAYED)
    texts = ("measured turns at most 8", "turns at most 8 in lane 1", "prefix stable")
    wants, lane, prefix = to_json(run, [judge(parse(text), run) for text in texts])["budgets"]
    assert (wants["wants_measured"], wants["ruling"], wants["lane"]) == (True, "not measured", None)
    assert wants["decided_by"]["provenance"] == "replayed"
    assert (lane["wants_measured"], lane["ruling"], lane["lane"]) == (False, "kept", 1)
    assert prefix["wants_measured"] is False


def test_drift_is_told():
    drift = Drift(usage(10).context, usage(30).context, Difference("messages[0]", "a", "b"))
    data = json.loads(json.dumps(to_json(run_of(turn(1, verdict=Verdict.DRIFTED, drift=drift)))))
    one = data["lanes"][0]["turns"][0]["call"]
    assert (one["request"], one["drift_tokens"], one["drift_path"]) == ("drifted", 20, "messages[0]")
