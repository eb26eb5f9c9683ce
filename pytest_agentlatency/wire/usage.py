"""Usage in one normal form, for providers whose prompt count includes what came from a cache.

Owns the rules by which counts that contradict each other are read. Refuses to know field names: see `Counts`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.usage import Tokens, Usage
from pytest_agentlatency.wire.jsonedge import compact


@dataclass(frozen=True, slots=True)
class Counts:
    """What a provider reported, by meaning; None where it reported nothing."""

    prompt: int | None
    completion: int | None
    cached: int | None = None
    written: int | None = None
    reasoning: int | None = None
    total: int | None = None
    multi_pass: bool = False


def normalise(counts: Counts, raw: Mapping[str, Any]) -> Usage:
    """Usage with cached tokens taken out of the prompt, and reasoning put into the output."""
    cached, written = counts.cached or 0, counts.written or 0
    context, output = _context(counts), _output(counts)
    known = context is not None or output is not None
    return Usage(
        uncached=None if context is None else Tokens(max(0, context - cached - written)),
        cache_read=Tokens(cached),
        cache_write=Tokens(written),
        output=None if output is None else Tokens(output),
        thinking=None if counts.reasoning is None else Tokens(counts.reasoning),
        provenance=Provenance.MEASURED if known else Provenance.UNKNOWN,
        multi_pass=counts.multi_pass,
        raw=compact(raw) if raw else "",
    )


def _context(counts: Counts) -> int | None:
    """All input tokens.

    Some gateways leave cached tokens out of the prompt (hyper.charm.land, Azure's Grok): seen when more is cached than
    there is prompt, or when the total only adds up with the cached ones. There `total - completion` is the input.
    """
    if counts.prompt is None:
        return None
    aside = (counts.cached or 0) + (counts.written or 0)
    if aside <= counts.prompt and not (aside and _surplus(counts) in {aside, aside + (counts.reasoning or 0)}):
        return counts.prompt
    if counts.total is not None and counts.total - (_output(counts) or 0) >= aside:
        return counts.total - (_output(counts) or 0)
    return counts.prompt + aside


def _output(counts: Counts) -> int | None:
    """All generated tokens.

    Some hosts leave reasoning out of the completion (xAI): seen when it is larger than the completion, or when the
    total only adds up with it.
    """
    if counts.completion is None or not counts.reasoning:
        return counts.completion
    aside = (counts.cached or 0) + (counts.written or 0)
    outside = counts.reasoning > counts.completion or _surplus(counts) in {counts.reasoning, counts.reasoning + aside}
    return counts.completion + counts.reasoning if outside else counts.completion


def _surplus(counts: Counts) -> int | None:
    """What the total holds beyond prompt and completion; None when there is no total."""
    if counts.total is None:
        return None
    return counts.total - (counts.prompt or 0) - (counts.completion or 0)
