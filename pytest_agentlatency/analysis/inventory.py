"""The inventories of a conversation's prompts: what they share is taken apart and counted once.

Owns the memory, over objects: two prompts share a message when they hold the same one, as those of a provider that
reads a history again do. Refuses to know what a piece is (`tokens`), and to compare contents.
"""

from typing import NamedTuple

from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.tokens import Item, Part, items, measure, part_of
from pytest_agentlatency.wire.message import Message, Prompt


class Listing(NamedTuple):
    """A prompt's pieces."""

    items: tuple[Item, ...]
    sizes: tuple[int, ...]
    """Tokens of each, by the counter."""


class Inventory:
    """Takes prompts apart, and remembers them as long as it lives itself. Each gives what it would give alone."""

    def __init__(self, counter: Counter) -> None:
        """Count with this counter."""
        self.counter = counter
        # Each entry holds what its id was taken of, so that no id is reused.
        self._parts: dict[tuple[int, str], tuple[Message, Part]] = {}
        self._listings: dict[int, tuple[Prompt, Listing]] = {}
        self._sizes: dict[int, tuple[Item, int]] = {}

    def of(self, prompt: Prompt) -> Listing:
        """The pieces of a prompt with their tokens."""
        _, found = self._listings.get(id(prompt), (prompt, None))
        if found is None:
            listed = items(prompt, self._part)
            found = Listing(listed, tuple(self._size(item) for item in listed))
            self._listings[id(prompt)] = prompt, found
        return found

    def _size(self, item: Item) -> int:
        known = self._sizes.get(id(item))
        if known is None:
            known = self._sizes[id(item)] = item, measure(item, self.counter)
        return known[1]

    def _part(self, message: Message, model: str) -> Part:
        key = id(message), model
        _, found = self._parts.get(key, (message, None))
        if found is None:
            found = part_of(message, model)
            self._parts[key] = message, found
        return found
