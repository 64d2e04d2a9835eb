"""Single keys of a terminal, without Enter."""

import contextlib
import os
import select
import termios
import tty

_NAMES = {b"\x1b[A": "up", b"\x1b[B": "down", b"\x1bOA": "up", b"\x1bOB": "down"}
_READ_BYTES = 256


class Keyboard:
    """The keys of a terminal while the context is open; Ctrl-C still interrupts. Raises termios.error."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before = termios.tcgetattr(descriptor)

    def __enter__(self) -> "Keyboard":
        tty.setcbreak(self._descriptor)
        return self

    def __exit__(self, *_error: object) -> None:
        # A terminal that was closed has no mode.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)

    def keys(self, seconds: float | None, wake: int) -> list[str]:
        """The pressed keys, after at most `seconds`; earlier and empty if `wake` becomes readable.

        A terminal that was closed counts as "q".
        """
        ready, _, _ = select.select([self._descriptor, wake], [], [], seconds)
        if self._descriptor not in ready:
            return []
        try:
            return parsed_keys(os.read(self._descriptor, _READ_BYTES) or b"q")
        except OSError:
            return ["q"]


def parsed_keys(data: bytes) -> list[str]:
    """Characters and arrow keys in the bytes of a terminal; other bytes are left out."""
    found = []
    place = 0
    while place < len(data):
        if name := _NAMES.get(data[place : place + 3]):
            found.append(name)
            place += 3
            continue
        if 0x20 < data[place] < 0x7F:
            found.append(chr(data[place]))
        place += 1
    return found
