"""Types of the extension module built from client/native.cpp."""

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.buffers import Buffer

def allocate_frames(size: int) -> NDArray[np.uint8]: ...

class FrameSender:
    def __init__(self, library: str) -> None: ...
    def send(self, socket: int, frames: list[Buffer]) -> int: ...
