"""What can be wrong with a cassette, by name. Owns the kinds of failure; refuses to know who reports them.

Read as `errors.Missing`, `errors.Truncated`: the module is the suffix.
"""
# ruff: noqa: N818


class CassetteError(Exception):
    """A cassette can't be used. The message says what was found, what was allowed, where, and what to do next."""


class Missing(CassetteError):
    """There is no cassette at the path."""


class Unreadable(CassetteError):
    """The bytes are not a cassette: no YAML, not UTF-8, a field of the wrong type, a body that doesn't rebuild."""


class Truncated(Unreadable):
    """The end of the cassette is missing."""


class NewerVersion(CassetteError):
    """A later version of the plugin wrote the cassette."""


class Refused(CassetteError):
    """A limit or a rule of safety forbids it; the message names the limit."""


class Unwritable(CassetteError):
    """The system refuses to write: a full disk, a folder that is read only."""


class TwoWriters(CassetteError):
    """Another test or process is recording the same cassette."""
