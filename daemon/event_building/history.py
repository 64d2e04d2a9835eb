"""The last stimuli and effects of the event builder, kept so that a broken identity can be explained (no I/O)."""

from collections import deque
from collections.abc import Iterable

from hltnode.daemon.event_building.stimuli_and_effects import CloseMep, Effect, SealSlot, Stimulus

# Some hundred MEPs of a node where nothing goes wrong: such a MEP has one entry.
ENTRIES = 512
# A stimulus can name thousands of MEPs or sources; a line shows its beginning.
MAX_LINE = 400

Entry = int | tuple[int, Stimulus | None, tuple[object, ...]]
"""The id of a MEP that was completed, or (time in ns, stimulus, effects in short); the stimulus is None for a fragment.

No entry refers to a record of a MEP: hundreds of them kept alive cost the builder some percent of its speed.
"""


class History:
    """A bounded log; text is made of its entries only when it is asked for.

    A fragment that is only placed has no entry. One that completes a MEP has one, as have rejected fragments and all
    other stimuli but ticks without effect.
    """

    def __init__(self, entries: int = ENTRIES) -> None:
        self._entries: deque[Entry] = deque(maxlen=entries)
        self.mep_completed = self._entries.append
        """Note the id of a MEP; a bound method of the deque, because it is called for every MEP."""

    def note(self, now_ns: int, stimulus: Stimulus | None, effects: Iterable[Effect]) -> None:
        """Note a stimulus, None for a fragment, and its effects."""
        self._entries.append((now_ns, stimulus, tuple(map(_short, effects))))

    def lines(self) -> list[str]:
        """The entries as text, the oldest first; times are in ns of the builder's clock."""
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
