"""Handling of each frame: check it, get its place from the event builder, copy it and compute its CRC.

Compiled code handles the fragments of open MEPs (`FragmentIntake`), and refuses unreadable frames and those of senders
that were refused before. `frame_arrived` handles all others: the first fragment of a MEP, the first frame of a sender,
other refused and damaged frames.

A frame without permission (`FramePermissions`) is refused before anything else about it counts: it reserves no place,
and no source counts as alive because of it. Its feeder is not known, so it gets no answer.
"""

from collections.abc import Callable, Sequence

from hltnode.daemon._native import FragmentIntake, Outcome, SenderAnswers
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.stimuli_and_effects import Effect, FrameDamaged, Place
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.input_tap import InputTap
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import FrameError, RejectReason
from hltnode.protocol.fragment_frame import copy_mfp, has_right_crc, inspect_frame
from hltnode.protocol.shared_frames import refusal_of_placed
from hltnode.protocol.transport.frame_header import HEADER_SIZE, TOKEN_AT, decode_header

# A frame damaged on the wire may be valid when it is sent again. Other damage comes from the feeder and would stay.
_WORTH_SENDING_AGAIN = frozenset({RejectReason.BAD_CRC})
# Time for which frames with an ended token may still arrive: the TCP of a feeder gives up its data after 15 s.
IN_FLIGHT_NS = 15_000_000_000
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("frame_handler")


