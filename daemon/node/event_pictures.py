"""The picture of an accepted event on the status page.

It costs no time while the page is not requested. A request of the page makes the next accepted event be copied, and a
thread draws it. The next picture follows after the configured period, if the page is still requested.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import EventStream
from hltnode.daemon.monitoring.status_page.page import EventPicture
from hltnode.daemon.output.gathering import GatheredBatch
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.reports import decode_dec_reports

# Drawing larger events takes too long beside a running node; events of proton collisions have 0.2 MB.
MAX_RECORD_BYTES = 2 << 20
LOG_INTERVAL_NS = 60_000_000_000

Draw = Callable[[Sequence[RawBank]], str]
"""Draws an event as SVG. Its exceptions are caught by the caller."""

log = get_logger("event_pictures")


@dataclass(frozen=True, slots=True)
class _Drawn:
    svg: str
    title: str
    lines: tuple[str, ...]
    at_ns: int


class EventPictures:
    """Draws pictures on request. Calls come from the event loop, except `stop`.

    Args:
        load: creates the drawing function, in the thread, at the first request and after a change of the TCK.
        lines: names of the lines in the order of their bits.
        tck: returns the key of the trigger configuration in use.
    """

    def __init__(
        self,
        load: Callable[[], Draw],
        lines: Sequence[str],
        period_ns: int,
        clock_ns: Callable[[], int],
        tck: Callable[[], int] = lambda: 0,
    ) -> None:
        self._tck = tck
        self._tck_of_draw: int | None = None
        self._load = load
        self._lines = tuple(lines)
        self._period_ns = period_ns
        self._clock_ns = clock_ns
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._draw: Draw | None = None
        self._thread: threading.Thread | None = None
        self._drawn: _Drawn | None = None
        self._tried_ns: int | None = None
        self._failed = False
        self.wanted = False
        """Whether `offer` would take an event."""

    def look(self) -> EventPicture:
        """The last picture; requests the next one after the period."""
        now_ns = self._clock_ns()
        is_drawing = self._thread is not None and self._thread.is_alive()
        if not is_drawing and (self._tried_ns is None or now_ns - self._tried_ns >= self._period_ns):
            self.wanted = True
        note = "The last accepted event could not be drawn: see the log." if self._failed else ""
        drawn = self._drawn
        if drawn is None:
            note = note or ("The event is being drawn." if is_drawing else "Waiting for an accepted event.")
            return EventPicture("", "", (), 0.0, note)
        return EventPicture(drawn.svg, drawn.title, drawn.lines, (now_ns - drawn.at_ns) * 1e-9, note)

    def offer(self, batch: GatheredBatch) -> None:
        """Draw one accepted event of a batch, if it has any."""
        for block in batch.events.get(EventStream.ACCEPTED, ()):
            record = next(block.records(), None)
            if record is None or len(record) > MAX_RECORD_BYTES:
                continue
            self.wanted = False
            self._tried_ns = self._clock_ns()
            self._thread = threading.Thread(
                target=self._run, args=(bytes(record),), name="hltnode-event-picture", daemon=True
            )
            self._thread.start()
            return

    def stop(self, timeout_s: float) -> None:
        """Wait for the thread; a thread that takes longer does not block the end of the process."""
        self.wanted = False
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self, record: bytes) -> None:
        try:
            tck = self._tck()
            if self._draw is None or tck != self._tck_of_draw:
                self._draw, self._tck_of_draw = self._load(), tck
            banks = next(iter(iter_records(record))).banks()
            svg = self._draw(banks)
            self._drawn = _Drawn(svg, _title(banks), self._accepted_by(banks), self._clock_ns())
            self._failed = False
        except Exception:
            # An error of the drawing must cost a running node only the picture.
            self._failed = True
            if self._limit.due("drawing") is not None:
                log.exception("event_not_drawn")

    def _accepted_by(self, banks: Sequence[RawBank]) -> tuple[str, ...]:
        for bank in banks:
            if bank.type == BankType.HLT_DEC_REPORTS:
                ids = [line.decision_id - 1 for line in decode_dec_reports(bank).lines if line.decision]
                return tuple(self._lines[i] for i in ids if 0 <= i < len(self._lines))
        return ()


def _title(banks: Sequence[RawBank]) -> str:
    for bank in banks:
        if bank.type == BankType.ODIN:
            try:
                odin = decode_odin(bank)
            except ProtocolError:
                break
            return f"Run {odin.run}, event {odin.event_id}"
    return "An event without run and number"
