"""The analyses that budgets ask, put together for one run.

Owns the translation from ledger and prefix comparison to figures. Refuses to read requests: the caller, who has the
recording, gives each call's effective prompt.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.inventory import Inventory
from pytest_agentlatency.analysis.kvcache import KvSpec
from pytest_agentlatency.analysis.ledger import Ledger, TurnAccount, ledger
from pytest_agentlatency.analysis.prefix import Sent, Stability, TurnPrefix, prefixes, stable
from pytest_agentlatency.analysis.tokens import Source
from pytest_agentlatency.budgets.figure import Figure, Figures, ToolResult, Unit
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Lane, Run, Turn
from pytest_agentlatency.wire.message import Prompt


def figures(
    run: Run, prompts: Mapping[int, Prompt], counter: Counter, kv_specs: Mapping[str, KvSpec] | None = None
) -> Figures:
    """Figures of a run, lane by lane. Nothing is counted before a budget asks; then every prompt of the lane once.

    prompts: call id -> effective prompt, of the live request in a replay. Where a call of a lane has none, the lane's
    figures are not measured.
    """
    lanes = {lane.id: _of_lane(lane, prompts, counter, kv_specs or {}) for lane in run.lanes}
    main = lanes.pop(run.lanes[0].id) if run.lanes else Figures(kv_specs=kv_specs or {})
    return replace(main, lanes=lanes)


def _of_lane(lane: Lane, prompts: Mapping[int, Prompt], counter: Counter, kv_specs: Mapping[str, KvSpec]) -> Figures:
    found = account(lane.turns, prompts, counter)
    return of_account(found, kv_specs) if found else Figures(kv_specs=kv_specs)


def account(turns: Sequence[Turn], prompts: Mapping[int, Prompt], counter: Counter) -> "Account | None":
    """Ledger and prefixes of a lane's turns; None where the prompt of one of its calls is missing."""
    known = [prompts[turn.call.record.id] for turn in turns if turn.call.record.id in prompts]
    return Account(turns, known, counter) if known and len(known) == len(turns) else None


def of_account(lane: "Account", kv_specs: Mapping[str, KvSpec] | None = None) -> Figures:
    """Figures over an account."""
    return Figures(
        cuts=lambda _: lane.cuts,
        stability=lambda _, except_turns: lane.stability(except_turns),
        results=lambda _: lane.results,
        held=lambda _, turn, tool: lane.held(turn, tool),
        unused_tools=lambda _: [piece.name for piece in lane.ledger.unused_tools],
        reread=lambda _, turn: lane.reread(turn),
        kv_specs=kv_specs or {},
    )


@dataclass
class Account:
    """A lane; its ledger and its prefixes are worked out when first asked for."""

    turns: Sequence[Turn]
    prompts: Sequence[Prompt]
    counter: Counter

    @cached_property
    def inventory(self) -> Inventory:
        """What the prompts are made of."""
        return Inventory(self.counter)

    @cached_property
    def ledger(self) -> Ledger:
        """Who holds which tokens."""
        called = {block.name for turn in self.turns for block in turn.call.generated if block.name}
        usages = [turn.call.usage for turn in self.turns]
        return ledger(zip(self.prompts, usages, strict=True), self.counter, called=called, inventory=self.inventory)

    @cached_property
    def prefixes(self) -> tuple[TurnPrefix, ...]:
        """What each request repeats of the one before it."""
        pairs = zip(self.prompts, self.turns, strict=True)
        sent = (Sent(prompt, _body(turn), turn.call.usage.context) for prompt, turn in pairs)
        return prefixes(sent, self.counter, self.inventory)

    @cached_property
    def cuts(self) -> Sequence[int]:
        """Turns whose request is no extension of the previous one."""
        return [turn.turn for turn in self.prefixes if turn.broken]

    def stability(self, except_turns: Collection[int]) -> Stability:
        """The breaks, given the turns that may break."""
        return stable(self.prefixes, except_turns)

    @cached_property
    def results(self) -> Sequence[ToolResult]:
        """Every tool result once, at the turn that brought it."""
        return [
            ToolResult(account.turn, piece.name, piece.tokens)
            for account in self.ledger.turns
            for piece in account.added
            if piece.source is Source.TOOL_RESULT
        ]

    def held(self, turn: Turn, tool: str) -> Figure:
        """Tokens of tool results in a turn's context, of one tool or (empty name) of all."""
        by_tool = self._account(turn).results_by_tool
        return _tokens(by_tool.get(tool, 0) if tool else sum(by_tool.values()))

    def reread(self, turn: Turn | None) -> Figure:
        """Tokens that were sent again after their first turn, in one turn or the run."""
        if turn is None:
            return _tokens(self.ledger.reread)
        pieces = self._account(turn).pieces
        return _tokens(sum(tokens for piece, tokens in pieces if piece.since < turn.number))

    def _account(self, turn: Turn) -> TurnAccount:
        return self.ledger.turns[turn.number - 1]


def _tokens(count: int) -> Figure:
    return Figure(count, Unit.TOKENS, Provenance.ESTIMATED)


def _body(turn: Turn) -> bytes:
    """The request as it is sent now; nothing of a call without an attempt."""
    return turn.call.attempts[-1].request.body if turn.call.attempts else b""
