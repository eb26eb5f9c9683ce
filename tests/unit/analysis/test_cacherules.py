import pytest

from pytest_agentlatency.analysis.cacherules import CacheRuleError, rules_for


@pytest.mark.parametrize(
    ("model", "minimum"),
    [
        ("claude-sonnet-4-5-20250929", 1024),
        ("claude-opus-4-1", 1024),
        ("claude-haiku-4-5", 4096),
        ("anthropic/claude-opus-4.6", 4096),
        ("claude-opus-5", 512),
        ("claude-sonnet-5", 1024),
        ("claude-sonnet-5-5", 512),
        ("claude-3-5-haiku-20241022", 2048),
    ],
)
def test_anthropics_minimum_depends_on_the_model(model, minimum):
    assert rules_for("anthropic", model).minimum == minimum


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o-mini", "openai"),
        ("gpt-5", "openai"),
        ("gpt-5.5", "openai"),
        ("gpt-5-2025-08-07", "openai"),
        ("gpt-5.6", "openai-explicit"),
        ("gpt-6", "openai-explicit"),
    ],
)
def test_openais_rules_changed_with_5_6(model, name):
    assert rules_for("openai", model).name == name


def test_a_gateway_is_judged_by_its_model():
    assert rules_for("bedrock", "anthropic.claude-sonnet-4-5-v1:0").name == "anthropic"


def test_an_unknown_provider_has_no_rules():
    assert rules_for("gemini", "gemini-3-pro") is None


def test_a_user_overrides_what_has_changed_since():
    assert rules_for("anthropic", "claude-opus-4-7", {"minimum": 4096}).minimum == 4096


@pytest.mark.parametrize("wrong", [{"minimal": 1}, {"ttl": "5m"}, {"name": "x"}])
def test_an_override_that_does_not_exist_lists_what_does(wrong):
    with pytest.raises(CacheRuleError, match=r"allowed are as_of \(str\).*minimum \(int\)"):
        rules_for("anthropic", "", wrong)
