"""Clients of a node: feeders, and consumers of its decisions and kept events.

These classes serve programs without an event loop; `hltnode.client.aio` serves asyncio. docs/reference/protocol.md
describes the messages, for clients in other languages.
"""

from hltnode.client.consumers import ReceivedEvent
from hltnode.client.feeder import FeederIdentity, FeederRefusedError
from hltnode.client.keys import ClientKeys, load_client_keys
from hltnode.client.mep import FeedMep
from hltnode.client.plain import DecisionSubscriber, EventReceiver, Feeder
from hltnode.client.shared_memory import SharedMemory, SharedMemoryError
from hltnode.client.sockets import FeederKeys
from hltnode.protocol.transport.decisions import MepDecision

__all__ = [
    "ClientKeys",
    "DecisionSubscriber",
    "EventReceiver",
    "FeedMep",
    "Feeder",
    "FeederIdentity",
    "FeederKeys",
    "FeederRefusedError",
    "MepDecision",
    "ReceivedEvent",
    "SharedMemory",
    "SharedMemoryError",
    "load_client_keys",
]
