"""A node with a fault that an attack must find: python -m tests.attacks.planted_fault CONFIG.

It ends when a peer that has not said hello sends any other message. Otherwise it is the node with the fake engine.
"""

import asyncio
import os
import sys
from pathlib import Path
from unittest.mock import patch

from hltnode.daemon.readout.feeder_protocol import FeederProtocol
from hltnode.protocol.transport.refusals import MessageRefusal
from tests.daemon import node_process

EXIT_CODE = 70


def _refuse(_protocol: FeederProtocol, _identity: bytes, reason: MessageRefusal, _text: str) -> None:
    if reason is MessageRefusal.UNKNOWN_FEEDER:
        os._exit(EXIT_CODE)


if __name__ == "__main__":
    with patch.object(FeederProtocol, "_refuse", _refuse):
        sys.exit(asyncio.run(node_process.main(Path(sys.argv[1]))))
