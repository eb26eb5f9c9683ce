"""What kind of text changes from run to run: a time, an id, a path, a counter.

Owns the patterns. Refuses to know where the text stood.
"""

import re

_PATTERNS = (
    ("uuid", re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|\b[0-9a-fA-F]{24,64}\b")),
    (
        "time",
        re.compile(
            r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
            r"|\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp][Mm])?"
            r"|\b1[5-9]\d{8}(?:\d{3}|\.\d+)?\b"  # seconds or milliseconds since 1970, from 2017 on
            r"|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
            r"|\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b),? ?\w* ?\d*"
            r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2}(?:, \d{4})?"
        ),
    ),
    ("path", re.compile(r"(?:[A-Za-z]:\\|/(?:tmp|var|private|home|Users|root|run)/)[^\s\"',;]+")),
    ("counter", re.compile(r"\d+(?:\.\d+)?")),
)
_REACH = 80
"""Characters around a difference in which the text that it is part of is looked for."""


def kind_of_change(before: str, after: str, at: int) -> str:
    """What the text that differs from position `at` on is: `uuid`, `time`, `path`, `counter`, or nothing known."""
    for kind, pattern in _PATTERNS:
        if _covers(pattern, before, at) and _covers(pattern, after, at):
            return kind
    return ""


def _covers(pattern: re.Pattern[str], text: str, at: int) -> bool:
    start = max(0, at - _REACH)
    window = text[start : at + _REACH]
    # A longer number shares all its digits with a shorter one: the difference stands right behind it.
    return any(found.start() <= at - start <= found.end() for found in pattern.finditer(window))
