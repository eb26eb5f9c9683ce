"""A connection's failure as it is recorded, and as it is raised again.

Owns what of an exception an SDK can act on or quote: the class its HTTP library gave it, and the operating system's
error at its bottom. Refuses to keep the libraries in between, which differ between sync and async and by version.
"""

import builtins
import errno
import socket
import ssl
from collections.abc import Iterator
from types import ModuleType

from pytest_agentlatency.model.recording import Failure, SystemFailure

_LINKS = 16
_HOMES = (builtins, socket, ssl)


def failure_of(error: BaseException) -> Failure:
    """An exception by the name its library gives it, and by the operating system's error below it."""
    return Failure(type(error).__name__, str(error), _system(error))


def raised(family: ModuleType, failure: Failure) -> BaseException:
    """A recorded failure as the family's own exception, so that an SDK retries and says what it did then."""
    kind = getattr(family, failure.kind, None)
    error: BaseException
    if isinstance(kind, type) and issubclass(kind, Exception):
        error = kind(failure.message)
    else:
        error = family.TransportError(f"{failure.kind}: {failure.message}")
    if failure.system is not None:
        error.__cause__ = _system_error(failure.system)
    return error


def _system(error: BaseException) -> SystemFailure | None:
    """The innermost error of the operating system that says something; a deadline of an event loop says nothing."""
    found = None
    for inner in _below(error):
        if isinstance(inner, OSError) and str(inner):
            # An errno of TLS or of name resolution counts by a table of its own.
            plain = not isinstance(inner, (ssl.SSLError, socket.gaierror, socket.herror))
            code = errno.errorcode.get(inner.errno or 0, "") if plain else ""
            found = SystemFailure(type(inner).__name__, (inner.strerror or "") if code else str(inner), code)
    return found


def _below(error: BaseException) -> Iterator[BaseException]:
    """What an exception was raised from; httpcore2 keeps it as an argument only, anyio in a group."""
    for _ in range(_LINKS):
        linked = [*getattr(error, "exceptions", ()), error.__cause__, *error.args]
        inner = next((each for each in linked if isinstance(each, BaseException)), None)
        if inner is None:
            return
        yield inner
        error = inner


def _system_error(failure: SystemFailure) -> OSError:
    number = getattr(errno, failure.code, None) if failure.code else None
    if isinstance(number, int):
        return OSError(number, failure.message)  # which makes it the subclass that belongs to the number
    kinds = (getattr(home, failure.kind, None) for home in _HOMES)
    kind = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, OSError)), OSError)
    if issubclass(kind, ssl.SSLError):
        return kind(ssl.SSL_ERROR_SSL, failure.message)  # whose text is taken from its second argument alone
    return kind(failure.message)
