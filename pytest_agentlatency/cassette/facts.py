"""What a cassette says once, of the whole run: its test, versions, bounds, calls, tools and pauses.

Owns that mapping. Refuses to know exchanges and where the mapping stands.
"""

from collections.abc import Mapping
from dataclasses import replace

from pytest_agentlatency.cassette import series
from pytest_agentlatency.cassette.emit import Row, Value
from pytest_agentlatency.cassette.limits import DEFAULT, Limits
from pytest_agentlatency.cassette.parse import Node
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import CallRecord, Facts, Pause, Recording, ToolRecord


def write(recording: Recording) -> dict[str, Value]:
    """Everything of a recording but its attempts; what is empty or not known is left out."""
    said = recording.facts
    return _known(
        {
            "test": said.test,
            "recorded": said.recorded,
            "counter": said.counter,
            "versions": dict(sorted(said.versions.items())),
            "bounds": _pair(recording.bounds),
            "calls": [_call(call) for call in recording.calls],
            "tools": [_tool(tool) for tool in recording.tools],
            "pauses": [Row(start=pause.start, end=pause.end, reason=pause.reason) for pause in recording.pauses],
        },
    )


def _known(mapping: Mapping[str, Value]) -> dict[str, Value]:
    return {key: value for key, value in mapping.items() if value not in (None, "", [], {}) and value is not False}


def _pair(pair: tuple[int, int] | None) -> str | None:
    return None if pair is None else f"{pair[0]} {pair[1]}"


def _call(call: CallRecord) -> Row:
    sleeps = [moment for sleep in call.backoffs for moment in sleep]
    return Row(
        _known(
            {
                "id": call.id,
                "sdk": call.sdk,
                "entered": call.entered,
                "returned": call.returned,
                "backoffs": " ".join(map(str, sleeps)),
                "parent": call.parent,
                "delivered": call.delivered,
            },
        ),
    )


def _tool(tool: ToolRecord) -> Row:
    return Row(
        _known(
            {
                "id": tool.id,
                "name": tool.name,
                "start": tool.start,
                "end": tool.end,
                "body": _pair(tool.body),
                "parent": tool.parent,
                "error": tool.error,
                "rejected": tool.rejected,
            },
        ),
    )


def read(node: Node, recording: Recording, limits: Limits = DEFAULT) -> Recording:
    """The recording with what the mapping says. Raises Unreadable with the place."""
    return replace(
        recording,
        calls=tuple(_read_call(each, limits) for each in node["calls"].items()),
        tools=tuple(_read_tool(each) for each in node["tools"].items()),
        pauses=tuple(_read_pause(each) for each in node["pauses"].items()),
        bounds=_read_pair(node["bounds"]),
        facts=Facts(
            test=node["test"].text(),
            recorded=node["recorded"].text(),
            counter=node["counter"].text(),
            versions={name: node["versions"][name].text() for name in node["versions"].mapping()},
        ),
    )


def _read_call(node: Node, limits: Limits) -> CallRecord:
    sleeps = _numbers(node["backoffs"], limits)
    return CallRecord(
        id=node["id"].number(),
        sdk=node["sdk"].text(),
        entered=_read_moment(node["entered"]),
        returned=_read_moment(node["returned"]),
        backoffs=tuple((Ns(start), Ns(end)) for start, end in zip(sleeps[::2], sleeps[1::2], strict=True)),
        parent=_read_number(node["parent"]),
        delivered=_read_moment(node["delivered"]),
    )


def _read_tool(node: Node) -> ToolRecord:
    return ToolRecord(
        id=node["id"].number(),
        name=node["name"].text(),
        start=Ns(node["start"].number()),
        end=Ns(node["end"].number()),
        body=_read_pair(node["body"]),
        parent=_read_number(node["parent"]),
        error=node["error"].value is True,
        rejected=node["rejected"].value is True,
    )


def _read_pause(node: Node) -> Pause:
    return Pause(Ns(node["start"].number()), Ns(node["end"].number()), node["reason"].text())


def _read_number(node: Node) -> int | None:
    return None if node.value is None else node.number()


def _read_moment(node: Node) -> Ns | None:
    return None if node.value is None else Ns(node.number())


def _read_pair(node: Node) -> tuple[Ns, Ns] | None:
    numbers = _numbers(node, DEFAULT)
    if not numbers:
        return None
    if len(numbers) == 1:
        reason = f"{node.value!r:.60} found, a start and an end expected"
        raise node.fail(reason)
    return Ns(numbers[0]), Ns(numbers[1])


def _numbers(node: Node, limits: Limits) -> tuple[int, ...]:
    try:
        numbers = series.read(node.text(), limits.values)
    except ValueError as error:
        raise node.fail(str(error)) from error
    if len(numbers) % 2:
        reason = f"{len(numbers)} times found, pairs of start and end expected"
        raise node.fail(reason)
    return numbers
