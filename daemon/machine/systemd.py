"""Status messages to systemd (sd_notify(3)); without effect if systemd did not start the process."""

import os
import socket
import time
from collections.abc import Mapping

# Time that a start asks for while it waits; it asks again every second.
EXTENSION_US = 30_000_000


class Notifier:
    """Datagrams to NOTIFY_SOCKET; failed attempts are counted in `failures` and never stop the node."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the NUL of Linux' abstract name space.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) if address else None
        if self._socket is not None:
            self._socket.setblocking(False)
        self.failures = 0
        mine = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        microseconds = environment.get("WATCHDOG_USEC", "") if mine else ""
        # Half of the limit, as systemd asks.
        self.watchdog_interval = int(microseconds) / 2e6 if microseconds.isdigit() and int(microseconds) else None
        """Seconds between two calls of `watchdog`; None if the systemd watchdog is off."""

    def ready(self, status: str) -> None:
        """Report the end of the start: sockets bound, back end warmed up."""
        self._send(f"READY=1\nSTATUS={status}")

    def status(self, text: str) -> None:
        """Set the line shown by `systemctl status`."""
        self._send(f"STATUS={text}")

    def start_lasts(self, status: str) -> None:
        """Report why the start lasts, and ask for more time: more than until the next call."""
        self._send(f"STATUS={status}\nEXTEND_TIMEOUT_USEC={EXTENSION_US}")

    def stopping(self, status: str) -> None:
        """Report that the stop started; draining may take until TimeoutStopSec."""
        self._send(f"STOPPING=1\nSTATUS={status}")

    def reloading(self) -> None:
        """Report a reload of the configuration; `ready` ends it."""
        # systemd needs the start time to distinguish this reload from an older one.
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def watchdog(self) -> None:
        """Feed the watchdog; called only after both the event loop and the pipeline thread made progress."""
        self._send("WATCHDOG=1")

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, message: str) -> None:
        if self._socket is None:
            return
        try:
            self._socket.sendto(message.encode(), self._address)
        except OSError:
            self.failures += 1
