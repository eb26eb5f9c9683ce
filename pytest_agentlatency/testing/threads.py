"""Conversations that the server holds: Anthropic's message threads (beta `message-threads-2026-08-12`).

Owns the stored histories, by the id of the answer that ends them. Refuses to know what is answered.
"""

from typing import Any

from pytest_agentlatency.testing.prompts import Json

_HELD = ("system", "tools")


class ThreadError(Exception):
    """A request that can't be continued. The client may send the whole conversation again."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Threads:
    """Histories by answer id; each answer can be continued once."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, Any]] = {}
        self._continued: set[str] = set()

    def whole(self, body: Json) -> Json:
        """The request with what the server holds put before it. ThreadError when there is nothing to continue."""
        previous = _previous(body)
        if not previous:
            return body
        if previous not in self._held:
            msg = f"no thread ends in {previous!r}"
            raise ThreadError(404, "thread_not_found", msg)
        if previous in self._continued:
            msg = f"{previous!r} has been continued already"
            raise ThreadError(400, "thread_already_continued", msg)
        held = self._held[previous]
        return {**body, **held, "messages": [*held["messages"], *(body.get("messages") or ())]}

    def remember(self, body: Json, whole: Json, answer_id: str, content: list[dict[str, Any]]) -> None:
        """Hold the conversation with its answer when the request asked for a thread."""
        if not body.get("thread"):
            return
        self._continued.add(_previous(body))
        messages = [*(whole.get("messages") or ()), {"role": "assistant", "content": content}]
        self._held[answer_id] = {name: whole[name] for name in _HELD if name in whole} | {"messages": messages}


def _previous(body: Json) -> str:
    thread: Json = body.get("thread") or {}
    return str(thread.get("previous_message_id", "")) if thread.get("type") == "continue" else ""
