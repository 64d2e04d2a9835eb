"""Growth of the process by input of peers: when connections must end, and when free memory is returned."""

from collections.abc import Callable

from hltnode.daemon.machine.process_memory import give_back_free_memory

# The process may grow by this much by input of peers before the connections end that can explain it, and new ones are
# refused. The pause is the time until the effect of that shows.
GROWTH = 256 << 20
GROWTH_PAUSE_NS = 100_000_000
# With fewer undelivered bytes than the first number, the size of the process is the reference. With more than the
# second number, growth above the reference is checked.
CALM_BELOW = 8 << 20
MEASURED_ABOVE = 64 << 20
# Free memory is returned to the system after the end of connections that held this much in total. It is returned
# repeatedly for a while, because the event loop drops their queued messages only later.
GIVE_BACK_BYTES = 8 << 20
GIVE_BACK_EVERY_NS = 3_000_000_000
GIVE_BACK_FOR_NS = 60_000_000_000


class MemoryGrowth:
    """Watches the size of the process. All calls from one thread; times in ns.

    Args:
        resident: returns the resident bytes of the process; None if they cannot be read.
        give_back: returns free memory to the system.
    """

    def __init__(
        self, resident: Callable[[], int | None], give_back: Callable[[], None] = give_back_free_memory
    ) -> None:
        self._resident = resident
        self._give_back_memory = give_back
        self._calm_bytes = resident()
        self._next_check_ns = 0
        self._ended_bytes = 0
        self._next_give_back_ns = 0
        self._give_back_until_ns = 0

    def ended(self, nbytes: int) -> None:
        """Note the end of connections that held this number of bytes."""
        self._ended_bytes += nbytes

    def excess(self, now_ns: int, memory: int) -> int | None:
        """Bytes by which the process has grown, if these are too many; 0 if not; None if it was checked just now.

        Args:
            memory: most bytes of memory that input of peers may use now.
        """
        if now_ns < self._next_check_ns:
            return None
        if memory < CALM_BELOW:
            self._calm_bytes = self._calm_size(now_ns)
            return 0
        resident = self._resident() if memory > MEASURED_ABOVE else None
        if resident is None or self._calm_bytes is None or resident - self._calm_bytes < GROWTH:
            return 0
        self._next_check_ns = now_ns + GROWTH_PAUSE_NS
        self._next_give_back_ns = now_ns + GROWTH_PAUSE_NS // 2
        return resident - self._calm_bytes

    def _calm_size(self, now_ns: int) -> int | None:
        """The size to compare with. Until freed memory has been returned, the present size is too large for that."""
        resident = self._resident()
        if resident is None or self._calm_bytes is None or now_ns >= self._give_back_until_ns:
            return resident
        return min(self._calm_bytes, resident)

    def give_back(self, now_ns: int) -> bool:
        """Return free memory to the system if it is time; True while that may be necessary again."""
        if self._ended_bytes >= GIVE_BACK_BYTES:
            self._ended_bytes = 0
            self._give_back_until_ns = now_ns + GIVE_BACK_FOR_NS
        if self._next_give_back_ns <= now_ns < self._give_back_until_ns:
            self._next_give_back_ns = now_ns + GIVE_BACK_EVERY_NS
            self._give_back_memory()
        return now_ns < self._give_back_until_ns
