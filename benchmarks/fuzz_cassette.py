"""Every reader of cassettes against bytes that nobody meant: how many inputs were tried, and what broke.

    nice python benchmarks/fuzz_cassette.py [--minutes 3] [--seed 1]

Inputs start from recordings that Hypothesis draws, written as our cassette, for plain vcrpy, and as vcrpy's own YAML,
JSON and gzip, and are then damaged: bytes replaced, inserted, lost, lines moved and repeated, values of the tree
exchanged. Right is a value, or an error of the cassette's own with a message, in bounded memory; what is read must also
be written and read again as itself. Anything else ends the run, and the input, shrunk, is left in `fuzz_crash.bin`.
"""

import argparse
import gzip
import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from pytest_agentlatency.cassette import convert, document, foreign
from pytest_agentlatency.cassette.errors import CassetteError
from pytest_agentlatency.cassette.limits import MIB, Limits
from pytest_agentlatency.model.recording import Recording
from pytest_agentlatency.testing.strategies import recordings

SMALL = Limits(file=MIB, body=MIB, values=100_000)
MEMORY = 2 << 30
"""Bytes of address space that an input may make the process take."""
ROUND, SAMPLES = 400, 10
"""Inputs and recordings of one pass of Hypothesis; then it starts from another seed."""

WORDS = [
    b"agentlatency-delta", b"!!binary ", b"&a ", b"*a", b"<<: ", b"\xef\xbb\xbf", b"\x00", b"\xff", b"\r", b"\xc2\x85",
    b"? ", b"- ", b"{}", b"[", b"null", b"-1", b"1e309", b"9" * 400, b"127*4294967295", b"= messages", b"+ {",
    b"end: 0", b"version: 9",
    b"\xed\xa0\x80", b"\\ud800", b"%YAML 9.9\n", b"|+2\n", b"0x", b"0o7", b"~", b"crc 00000000",
    b"!!python/name:os.system ",
]  # fmt: skip
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=8)
    | st.sampled_from(["127*9", "-1", "crc 00000000", "complete", 599, -1, 1 << 70]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def ours(made: document.Document) -> bytes:
    return document.dumps(made)


def plain(made: document.Document) -> bytes:
    return convert.to_vcr(made)


def theirs(made: document.Document) -> bytes:
    """As another recorder would have written it, without our key."""
    tree = yaml.load(convert.to_vcr(made), yaml.CSafeLoader)
    for each in tree["interactions"]:
        del each["response"]["agentlatency"]
    return yaml.dump(tree, Dumper=yaml.CSafeDumper, allow_unicode=True).encode()


def theirs_json(made: document.Document) -> bytes:
    tree = yaml.load(theirs(made), yaml.CSafeLoader)
    return json.dumps(tree, default=lambda value: value.decode("latin-1")).encode()


def zipped(made: document.Document) -> bytes:
    return gzip.compress(theirs(made))


def samples(number: int) -> list[bytes]:
    """Whole cassettes of drawn recordings: drawing one takes longer than reading a hundred."""
    found: list[bytes] = []

    @seed(number)
    @settings(max_examples=SAMPLES, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(recordings(most_turns=3))
    def collect(recording: Recording) -> None:
        found.extend(write(document.Document(recording)) for write in (ours, plain, theirs, theirs_json, zipped))

    collect()
    return found


@st.composite
def damaged(draw: st.DrawFn, whole: list[bytes]) -> bytes:
    """A cassette that something happened to."""
    data = draw(st.sampled_from(whole))
    return draw(st.sampled_from([_bytes, _words, _lines, _tree]))(draw, data)


def _bytes(draw: st.DrawFn, data: bytes) -> bytes:
    for _ in range(draw(st.integers(1, 6))):
        at, length = draw(st.integers(0, len(data))), draw(st.integers(0, 60))
        data = data[:at] + draw(st.binary(max_size=12)) + data[at + length :]
    return data


def _words(draw: st.DrawFn, data: bytes) -> bytes:
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.sampled_from(WORDS)) + data[at + draw(st.integers(0, 8)) :]
    return data


def _lines(draw: st.DrawFn, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 4))):
        one, other = (draw(st.integers(0, max(0, len(lines) - 1))) for _ in range(2))
        what = draw(st.sampled_from(["swap", "repeat", "drop", "cut"]))
        if what == "swap" and lines:
            lines[one], lines[other] = lines[other], lines[one]
        elif what == "repeat":
            lines[one:one] = lines[other : other + 5]
        elif what == "drop":
            del lines[one : one + draw(st.integers(1, 9))]
        else:
            lines = lines[: max(one, 1)]
    return b"".join(lines)


def _tree(draw: st.DrawFn, data: bytes) -> bytes:
    try:
        tree = yaml.load(data, yaml.CSafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError):
        return data
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from(list(_places(tree)) or [([0], 0)]))
        holder[key] = draw(TREES)
    return yaml.dump(tree, allow_unicode=True, sort_keys=False).encode("utf-8", "surrogatepass")


def _places(tree: Any) -> Any:
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        yield from _places(tree[key])


def read_ours(data: bytes) -> str:
    found = document.loads(data, "fuzz", SMALL)
    again = document.loads(document.dumps(found), "fuzz", SMALL)
    assert again.recording == found.recording, "what was read is not what is written"
    return "read"


def read_foreign(data: bytes) -> str:
    found = foreign.read(data, SMALL)
    for warning in found.warnings:
        assert str(warning)
    return "read"


def tried(read: Callable[[bytes], str], data: bytes) -> str:
    try:
        return read(data)
    except CassetteError as error:
        assert str(error), "an error without a message"  # noqa: PT017  # the other outcome is a value
        return type(error).__name__


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    outcomes: Counter[tuple[str, str]] = Counter()
    slowest = 0.0
    deadline, number = time.monotonic() + options.minutes * 60, options.seed

    def one(data: bytes) -> None:
        nonlocal slowest
        for read in (read_ours, read_foreign):
            start = time.process_time()
            try:
                outcomes[read.__name__, tried(read, data)] += 1
            except BaseException:
                Path("fuzz_crash.bin").write_bytes(data)
                raise
            slowest = max(slowest, time.process_time() - start)

    while time.monotonic() < deadline:
        quiet = settings(
            max_examples=ROUND,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        seed(number)(quiet(given(damaged(samples(number)))(one)))()
        number += 1
    total = sum(outcomes.values())
    print(f"{total:,} inputs tried, none crashed; the slowest took {slowest:.2f} s of CPU; next seed {number}")
    for (read, outcome), count in sorted(outcomes.items()):
        print(f"{read:>14} {outcome:>14} {count:>9,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
