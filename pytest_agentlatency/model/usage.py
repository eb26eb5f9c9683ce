"""Tokens of one call in one normal form, whatever the provider's fields leave out or include."""

from dataclasses import dataclass
from typing import NewType

from pytest_agentlatency.model.provenance import Provenance

Tokens = NewType("Tokens", int)


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one call.

    `context = uncached + cache_write + cache_read` always; None means that the provider did not say.
    """

    uncached: Tokens | None = None
    """Input tokens that were neither read from nor written to a prompt cache."""
    cache_read: Tokens = Tokens(0)
    cache_write: Tokens = Tokens(0)
    output: Tokens | None = None
    """Generated tokens, thinking included."""
    thinking: Tokens | None = None
    provenance: Provenance = Provenance.UNKNOWN
    multi_pass: bool = False
    """The provider ran several hidden passes (server-side tools) and summed them: not the size of one context."""
    raw: str = ""
    """The provider's own usage object as JSON, untouched; for a stream, the last value of each field."""
    output_from: Provenance | None = None
    """Provenance of the output where it isn't that of the input: a changed request keeps its recorded answer."""

    @property
    def output_provenance(self) -> Provenance:
        """Provenance of `output` and `thinking`."""
        return self.output_from or self.provenance

    @property
    def context(self) -> Tokens | None:
        """All input tokens of the request, cached or not."""
        return None if self.uncached is None else Tokens(self.uncached + self.cache_write + self.cache_read)

    @property
    def prefill_work(self) -> Tokens | None:
        """Input tokens that had to be prefilled: all that were not read from a cache (writes are work)."""
        return None if self.uncached is None else Tokens(self.uncached + self.cache_write)
