"""Providers' prompt-cache rules: dated data, which a user can override.

Owns finding the rules for a provider and a model. Refuses to know what was sent.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, cast


class CacheRuleError(ValueError):
    """An overriding rule that doesn't exist or has a value of the wrong type."""


@dataclass(frozen=True, slots=True)
class CacheRules:
    """What one provider's prompt cache does. Times in seconds, sizes in tokens; 0 means no limit."""

    name: str
    as_of: str = ""
    """Date at which the rules were published so, ISO 8601."""
    match: str = "prefix"
    """`breakpoints`: only at marked places; `prefix`: the longest common one."""
    minimum: int = 0
    block: int = 1
    """A shared prefix is rounded down to a multiple of this."""
    evaluated: int = 0
    """Tokens at the end that are never read, because the model has to start from something."""
    breakpoints: int = 0
    """Marked places that count; the last ones of a request."""
    implicit: bool = False
    """Every request ends with a breakpoint of its own."""
    lookback: int = 0
    """Blocks looked at from each breakpoint, itself included."""
    entries: int = 0
    """How many of the latest entries are kept."""
    ttl: int = 0
    ttl_long: int = 0
    output: bool = False
    """What the model generated is kept too, and read when the next request repeats it."""
    system_first: bool = False
    """The chat template puts the system prompt before the tools."""


def rules_for(provider: str, model: str = "", overrides: Mapping[str, Any] | None = None) -> CacheRules | None:
    """The rules for a provider and a model; None when none are known.

    Known: `anthropic`, `openai`, `deepseek`, `vllm`, `llama.cpp`. A gateway's are found by the model's name.
    `overrides`: fields of `CacheRules` -> values. CacheRuleError when a field doesn't exist.
    """
    name = _table_name(provider, model)
    table = _tables().get(name)
    if table is None:
        return None
    return CacheRules(name, **{**_fields(table, model), **_checked(overrides or {})})


_GPT = re.compile(r"gpt-(\d+)(?:[.-](\d)(?!\d))?")


def _table_name(provider: str, model: str) -> str:
    if "deepseek" in model:  # behind either big provider's format
        return "deepseek"
    if provider in _tables():
        return "openai-explicit" if provider == "openai" and _explicit(model) else provider
    if "claude" in model:
        return "anthropic"
    return _table_name("openai", model) if _GPT.search(model) else provider


def _explicit(model: str) -> bool:
    found = _GPT.search(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= (5, 6)


def _fields(table: Mapping[str, Any], model: str) -> dict[str, Any]:
    plain = {key: value for key, value in table.items() if key != "models"}
    name = model.replace(".", "-")
    for special in table.get("models", ()):
        if re.search(special["match"], name):
            return plain | {key: value for key, value in special.items() if key != "match"}
    return plain


def _checked(overrides: Mapping[str, Any]) -> Mapping[str, Any]:
    defaults = {each.name: each.default for each in fields(CacheRules) if each.name != "name"}
    for key, value in overrides.items():
        if key not in defaults or type(value) is not type(defaults[key]):
            allowed = ", ".join(f"{name} ({type(default).__name__})" for name, default in defaults.items())
            msg = f"no prompt-cache rule {key} = {value!r}: allowed are {allowed}"
            raise CacheRuleError(msg)
    return overrides


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    text = files("pytest_agentlatency.analysis").joinpath("data", "promptcache.toml").read_text(encoding="utf-8")
    return cast("Mapping[str, Mapping[str, Any]]", tomllib.loads(text))
