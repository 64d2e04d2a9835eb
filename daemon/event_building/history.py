"""The last stimuli and effects of the event builder, to explain a broken identity (no I/O)."""

from collections import deque
from collections.abc import Iterable

from hltnode.daemon.event_building.stimuli_and_effects import CloseMep, Effect, SealSlot, Stimulus

# About 500 MEPs of a node without errors: such a MEP has one entry.
ENTRIES = 512
# A stimulus can name thousands of MEPs or sources: a line shows only its first characters.
MAX_LINE = 400

Entry = int | tuple[int, Stimulus | None, tuple[object, ...]]
"""The id of a completed MEP, or (time in ns, stimulus, short forms of the effects). A fragment is noted as None.

No entry refers to a `MepRecord`: hundreds of records kept alive cost the builder some percent of its speed.
"""


class History:
    """A bounded log. Its entries become text only on request.

    Entries are made for fragments that complete a MEP, for rejected fragments, and for all other stimuli except ticks
    without effects. Other fragments have none.
    """

    def __init__(self, entries: int = ENTRIES) -> None:
        self._entries: deque[Entry] = deque(maxlen=entries)
        self.mep_completed = self._entries.append
        """Note the id of a completed MEP. It is a bound method of the deque, because each MEP calls it."""

    def note(self, now_ns: int, stimulus: Stimulus | None, effects: Iterable[Effect]) -> None:
        """Note a stimulus (None for a fragment) and its effects."""
        self._entries.append((now_ns, stimulus, tuple(map(_short, effects))))

    def lines(self) -> list[str]:
        """The entries as text, oldest first. Times are in ns of the builder's clock."""
        return [_line(entry)[:MAX_LINE] for entry in self._entries]


def _short(effect: Effect) -> object:
    if isinstance(effect, CloseMep):
        mep = effect.record
        return "CloseMep", mep.mep, str(mep.close_reason), f"{mep.n_fragments} fragments"
    if isinstance(effect, SealSlot):
        batch = effect.batch
        return "SealSlot", batch.slot, f"{len(batch.meps)} MEPs", batch.meps[0].mep if batch.meps else None
    return effect


def _line(entry: Entry) -> str:
    if isinstance(entry, int):
        return f"MEP {entry} is complete"
    now_ns, stimulus, effects = entry
    return f"{now_ns} {'fragment' if stimulus is None else repr(stimulus)} -> {list(effects)}"
