"""Clients of a node: feeders, consumers of its decisions and kept events, and requesters.

These classes serve programs without an event loop; `hltnode.client.aio` serves asyncio. docs/reference/protocol.md
describes the messages, for clients in other languages.
"""

from hltnode.client.consumers import ReceivedEvent
from hltnode.client.feeder import FeederIdentity, FeederRefusedError
from hltnode.client.keys import ClientKeys, load_client_keys
from hltnode.client.mep import FeedMep
from hltnode.client.plain import DecisionSubscriber, EventReceiver, Feeder, Requester
from hltnode.client.requests import RequestRefusedError
from hltnode.client.shared_memory import SharedMemory, SharedMemoryError
from hltnode.client.sockets import FeederKeys
from hltnode.protocol.transport.decisions import MepDecision
from hltnode.protocol.transport.requests import Answer

__all__ = [
    "Answer",
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
    "RequestRefusedError",
    "Requester",
    "SharedMemory",
    "SharedMemoryError",
    "load_client_keys",
]
