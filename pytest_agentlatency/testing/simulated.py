"""The simulated model: a server that answers like a provider, on time, with faults where they are asked for.

Owns routing, the order of requests, what one answer costs, and the log of what was served.
"""

import json
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.testing import chat_api, messages_api, prompts
from pytest_agentlatency.testing.costs import Cost, CostModel, InputTokens, PrefixCache, PromptBlock
from pytest_agentlatency.testing.faults import Fault, refuses
from pytest_agentlatency.testing.plan import Plan, Speech
from pytest_agentlatency.testing.prompts import Json
from pytest_agentlatency.testing.script import Asked, Prompter, Reply, Script
from pytest_agentlatency.testing.server import LoopbackServer, Received, Sent
from pytest_agentlatency.testing.threads import ThreadError, Threads

_SETTLE = 1.0  # seconds that the log waits for an answer whose client has read it already


@dataclass(frozen=True, slots=True)
class Served:
    """What the model did with one request, by its own account: the truth to measure a client's figures against."""

    number: int
    """Of the request, from 1."""
    received: Ns
    """When the request had arrived whole, on `model.clock`."""
    tokens: InputTokens = InputTokens(0)
    output: int = 0
    """Output tokens."""
    cost: Cost = Cost()
    """Queue, prefill and decode in nanoseconds, `time_scale` applied; faults not included."""
    reply: Reply | None = None
    """None: refused, or not a model call."""
    answer_id: str = ""
    sent: Sent | None = None
    """When the bytes left, faults included; None: still being sent."""


