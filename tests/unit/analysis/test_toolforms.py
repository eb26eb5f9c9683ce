import json

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.analysis.toolforms import shown

SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Search the shop.",
        "strict": True,
        "parameters": {
            "type": "object",
            "title": "SearchArguments",
            "additionalProperties": False,
            "required": ["query"],
            "properties": {
                "query": {"type": "string", "description": "What to find", "title": "Query"},
                "limit": {"type": "integer"},
                "order": {"enum": ["price", "date"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "near": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "box": {"type": "object", "properties": {"width": {"type": "number"}}},
            },
        },
    },
}


def test_openais_models_are_shown_a_type():
    assert shown(json.dumps(SEARCH), "gpt-4o").splitlines() == [
        "// Search the shop.",
        "type search = (_: {",
        "// What to find",
        "query: string,",
        "limit?: number,",
        'order?: "price" | "date",',
        "tags?: string[],",
        "near?: string | null,",
        "box?: {",
        "width?: number,",
        "},",
        "}) => any;",
    ]


def test_what_a_type_can_not_say_costs_nothing():
    """Schema edits that only JSON shows had the wrong sign when JSON was counted."""
    plain = json.loads(json.dumps(SEARCH))
    del plain["function"]["strict"], plain["function"]["parameters"]["additionalProperties"]
    assert shown(json.dumps(plain), "openai/gpt-5") == shown(json.dumps(SEARCH), "openai/gpt-5")
    assert shown(json.dumps(plain), "qwen3") == shown(json.dumps(plain["function"]), "qwen3")


def test_other_models_are_shown_name_description_and_parameters_as_json():
    value = json.loads(shown(json.dumps(SEARCH), "claude-sonnet-4-5"))
    assert list(value) == ["description", "name", "parameters"]
    assert value["parameters"] == SEARCH["function"]["parameters"]


def test_a_server_tool_without_a_schema_is_shown_too():
    assert json.loads(shown('{"name":"web_search","type":"web_search_20250305"}', "claude-opus-4-5")) == {
        "description": "",
        "name": "web_search",
        "parameters": {},
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["name", "type", "parameters", "function", "properties"]), json_values))
def test_no_definition_is_too_odd(definition):
    for model in ("gpt-4o", "claude-opus-4-5"):
        assert isinstance(shown(json.dumps(definition), model), str)


def test_a_schema_that_nests_without_end_is_cut_off():
    schema = {"type": "string"}
    for _ in range(100):
        schema = {"type": "array", "items": schema}
    definition = {"name": "deep", "parameters": {"type": "object", "properties": {"x": schema}}}
    assert "any[]" in shown(json.dumps(definition), "gpt-4o")
