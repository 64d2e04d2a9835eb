"""The batches whose slices wait for the combiner, in the order in which they were computed (no I/O, no clock).

A batch leaves when the combiner has answered for all its slices and it was held for `hold_ns`, when its time is over,
or when its memory is needed. Batches leave in order, and requests to the output keep their places among them.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hltnode.daemon.common.vocabulary import HeldEnd

T = TypeVar("T")
W = TypeVar("W")
SliceId = tuple[int, int]
"""Run and slice."""


@dataclass(slots=True)
class Held(Generic[T, W]):
    """A held batch, or a request. Requests, and batches of no slice, have no `slices` and wait for those before.

    waiting: slices without windows. windows: of the others. sent_ns: time when its seeds were sent last.
    """

    item: T
    nbytes: int
    since_ns: int
    slices: tuple[SliceId, ...]
    waiting: set[SliceId]
    windows: dict[SliceId, W] = field(default_factory=dict)
    sent_ns: int = 0


@dataclass(frozen=True, slots=True)
class Leaving(Generic[T, W]):
    """A batch that leaves, with the windows of its slices as far as they are known; end: None without slices."""

    item: T
    nbytes: int
    windows: dict[SliceId, W]
    end: HeldEnd | None


class HeldSlices(Generic[T, W]):
    """The state machine of a node that waits for a combiner.

    Args:
        hold_ns: shortest time that a batch is held, so that an external window of the past can come.
        timeout_ns: time after which a batch leaves without its windows.
    """

    def __init__(self, hold_ns: int, timeout_ns: int) -> None:
        self._hold_ns = hold_ns
        self._timeout_ns = max(timeout_ns, hold_ns)
        self._held: deque[Held[T, W]] = deque()
        self._of_slice: dict[SliceId, Held[T, W]] = {}
        self.nbytes = 0
        self.n_slices = 0
        """Number of held slices, those with windows included."""

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Held[T, W]]:
        return iter(self._held)

    def put(self, now_ns: int, item: T, nbytes: int = 0, slices: Iterable[SliceId] = ()) -> Held[T, W]:
        """Hold a batch with these slices. A request has none."""
        of = tuple(slices)
        held = Held[T, W](item, nbytes, now_ns, of, set(of), sent_ns=now_ns)
        self._held.append(held)
        self._of_slice.update(dict.fromkeys(of, held))
        self.nbytes += nbytes
        self.n_slices += len(of)
        return held

    def waits(self, of: SliceId) -> bool:
        """Whether a slice is held and has no windows yet."""
        held = self._of_slice.get(of)
        return held is not None and of in held.waiting

    def answer(self, of: SliceId, windows: W, nbytes: int = 0) -> bool:
        """The windows of a slice, which take memory, too; False for one that does not wait."""
        held = self._of_slice.get(of)
        if held is None or of not in held.waiting:
            return False
        held.waiting.remove(of)
        held.windows[of] = windows
        held.nbytes += nbytes
        self.nbytes += nbytes
        return True

    def is_oldest(self, of: SliceId) -> bool:
        """Whether a slice is in the batch that leaves next."""
        return bool(self._held) and self._of_slice.get(of) is self._held[0]

    def unanswered(self, now_ns: int, after_ns: int) -> Iterator[Held[T, W]]:
        """The batches with slices that wait, whose seeds were sent (`sent_ns`) at least this time ago."""
        return (each for each in self._held if each.waiting and now_ns - each.sent_ns >= after_ns)

    def due(self, now_ns: int) -> list[Leaving[T, W]]:
        """The batches and requests that leave now."""
        found = []
        while self._held:
            head = self._held[0]
            age = now_ns - head.since_ns
            if not head.slices:
                found.append(self._leave(None))
            elif not head.waiting and age >= self._hold_ns:
                found.append(self._leave(HeldEnd.JOINED))
            elif age >= self._timeout_ns:
                found.append(self._leave(HeldEnd.TIMEOUT))
            else:
                break
        return found

    def evict(self) -> Leaving[T, W] | None:
        """The oldest entry leaves, because its memory is needed; None if nothing is held."""
        if not self._held:
            return None
        head = self._held[0]
        if not head.slices:
            return self._leave(None)
        return self._leave(HeldEnd.NO_ROOM if head.waiting else HeldEnd.JOINED)

    def abandon(self) -> list[T]:
        """Forget the batches with slices; returns the other items."""
        others = [each.item for each in self._held if not each.slices]
        self._held.clear()
        self._of_slice.clear()
        self.nbytes = self.n_slices = 0
        return others

    def next_ns(self) -> int | None:
        """Time at which `due` has something, if nothing else happens."""
        if not self._held:
            return None
        head = self._held[0]
        return head.since_ns + (self._timeout_ns if head.waiting else self._hold_ns)

    def oldest_ns(self, now_ns: int) -> int:
        """How long the oldest entry is held; 0 without one."""
        return now_ns - self._held[0].since_ns if self._held else 0

    def _leave(self, end: HeldEnd | None) -> Leaving[T, W]:
        head = self._held.popleft()
        for of in head.slices:
            if self._of_slice.get(of) is head:
                del self._of_slice[of]
        self.nbytes -= head.nbytes
        self.n_slices -= len(head.slices)
        return Leaving(head.item, head.nbytes, head.windows, end)
