"""What a second pass found of a test's requests, as lines and as a word for the summary.

Owns the words. Refuses to judge.
"""

from collections.abc import Sequence

from pytest_agentlatency.capture.passes import Finding

TITLE = "latency: requests under another clock and other hash seeds"


def lines(findings: Sequence[Finding]) -> list[str]:
    """Two lines a finding: where and what, then both texts from there on."""
    return [line for finding in findings for line in _finding(finding)]


def _finding(finding: Finding) -> list[str]:
    broken, more = finding.broken, len(finding.turns) - 1
    others = f" and {more} more" if more else ""
    lane = f"lane {finding.lane} " if finding.lane != 1 else ""
    return [
        f"{lane}turn {broken.turn}{others}: {broken.reason} at {broken.path}: {broken.detail}",
        f"  {broken.before!r} became {broken.after!r}",
    ]


def word(findings: Sequence[Finding]) -> str:
    """The first finding in a few words; empty when there is none."""
    return f"{findings[0].broken.path}: {findings[0].broken.detail}" if findings else ""
