"""The analyses that budgets ask, put together for one run.

Owns the translation from ledger and prefix comparison to figures. Refuses to read requests: the caller, who has the
recording, gives each call's effective prompt.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.kvcache import KvSpec
from pytest_agentlatency.analysis.ledger import Ledger, TurnAccount, ledger
from pytest_agentlatency.analysis.prefix import Sent, Stability, TurnPrefix, prefixes, stable
from pytest_agentlatency.analysis.tokens import Source
from pytest_agentlatency.budgets.figure import Figure, Figures, ToolResult, Unit
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Run, Turn, Verdict
from pytest_agentlatency.wire.message import Prompt


def figures(
    run: Run, prompts: Mapping[int, Prompt], counter: Counter, kv_specs: Mapping[str, KvSpec] | None = None
) -> Figures:
    """Figures of a run. Nothing is counted before a budget asks; then every prompt once.

    prompts: call id -> effective prompt, of the live request in a replay. Where a call of the main lane has none,
    its figures are not measured.
    """
    specs = kv_specs or {}
    turns = [turn for turn in run.turns if turn.call.record.id in prompts]
    if not turns or len(turns) < len(run.turns):
        return Figures(kv_specs=specs)
    main = _Main(turns, [prompts[turn.call.record.id] for turn in turns], counter)
    return Figures(
        cuts=lambda _: main.cuts,
        stability=lambda _, except_turns: main.stability(except_turns),
        results=lambda _: main.results,
        held=lambda _, turn, tool: main.held(turn, tool),
        unused_tools=lambda _: [piece.name for piece in main.ledger.unused_tools],
        reread=lambda _, turn: main.reread(turn),
        kv_specs=specs,
    )


@dataclass
class _Main:
    """The main lane; its ledger and its prefixes are worked out when first asked for."""

    turns: Sequence[Turn]
    prompts: Sequence[Prompt]
    counter: Counter

    @cached_property
    def ledger(self) -> Ledger:
        called = {block.name for turn in self.turns for block in turn.call.generated if block.name}
        usages = [turn.call.usage for turn in self.turns]
        return ledger(zip(self.prompts, usages, strict=True), self.counter, called=called)

    @cached_property
    def prefixes(self) -> tuple[TurnPrefix, ...]:
        pairs = zip(self.prompts, self.turns, strict=True)
        return prefixes((Sent(prompt, _body(turn), turn.call.usage.context) for prompt, turn in pairs), self.counter)

    @property
    def cuts(self) -> Sequence[int]:
        return [turn.turn for turn in self.prefixes if turn.broken]

    def stability(self, except_turns: Collection[int]) -> Stability:
        return stable(self.prefixes, except_turns)

    @property
    def results(self) -> Sequence[ToolResult]:
        return [
            ToolResult(account.turn, piece.name, piece.tokens)
            for account in self.ledger.turns
            for piece in account.added
            if piece.source is Source.TOOL_RESULT
        ]

    def held(self, turn: Turn, tool: str) -> Figure:
        by_tool = self._account(turn).results_by_tool
        return _tokens(by_tool.get(tool, 0) if tool else sum(by_tool.values()))

    def reread(self, turn: Turn | None) -> Figure:
        if turn is None:
            return _tokens(self.ledger.reread)
        pieces = self._account(turn).pieces
        return _tokens(sum(tokens for piece, tokens in pieces if piece.since < turn.number))

    def _account(self, turn: Turn) -> TurnAccount:
        return self.ledger.turns[turn.number - 1]


def _tokens(count: int) -> Figure:
    return Figure(count, Unit.TOKENS, Provenance.ESTIMATED)


def _body(turn: Turn) -> bytes:
    """The request as sent; nothing for a drifted call, whose attempts are the recording's."""
    same = turn.call.verdict in {None, Verdict.IDENTICAL}
    return turn.call.attempts[-1].request.body if same and turn.call.attempts else b""
