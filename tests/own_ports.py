"""Free ports, in place of the ports in the pages and files for newcomers."""

import re
import socket
from random import Random

DATA, CONTROL, DECISIONS, HTTP = 5555, 5556, 5557, 9105
"""The ports in docs/tutorial.md and examples/node.toml."""


class OwnPorts:
    """A free port for each of those; data and control have consecutive numbers, as `hltnode replay` expects."""

    def __init__(self) -> None:
        random = Random()
        while True:
            first = random.randrange(20_000, 32_000)
            free = range(first, first + 4)
            if all(map(_is_free, free)):
                break
        self._own = dict(zip((DATA, CONTROL, DECISIONS, HTTP), free, strict=True))

    def __getitem__(self, port: int) -> int:
        return self._own[port]

    def put_into(self, text: str) -> str:
        """The text with these ports."""
        return re.sub(r"\b(5555|5556|5557|9105)\b", lambda match: str(self._own[int(match[0])]), text)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
