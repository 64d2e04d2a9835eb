"""/overview: the state of a node in less than 64 KiB, for the farm page of another node.

/status has lists that grow with the site; decoding one of 300 KB would hold the interpreter for milliseconds.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from hltnode.daemon.common.bounded_get import NoAnswerError
from hltnode.daemon.monitoring.status_page.rates import Rates
from hltnode.protocol.transport.run_control_messages import RunState

MAX_OVERVIEW_BYTES = 64 << 10
MAX_TEXT = 300
MAX_PROBLEMS = 16
MAX_MISSING = 8
"""Most missing feeders, and most silent sources; `n_missing_feeders` and `n_silent_sources` count all."""

_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
_Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
_Texts = Annotated[tuple[_Text, ...], msgspec.Meta(max_length=MAX_PROBLEMS)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Sources = Annotated[tuple[_Count, ...], msgspec.Meta(max_length=MAX_MISSING)]
_Rate = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a node. Rates are per second, over the last ten seconds; the latency is that of a mean MEP."""

    node: _Name
    state: RunState
    run: _Count | None
    ready: bool
    problems: _Texts
    """Why the node is not ready."""
    version: _Text
    chain: _Text
    tck: _Text
    events_per_s: _Rate
    accepted_per_s: _Rate
    bytes_per_s: _Rate
    dead_time: _Share
    latency_s: _Rate | None
    feeders: _Count
    """Connected feeders."""
    n_missing_feeders: _Count
    missing_feeders: _Texts
    """The first feeders that left their run with more to send."""
    n_silent_sources: _Count
    silent_sources: _Sources
    """The first sources that do not deliver while others do."""
    time: _Rate
    """Unix time of the answer."""


def overview_of(
    status: Mapping[str, Any],
    problems: Collection[str],
    rates: Rates,
    latency_s: float | None,
    missing_feeders: Sequence[str],
    now_s: float,
) -> bytes:
    """The page of a node with this /status."""
    texts = [problem[:MAX_TEXT] for problem in problems][:MAX_PROBLEMS]
    return msgspec.json.encode(
        Overview(
            node=status["node"],
            state=status["state"],
            run=status["run"],
            ready=not problems,
            problems=tuple(texts),
            version=status["version"][:MAX_TEXT],
            chain=status["chain"][:MAX_TEXT],
            tck=status["tck"],
            events_per_s=rates.events,
            accepted_per_s=rates.accepted,
            bytes_per_s=rates.bytes,
            dead_time=min(1.0, sum(rates.dead_time.values())),
            latency_s=None if latency_s is None or not math.isfinite(latency_s) else latency_s,
            feeders=sum(feeder["connected"] for feeder in status["feeders"]),
            n_missing_feeders=status["n_missing_feeders"],
            missing_feeders=tuple(name[:MAX_TEXT] for name in missing_feeders[:MAX_MISSING]),
            n_silent_sources=len(status["silent_sources"]),
            silent_sources=tuple(status["silent_sources"][:MAX_MISSING]),
            time=now_s,
        )
    )


def read_overview(body: bytes) -> Overview:
    """The overview in an answer of another node. Raises NoAnswerError."""
    try:
        return msgspec.json.decode(body, type=Overview)
    # Deeply nested brackets raise RecursionError; ValueError covers wrong bytes and all errors of msgspec.
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NoAnswerError("the answer is not that of a node") from error
