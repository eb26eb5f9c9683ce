"""One exchange per JSON file, as ddapm-test-agent's recording proxy writes it.

Owns its `base64:` mark on binary bodies. No times are in it.
"""

from collections.abc import Mapping
from typing import Any

from pytest_agentlatency.cassette.foreign import vcrpy
from pytest_agentlatency.cassette.foreign.exchange import Exchange, from_base64, mapping

_BINARY = "base64:"


def recognises(tree: Mapping[str, Any]) -> bool:
    """Whether the document is itself one `{request, response}`."""
    return {"request", "response"} <= set(tree)


def exchanges(tree: Mapping[str, Any]) -> list[Exchange]:
    """The one exchange. Unreadable when it is broken."""
    sides = {side: _unmarked(mapping(tree[side], side), side) for side in ("request", "response")}
    return [vcrpy.exchange(sides, "the file")]


def _unmarked(part: Mapping[str, Any], where: str) -> dict[str, Any]:
    body = part.get("body")
    if not isinstance(body, str) or not body.startswith(_BINARY):
        return dict(part)
    return {**part, "body": from_base64(body.removeprefix(_BINARY), f"{where}.body")}
