"""Text of a wanted size for prompts: instructions with numbers in them, about four bytes a token for any counter."""

import random

_TEXT = """Customers who ask about delayed deliveries receive the tracking history and an estimated arrival: parcel
DE4711 left the depot in Hamburg on 12/01, scanned at 12:40 (customer no. 88, express, 3.2 kg), due at 9:05 tomorrow.
Escalations require approval by a supervisor; see section 4.2 before any compensation! Never promise above 250 EUR."""


def prose(tokens: int, seed: int = 1) -> str:
    """Four bytes a token, the same for the same seed."""
    drawn, words, text = random.Random(seed), _TEXT.split(), ""  # noqa: S311  nothing secret
    while len(text) < 4 * tokens:
        text += f"{drawn.choice(words)} "
    return text[: 4 * tokens]
