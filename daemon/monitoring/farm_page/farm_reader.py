"""Reads the overviews of the nodes of a farm in threads, only while a browser shows the farm page.

A node that is slow, hangs or lies holds one of a few threads for a limited time. The event loop only copies results.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hltnode.daemon.common.bounded_get import NoAnswerError, bounded_get
from hltnode.daemon.monitoring.farm_page.overview import MAX_OVERVIEW_BYTES, Overview, read_overview

THREADS = 8
"""Most requests at a time."""
REQUEST_SECONDS = 2.0
# A request costs some 0.3 ms of the interpreter, so this is 1 % of it.
MAX_REQUESTS_PER_SECOND = 32
PERIOD_SECONDS = 2.0
# A page that is shown asks every 2 s, without its script every 5 s.
SHOWN_SECONDS = 12.0


@dataclass(frozen=True, slots=True)
class NodeView:
    """What is known of a node. Times are monotonic nanoseconds.

    error: reason of the last request without an answer; empty after an answer.
    since_ns: since when there is no answer; None while the node answers.
    """

    address: str
    overview: Overview | None = None
    answered_ns: int | None = None
    error: str = ""
    since_ns: int | None = None


def read_node(address: str) -> Overview:
    """The overview of the node at an address. Raises NoAnswerError."""
    url = f"{address.rstrip('/')}/overview"
    return read_overview(bounded_get(url, seconds=REQUEST_SECONDS, most_bytes=MAX_OVERVIEW_BYTES))


class FarmReader:
    """Asks each node every two seconds, larger farms less often.

    Args:
        addresses: HTTP addresses of the nodes.
        read: reads one node, or raises NoAnswerError.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        read: Callable[[str], Overview] = read_node,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._read = read
        self._clock_ns = clock_ns
        self.period_ns = int(max(PERIOD_SECONDS, len(addresses) / MAX_REQUESTS_PER_SECOND) * 1e9)
        self._views = {address: NodeView(address) for address in addresses}
        self._due_ns = dict.fromkeys(addresses, 0)
        """Start of the next request; those that are being asked are left out."""
        self._shown_until_ns = -1
        self._changed = threading.Condition()
        self._stopping = False
        self._threads: list[threading.Thread] = []

    @property
    def fresh_ns(self) -> int:
        """Age above which an answer says nothing about the present."""
        return 2 * self.period_ns + 2 * int(REQUEST_SECONDS * 1e9)

    def look(self) -> Sequence[NodeView]:
        """What is known of each node; the nodes are asked for a while after each call."""
        now_ns = self._clock_ns()
        with self._changed:
            if self._shown_until_ns < now_ns:
                # No browser was there for a while: the old answers say nothing.
                for address, view in self._views.items():
                    self._views[address] = replace(view, overview=None, error="", since_ns=now_ns)
            self._shown_until_ns = now_ns + int(SHOWN_SECONDS * 1e9)
            if not self._threads and not self._stopping:
                for number in range(min(THREADS, len(self._views))):
                    thread = threading.Thread(target=self._run, name=f"hltnode-farm-{number}", daemon=True)
                    self._threads.append(thread)
                    thread.start()
            self._changed.notify_all()
            return list(self._views.values())

    def stop(self) -> None:
        """Ask no more; does not wait for a request that hangs."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def _run(self) -> None:
        while (address := self._next()) is not None:
            start_ns = self._clock_ns()
            try:
                overview, error = self._read(address), ""
            except NoAnswerError as refused:
                overview, error = None, str(refused)
            with self._changed:
                view = self._views[address]
                if overview is not None:
                    view = NodeView(address, overview, self._clock_ns())
                else:
                    view = replace(view, error=error, since_ns=start_ns if view.since_ns is None else view.since_ns)
                self._views[address] = view
                self._due_ns[address] = start_ns + self.period_ns
                self._changed.notify()

    def _next(self) -> str | None:
        """Wait for the next node that is due, and take it; None: end."""
        with self._changed:
            while not self._stopping:
                now_ns = self._clock_ns()
                if self._shown_until_ns < now_ns or not self._due_ns:
                    self._changed.wait()
                    continue
                address = min(self._due_ns, key=self._due_ns.__getitem__)
                if (left_ns := self._due_ns[address] - now_ns) <= 0:
                    del self._due_ns[address]
                    return address
                self._changed.wait(left_ns * 1e-9)
        return None