class FrameHandler:
    """Handles frames, without sockets. `intake` is the compiled part.

    A MFP can be copied only to a known place, and its CRC is known only after the copy. So the builder first returns
    the place, and is told of the fragment only if the CRC is right. A wrong CRC takes precedence over all other reasons
    to refuse a fragment.

    Args:
        buffers: the pinned input of each slot, writable views of bytes.
        carry_out: carries out the effects of the builder.
        refusal: the reason to refuse a frame by its token, run and source; None for a frame with permission.
        senders: remembers the answers of `refusal` for compiled code.
        copy_threads: number of threads that copy, including the thread of the event loop.
        tap: gets each accepted fragment.
    """

    def __init__(
        self,
        builder: EventBuilder,
        buffers: Sequence[memoryview],
        counters: Counters,
        carry_out: Callable[[Sequence[Effect]], None],
        refusal: Callable[[int, int, int], RejectReason | None],
        senders: SenderAnswers,
        *,
        max_frame_bytes: int,
        clock: ReadingClock,
        copy_threads: int = 1,
        tap: InputTap | None = None,
    ) -> None:
        self._builder = builder
        self._buffers = buffers
        self._counters = counters
        self._carry_out = carry_out
        self._refusal = refusal
        self._max_mfp_bytes = max_frame_bytes - HEADER_SIZE
        self.clock = self._clock = clock
        self._tap = tap
        self._limit = RateLimit(LOG_INTERVAL_NS, lambda: clock.now_ns)
        self._senders = senders
        self._n_changes = -1
        self.intake = FragmentIntake(
            builder.pool.meps, senders, counters.sources, buffers, self._max_mfp_bytes, copy_threads
        )

    def begin_turn(self) -> ReadingClock:
        """Read the clock before the sockets are read. Returns the clock for all frames of this turn."""
        self._clock.read()
        # A recorder needs the frames, and compiled code keeps none.
        self.intake.is_on = self._tap is None or not self._tap.has_recorder
        # Feeders are told of a refusal again in each turn, and other messages may have changed it.
        self._builder.pool.meps.forget_refused()
        return self._clock

    def taken(self, outcome: Outcome) -> None:
        """Count the frames that the compiled part has handled or refused, and close the MEP that is complete."""
        frames, nbytes = self.intake.take_counts()
        self._counters.fragments_received += frames
        self._counters.fragment_bytes_received += nbytes
        for reason, n, size, head in self.intake.take_refused() if frames else ():
            self._refused(RejectReason(reason), n, size, head)
        if outcome is Outcome.COMPLETE:
            self._carry_out(self._builder.mep_complete(self._clock.now_ns, self.intake.last_mep))

    def shared_frames_arrived(self, frames: memoryview, at: int, end_ns: int) -> int:
        """Handle the frames of a range from `at` until a monotonic time (ns). Call `begin_turn` first.

        The frames may have any bytes, which their feeder may change meanwhile. Returns the offset of the next frame.
        """
        clock = self._clock
        while True:
            outcome, begin, end, at = self.intake.take_range(frames, at, clock.now_ns, clock.true_ns, end_ns)
            self.taken(outcome)
            if outcome is Outcome.LEFT:
                with frames[begin:end] as frame:
                    self.frame_arrived(frame, is_shared=True)
            elif outcome is not Outcome.COMPLETE:
                return at

    def frame_arrived(self, frame: Buffer, *, is_shared: bool = False) -> bool:
        """Handle one frame of any bytes. With `is_shared` the feeder may change the bytes, not their number.

        False for a frame that no correct feeder sends: unreadable, or without permission although no permission has
        ended for `IN_FLIGHT_NS`.
        """
        counters = self._counters
        n_bytes = len(frame)
        counters.fragments_received += 1
        counters.fragment_bytes_received += n_bytes
        now_ns = self._clock.now_ns
        is_readable, refusal, run, source_id, mep, size, first_event, n_events, token = inspect_frame(frame)
        if not is_readable:
            # The header is unreadable, so no source can be charged.
            self._refused(RejectReason(refusal), 1, n_bytes, frame)
            return False
        forbidden = self._refusal(token, run, source_id)
        if forbidden is not None:
            self._refused(forbidden, 1, n_bytes, frame)
            return self._may_be_late(now_ns)
        self._senders.permit(source_id, token)
        counters.sources.count(source_id, n_bytes, self._clock.true_ns)
        if size > self._max_mfp_bytes:
            self._refuse_damaged(now_ns, RejectReason.OVERSIZED, run, source_id, mep, frame)
            return True
        if refusal:
            reason = RejectReason(refusal) if has_right_crc(frame) else RejectReason.BAD_CRC
            self._refuse_damaged(now_ns, reason, run, source_id, mep, frame)
            return True
        builder = self._builder
        place = builder.place_for(now_ns, run, source_id, mep, size, first_event, n_events)
        if isinstance(place, Place):
            slot = self._buffers[place.slot]
            if copy_mfp(frame, slot, place.offset):
                if is_shared:
                    # The feeder may have changed the bytes between the check above and the copy.
                    refusal = refusal_of_placed(slot, place.offset, size, source_id, first_event, n_events)
                    if refusal:
                        self._refuse_damaged(now_ns, RejectReason(refusal), run, source_id, mep, frame)
                        return True
                if self._tap is not None and self._tap.has_recorder:
                    # A reader of the tap could send with the token.
                    head = (frame[:TOKEN_AT], bytes(HEADER_SIZE - TOKEN_AT))
                    self._tap.fragment_taken(b"".join((*head, slot[place.offset : place.offset + size])), run, mep)
                counters.sources.count_error_banks(source_id, slot[place.offset : place.offset + size])
                effects = builder.fragment_copied(now_ns, place)
                if effects:
                    self._carry_out(effects)
            else:
                self._refuse_damaged(now_ns, RejectReason.BAD_CRC, run, source_id, mep, frame)
        elif has_right_crc(frame):
            self._note_refused(place, source_id, mep, is_sound=True)
            self._log_refused(place, 1, n_bytes, frame)
            self._carry_out(builder.reject(now_ns, place, run, source_id, mep))
        else:
            self._refuse_damaged(now_ns, RejectReason.BAD_CRC, run, source_id, mep, frame)
        return True

    def _may_be_late(self, now_ns: int) -> bool:
        """Whether a frame without permission may have been sent with one that has ended since.

        A feeder learns from the next welcome that its token has ended, for example when the node has restarted. The
        time counts from the first such frame after each change of permissions.
        """
        senders = self._senders
        if (n_changes := senders.times_forgotten) != self._n_changes:
            self._n_changes, senders.late_until_ns = n_changes, now_ns + IN_FLIGHT_NS
        return now_ns < senders.late_until_ns

    def _refused(self, reason: RejectReason, n: int, size: int, head: Buffer) -> None:
        """Count refused frames. `size` is that of the first one in bytes, and `head` begins with its header."""
        self._counters.fragments_rejected[reason] += n
        self._log_refused(reason, n, size, head)

    def _log_refused(self, reason: RejectReason, n: int, size: int, head: Buffer) -> None:
        """Log the first of some refused frames now and then."""
        if (left_out := self._limit.due(reason, n)) is None:
            return
        try:
            header = decode_header(head, max_bytes=size, size=size)
        except FrameError as error:
            log.warning("frame_unreadable", reason=reason, text=str(error), left_out=left_out)
        else:
            log.warning(
                "fragment_rejected",
                reason=reason,
                run=header.run,
                source=header.source_id,
                mep=header.mep_id,
                left_out=left_out,
            )

    def _refuse_damaged(
        self, now_ns: int, reason: RejectReason, run: int, source: int, mep: int, frame: Buffer
    ) -> None:
        self._log_refused(reason, 1, len(frame), frame)
        of_copy = self._builder.refusal_of_copy(run, source, mep)
        if reason is RejectReason.BAD_CRC:
            self._note_refused(of_copy, source, mep, is_sound=False)
        resend = reason in _WORTH_SENDING_AGAIN and of_copy is None
        self._carry_out(self._builder.handle(now_ns, FrameDamaged(reason, source, mep, resend)))

    def _note_refused(self, reason: RejectReason | None, source: int, mep: int, *, is_sound: bool) -> None:
        """Have compiled code refuse further copies of a fragment that is in its MEP, or too late for it."""
        if reason is RejectReason.DUPLICATE or reason is RejectReason.LATE:
            meps = self._builder.pool.meps
            meps.note_refused(source, mep, is_late=reason is RejectReason.LATE, is_sound=is_sound)
