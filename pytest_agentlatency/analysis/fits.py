"""Which latency model speaks for a call: fitted on the recording's own calls, or calibrated.

Owns the grouping by provider, model and tier, and which calls may be learned from. The fit itself is `prefill`'s.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_agentlatency.analysis import prefill, timeline
from pytest_agentlatency.analysis.assembly import Reading
from pytest_agentlatency.analysis.calibration import Calibration
from pytest_agentlatency.analysis.prefill import LatencyModel, Load, NoFit, Prior, Sample, Shape
from pytest_agentlatency.model.run import Call
from pytest_agentlatency.model.usage import Usage


class Key(NamedTuple):
    """Calls that one latency model may speak for."""

    provider: str
    model: str
    tier: str = ""
    """Speed and service tier that the request asked for; empty for the default."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A latency model for one key, or why there is none."""

    model: LatencyModel | None
    source: str = ""
    """`6 calls of this recording`, `calibration of 2026-11-30`; without a model, why."""
    doubt: str = ""
    """Why cached tokens are prefilled all the same; the model takes them so."""
    suspicion: str = ""
    """Why they may be; the model believes the usage, and is no reason to fail."""

    def load(self, usage: Usage) -> Load | None:
        """What a call asks of prefill; None when its tokens aren't known."""
        if usage.uncached is None or usage.multi_pass:
            return None
        if self.doubt:
            return Load(0, int(usage.context or 0))
        return Load(usage.cache_read, int(usage.prefill_work or 0))

    @property
    def caution(self) -> str:
        """Why projected times must not fail a test; empty when they may."""
        if self.model is None:
            return ""
        if self.suspicion:
            return self.suspicion
        if self.model.gates:
            return ""
        width = f"a token's cost is known to a factor of {self.model.width:.1f} only"
        return f"{width} ({self.source}): run `agentlatency calibrate`"


def key_of(reading: Reading) -> Key:
    """The key of a call."""
    params = reading.prompt.params
    tier = " ".join(value for name in ("speed", "service_tier") if (value := params.get(name, "").strip('"')))
    return Key(reading.call.provider, reading.call.model, "" if tier in {"auto", "default", "standard"} else tier)


def prefill_of(call: Call) -> tuple[int, int] | None:
    """Begin and end of a call's prefill on the run's clock; None where it can't be told apart."""
    stamps = call.attempts[-1].stamps if call.attempts else None
    if stamps is None or not call.splits:
        return None
    sent = stamps.sent if stamps.sent is not None else (stamps.connect or (stamps.start,))[-1]
    return timeline.prefill_bounds(call, sent)


def sample(reading: Reading) -> Sample | None:
    """What may be learned from a call.

    None for a call that was retried, failed, not streamed, of several passes, or that began with hidden thinking.
    """
    call, usage, seen = reading.call, reading.call.usage, prefill_of(reading.call)
    unfit = call.error or call.retries or usage.multi_pass or call.flags & {"multi-pass", "hidden-thinking"}
    if seen is None or unfit or usage.prefill_work is None or seen[1] <= seen[0]:
        return None
    return Sample(int(usage.cache_read), int(usage.prefill_work), seen[1] - seen[0])


def fits(readings: Iterable[Reading], calibrations: Sequence[Calibration] = ()) -> Mapping[Key, Fit]:
    """A fit for every key among the readings.

    The recording's own calls speak where they pin down what a token costs: they were made on the day, the machine and
    the load that the recorded times come from. Otherwise a calibration does, where there is one; otherwise the own
    calls again, too wide to fail a test; and with fewer than three of them nothing does.
    """
    samples: dict[Key, list[Sample]] = defaultdict(list)
    asked: dict[Key, str] = {}
    for reading in readings:
        key = key_of(reading)
        asked.setdefault(key, reading.prompt.model)
        samples[key].extend(filter(None, [sample(reading)]))
    return {key: _fit(samples[key], _calibrated(key, name, calibrations)) for key, name in asked.items()}


def _calibrated(key: Key, asked: str, calibrations: Sequence[Calibration]) -> Calibration | None:
    """The latest calibration of a key; a model goes by the name that it was asked for, too."""
    found = [
        each
        for each in calibrations
        if (each.provider, each.tier) == (key.provider, key.tier) and each.model in {key.model, asked}
    ]
    return max(found, key=lambda each: each.date, default=None)


def _fit(samples: Sequence[Sample], calibration: Calibration | None) -> Fit:
    own = _own(samples, None if calibration is None else calibration.latency)
    if own.model is not None and own.model.gates:
        return own
    if calibration is not None:
        return Fit(calibration.latency, f"calibration of {calibration.date}")
    return own


def _own(samples: Sequence[Sample], calibrated: LatencyModel | None) -> Fit:
    """Fitted on the recording's own calls; a calibration is what is believed before they are seen."""
    prior, shape = (calibrated.prior, calibrated.shape) if calibrated else (Prior(), Shape())
    seen = prefill.cache_doubt(samples, shape) if calibrated else prefill.cache_doubt(samples)
    if seen and calibrated:
        samples = [Sample(0, each.cached + each.uncached, each.ttft_ns) for each in samples]
    found = prefill.fit(samples, prior=prior, shape=shape)
    calls = f"{len(samples)} streamed call{'' if len(samples) == 1 else 's'} of this recording"
    if isinstance(found, NoFit):
        return Fit(None, found.reason)
    if found.from_prior:
        return Fit(None, f"{calls} can't tell what a token costs, three are needed")
    if seen and not calibrated:
        return Fit(found, calls, suspicion=f"{seen}: the cache has no effect, or attention is dear: {_TELLS}")
    return Fit(found, calls, f"cache not effective: {seen}" if seen else "")


_TELLS = "`agentlatency calibrate` tells which"
