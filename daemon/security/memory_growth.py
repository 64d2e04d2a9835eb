"""Growth of the process by what peers send: when the largest unfinished message has to end, and what is given back."""

from collections.abc import Callable, Collection

from hltnode.daemon.machine.process_memory import give_back_free_memory
from hltnode.daemon.security.input_watch import InputWatch

# What the process may grow by through peers before the largest unfinished message has to end, and the time until it
# shows whether that was enough.
GROWTH = 256 << 20
GROWTH_PAUSE_NS = 500_000_000
# Below the first of these amounts of what peers have sent, the process is as large as it is without them; above the
# second it is measured whether it has grown.
CALM_BELOW = 8 << 20
MEASURED_ABOVE = 64 << 20
# Free memory is given back after connections have ended that held this much together: again and again for a while,
# because what they had queued is dropped by the event loop.
GIVE_BACK_BYTES = 8 << 20
GIVE_BACK_EVERY_NS = 3_000_000_000
GIVE_BACK_FOR_NS = 60_000_000_000


class MemoryGrowth:
    """The memory of the process, and what connections that have ended held of it. One thread; times in ns.

    Args:
        resident: bytes of the process; None if they cannot be read.
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
        """Connections have ended that held this number of bytes."""
        self._ended_bytes += nbytes

    def excess(self, now_ns: int, inputs: Collection[InputWatch]) -> tuple[InputWatch, int, int] | None:
        """The connection that has to end because the process has grown too much by what peers send.

        Returns its socket, its descriptor and the growth in bytes; None if there is none.
        """
        if now_ns < self._next_check_ns:
            return None
        self._next_check_ns = now_ns + GROWTH_PAUSE_NS // 5
        memory = sum(each.memory for each in inputs)
        if memory < CALM_BELOW:
            self._calm_bytes = self._resident()
            return None
        resident = self._resident() if memory > MEASURED_ABOVE else None
        if resident is None or self._calm_bytes is None or resident - self._calm_bytes < GROWTH:
            return None
        found = [(largest[1], largest[0], each) for each in inputs if (largest := each.largest()) is not None]
        if not found:
            return None
        _, descriptor, owner = max(found, key=lambda candidate: candidate[0])
        self._next_check_ns = now_ns + GROWTH_PAUSE_NS
        self._next_give_back_ns = now_ns + GROWTH_PAUSE_NS // 2
        return owner, descriptor, resident - self._calm_bytes

    def give_back(self, now_ns: int) -> bool:
        """Give free memory back to the system when it is time; True while that may be needed again."""
        if self._ended_bytes >= GIVE_BACK_BYTES:
            self._ended_bytes = 0
            self._give_back_until_ns = now_ns + GIVE_BACK_FOR_NS
        if self._next_give_back_ns <= now_ns < self._give_back_until_ns:
            self._next_give_back_ns = now_ns + GIVE_BACK_EVERY_NS
            self._give_back_memory()
        return now_ns < self._give_back_until_ns