class SimulatedModel:
    """A model on loopback: real HTTP, scripted answers, stated cost. No key, no network.

        with SimulatedModel([Reply(tool_calls=[ToolUse("search", {"query": "parcel"})]), Reply("On its way.")],
                            costs=CostModel(prefill=100_000, decode=5_000_000)) as model:
            client = Anthropic(base_url=model.url, api_key="x")

    Speaks Anthropic Messages (`/v1/messages`, streamed and not, message threads, `count_tokens`) at `url`, and OpenAI
    Chat Completions (`/v1/chat/completions`, streamed and not) at `openai_url`.

    `script`: see `Script`. A request that it has no reply for is answered with status 400, which SDKs don't retry.
    `costs`: what an answer takes; tokens are counted as `testing.prompts` says.
    `faults`: what goes wrong, by request number from 1; several apply in their order.
    `time_scale`: multiplies every time of `costs` (not of faults); 0 answers at once.
    `tokens_per_event`: output tokens per streamed delta.
    `early_prelude`: a stream's first event goes out when prefill begins; False: with the first token, as llama.cpp.
    `report_times`: chat answers carry llama.cpp's `timings`.
    `tls`: a server context; the model is then reached over HTTPS.
    """

    def __init__(  # noqa: PLR0913 - a harness has switches; all but the first by keyword
        self,
        script: Script = Reply("Done."),  # noqa: B008 - frozen
        *,
        costs: CostModel = CostModel(),  # noqa: B008 - frozen
        faults: Mapping[int, Fault | Sequence[Fault]] | None = None,
        time_scale: float = 1.0,
        tokens_per_event: int = 1,
        early_prelude: bool = True,
        report_times: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._prompter = Prompter(script)
        self._costs = costs
        self._faults = faults or {}
        self._time_scale = time_scale
        self._speech = partial(
            Speech, tokens_per_event=tokens_per_event, early_prelude=early_prelude, report_times=report_times
        )
        self._cache = PrefixCache(costs.cache, costs.cache_minimum)
        self._threads = Threads()
        self._changed = threading.Condition()
        self._requests: dict[int, Received] = {}
        self._served: dict[int, Served] = {}
        self._tls = tls
        self._server: LoopbackServer | None = None

    def __enter__(self) -> Self:
        wait = round(self._costs.connect * self._time_scale)
        self._server = LoopbackServer(self._answer, self._note_sent, connect_wait=wait, tls=self._tls).__enter__()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._server is not None:
            self._server.__exit__(*exc_info)

    @property
    def url(self) -> str:
        """Base URL for the anthropic SDK. RuntimeError before the model was entered."""
        if self._server is None:
            msg = "the simulated model isn't listening yet: write `with SimulatedModel(...) as model:`"
            raise RuntimeError(msg)
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._server.port}"

    @property
    def openai_url(self) -> str:
        """Base URL for the openai SDK."""
        return f"{self.url}/v1"

    @property
    def requests(self) -> tuple[Received, ...]:
        """Every HTTP request that arrived, in order."""
        with self._changed:
            return tuple(each for _, each in sorted(self._requests.items()))

    @property
    def served(self) -> tuple[Served, ...]:
        """What was done with each request, in the order of arrival."""
        with self._changed:
            self._changed.wait_for(lambda: all(each.sent for each in self._served.values()), _SETTLE)
            return tuple(each for _, each in sorted(self._served.items()))

    def _answer(self, received: Received) -> Plan:
        given = self._faults.get(received.number, ())
        faults = given if isinstance(given, Sequence) else (given,)
        with self._changed:
            self._requests[received.number] = received
            self._served[received.number] = Served(received.number, received.at)
            plan = self._refused() if refuses(faults) else self._route(received)
        for fault in faults:
            plan = fault.change(plan)
        return plan

    def _refused(self) -> Plan:
        return Plan(200, headers_at=round(self._costs.queue * self._time_scale))

    def _note_sent(self, received: Received, sent: Sent) -> None:
        with self._changed:
            self._served[received.number] = replace(self._served[received.number], sent=sent)
            self._changed.notify_all()

    def _route(self, received: Received) -> Plan:
        path = received.path.partition("?")[0]
        try:
            body = json.loads(received.body or b"{}")
            match received.method, path:
                case "POST", "/v1/messages":
                    return self._message(received, body)
                case "POST", "/v1/messages/count_tokens":
                    tokens = sum(block.tokens for block in prompts.messages_blocks(self._threads.whole(body)))
                    return messages_api.token_count(tokens)
                case "POST", "/v1/chat/completions":
                    return self._completion(received, body)
                case _:
                    return messages_api.refusal(404, f"the simulated model has no {received.method} {path}")
        except ThreadError as error:
            return messages_api.refusal(error.status, str(error), details={"error_code": error.code})
        except Exception as error:  # noqa: BLE001 - a server must answer; 400 is what no SDK retries
            return messages_api.refusal(400, f"{type(error).__name__}: {error}")

    def _message(self, received: Received, body: Json) -> Plan:
        whole = self._threads.whole(body)
        asked = prompts.asked(received.number, body, whole)
        reply, speech = self._speak(received, asked, prompts.messages_blocks(whole))
        self._threads.remember(body, whole, speech.id, messages_api.content(reply, speech.id))
        return messages_api.plan(reply, speech)

    def _completion(self, received: Received, body: Json) -> Plan:
        asked = prompts.asked(received.number, body)
        reply, speech = self._speak(received, asked, prompts.chat_blocks(body))
        options: Json = body.get("stream_options") or {}
        return chat_api.plan(reply, replace(speech, with_usage=bool(options.get("include_usage"))))

    def _speak(self, received: Received, asked: Asked, blocks: Sequence[PromptBlock]) -> tuple[Reply, Speech]:
        """The script's reply and what it costs, noted in the log."""
        limit = asked.body.get("max_tokens") or asked.body.get("max_completion_tokens")
        reply = self._prompter.reply(asked).limited(limit)
        tokens = self._cache.count(blocks, received.at)
        cost = self._costs.cost(tokens, reply.output_tokens).scaled(self._time_scale)
        self._cache.store(blocks, received.at + cost.first_token)
        answer_id = f"msg_sim_{received.number:04}"
        self._served[received.number] = Served(
            received.number, received.at, tokens, reply.output_tokens, cost, reply, answer_id
        )
        streamed = bool(asked.body.get("stream"))
        return reply, self._speech(answer_id, asked.model, tokens, cost, streamed)
