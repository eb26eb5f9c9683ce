"""A support agent as teams write them: a loop around a model, and two tools. It knows nothing of latency tests."""

import json
import os
from dataclasses import asdict, dataclass

import anthropic

SYSTEM = "You answer customers of a parcel service. Look things up before you answer. Be brief."
TOOLS = [
    {
        "name": "search",
        "description": "Search the parcel records.",
        "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
    {
        "name": "calculator",
        "description": "Add up days.",
        "input_schema": {"type": "object", "properties": {"days": {"type": "array", "items": {"type": "integer"}}}},
    },
]


@dataclass
class Record:
    title: str
    history: str


RECORDS = [
    Record(f"Parcel {number}: left the depot in {town}, tracking number DE{number}", f"scanned in {town}; " * 60)
    for number, town in enumerate(["Hamburg", "Bremen", "Kassel", "Fulda", "Erfurt"], start=4711)
]
assert asdict  # used by those who return whole records


def search(query):
    matches = [record for record in RECORDS if query.split()[-1] in record.title]
    return [match.title for match in matches]


def calculator(days):
    return sum(days)


def answer(question):
    client = anthropic.Anthropic(base_url=os.environ["MODEL_URL"], api_key=os.environ.get("MODEL_KEY", "none"))
    messages = [{"role": "user", "content": question}]
    while True:
        with client.messages.stream(
            model="claude-sonnet-5", max_tokens=500, system=SYSTEM, tools=TOOLS, messages=messages
        ) as stream:
            message = stream.get_final_message()
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return message.content[-1].text
        messages.append({"role": "assistant", "content": [block.to_dict() for block in message.content]})
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": json.dumps(globals()[call.name](**call.input))}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})
