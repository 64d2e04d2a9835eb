"""Programs of attacks: a model of what a peer may do at each port, and random programs of several peers.

The same seed gives the same program. A program is data: `hostile_peers` executes it, `shrinking` shortens it.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum, unique
from typing import Self


@unique
class Port(StrEnum):
    """The ports of a node."""

    DATA = "data"
    CONTROL = "control"
    DECISIONS = "decisions"
    EVENTS = "events"
    MONITOR = "monitor"
    TAP = "tap"
    HTTP = "http"
    MEMORY = "memory"
    REQUESTS = "requests"


@unique
class State(StrEnum):
    """State of a peer: no connection, a connection without a handshake, a complete handshake, or a broken stream."""

    AWAY = "away"
    CONNECTED = "connected"
    SPEAKING = "speaking"
    BROKEN = "broken"


@unique
class Keys(StrEnum):
    """The CURVE settings of the node."""

    NONE = "none"
    DATA_PLAIN = "data plain"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a peer; `number` seeds its random content."""

    verb: str
    what: str = ""
    number: int = 0

    def __str__(self) -> str:
        return f"{self.verb} {self.what}".strip()


@dataclass(frozen=True, slots=True)
class PeerProgram:
    """The steps of one peer at one port."""

    port: Port
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """Peers that act at the same time. `absence`: one honest feeder is killed meanwhile, and comes again."""

    seed: int
    keys: Keys
    absence: bool
    peers: tuple[PeerProgram, ...]

    @property
    def n_steps(self) -> int:
        """Number of steps of all peers."""
        return sum(len(peer.steps) for peer in self.peers)

    def as_json(self) -> str:
        """The program as JSON, for a file."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> Self:
        """The program in a JSON text of `as_json`."""
        fields = json.loads(text)
        peers = tuple(
            PeerProgram(Port(peer["port"]), tuple(Step(**step) for step in peer["steps"])) for peer in fields["peers"]
        )
        return cls(fields["seed"], Keys(fields["keys"]), fields["absence"], peers)

    def __str__(self) -> str:
        absence = ", an honest feeder is killed and comes again" if self.absence else ""
        lines = [f"seed {self.seed}, keys {self.keys}{absence}, {self.n_steps} steps"]
        lines += [f"  {peer.port}: {'; '.join(map(str, peer.steps))}" for peer in self.peers]
        return "\n".join(lines)


# A choice: weight, verb, variants, state afterwards.
_Choice = tuple[int, str, tuple[str, ...], State]

_LEAVE: tuple[_Choice, ...] = (
    (2, "close", ("",), State.AWAY),
    (3, "reset", ("",), State.AWAY),
    (3, "die", ("",), State.AWAY),
)
_RAW: tuple[_Choice, ...] = (
    (2, "oversized", ("frame", "endless"), State.BROKEN),
    (3, "unfinished", ("frame", "header"), State.BROKEN),
    (2, "parts", ("endless", "whole"), State.BROKEN),
    (1, "ping", ("",), State.SPEAKING),
    (1, "bytes", ("",), State.BROKEN),
)
_FRAGMENTS = ("again", "foreign run", "unknown source", "beyond credit", "damaged", "tiny", "wrong size", "of parts")
STRANGER_HELLOS = (
    "stranger", "name in use", "unknown sources", "many feeders", "far first MEP", "foreign run", "foreign chain",
    "foreign input", "supervisor", "impossible sizes",
)  # fmt: skip
_LIES = ("end of run", "revoked", "returned", "goodbye", "of a node", "garbage", "command")
_QUESTIONS = (
    "of one event", "of most events", "of too many events", "damaged", "not aligned", "of no time", "the same id",
    "cancelled", "without a MEP", "garbage",
)  # fmt: skip
_SUBSCRIPTIONS = ("all", "storm", "cancelled", "long topics")
_SPEAKING: Mapping[Port, tuple[_Choice, ...]] = {
    Port.DATA: ((8, "fragments", _FRAGMENTS, State.SPEAKING), *_RAW),
    Port.CONTROL: (
        (6, "hello", STRANGER_HELLOS, State.SPEAKING),
        (4, "lie", _LIES, State.SPEAKING),
        (2, "flood", ("hello", "empty"), State.SPEAKING),
        (1, "read", ("",), State.SPEAKING),
        *_RAW,
    ),
    **dict.fromkeys(
        (Port.DECISIONS, Port.MONITOR, Port.TAP),
        (
            (5, "subscribe", _SUBSCRIPTIONS, State.SPEAKING),
            (1, "read", ("",), State.SPEAKING),
            (1, "flood", ("empty",), State.SPEAKING),
            *_RAW,
        ),
    ),
    Port.EVENTS: ((2, "read", ("",), State.SPEAKING), (2, "flood", ("empty",), State.SPEAKING), *_RAW),
    Port.HTTP: (
        (5, "request", ("unfinished", "unread", "no token", "foreign host", "not HTTP", "long"), State.SPEAKING),
        (1, "read", ("",), State.SPEAKING),
    ),
    Port.REQUESTS: (
        (8, "ask", _QUESTIONS, State.SPEAKING),
        (2, "flood", ("empty",), State.SPEAKING),
        (1, "read", ("",), State.SPEAKING),
        *_RAW,
    ),
    Port.MEMORY: (
        (4, "attach", ("stranger", "no memory", "no descriptor", "name in use"), State.SPEAKING),
        (2, "ranges", ("outside", "garbage"), State.SPEAKING),
        (1, "read", ("",), State.SPEAKING),
    ),
}
_SPEAK_AT_ONCE = (Port.HTTP, Port.MEMORY)
# The busiest ports have more peers than the others.
_WEIGHTS: Mapping[Port, int] = {
    Port.DATA: 4, Port.CONTROL: 5, Port.DECISIONS: 3, Port.EVENTS: 2, Port.MONITOR: 2, Port.TAP: 2, Port.HTTP: 3,
    Port.MEMORY: 2, Port.REQUESTS: 3,
}  # fmt: skip
_HANDSHAKES = ("half", "wrong", "other socket", "routing id")


def choices(port: Port, state: State, keys: Keys, *, absence: bool) -> tuple[_Choice, ...]:
    """What a peer in this state may do, each with its weight.

    Without keys on control a stranger may take the place of an absent feeder (SECURITY.md), so a program with an
    absence has no hellos then.
    """
    match state:
        case State.AWAY:
            return (
                (6, "connect", ("",), State.SPEAKING if port in _SPEAK_AT_ONCE else State.CONNECTED),
                (3, "move", ("",), State.AWAY),
                (2, "wait", ("short", "long"), State.AWAY),
            )
        case State.CONNECTED:
            curve: tuple[_Choice, ...] = ()
            if keys is not Keys.NONE:
                curve = ((6, "curve", ("unknown key", "wrong server"), State.BROKEN),)
            return (
                (9, "handshake", ("right",), State.SPEAKING),
                (3, "handshake", _HANDSHAKES, State.BROKEN),
                (1, "bytes", ("",), State.BROKEN),
                *curve,
                *_LEAVE,
            )
        case State.SPEAKING:
            speaking = _SPEAKING[port]
            if absence and keys is Keys.NONE:
                speaking = tuple(each for each in speaking if each[1] != "hello" and "hello" not in each[2])
            return (*speaking, (2, "wait", ("short", "long"), State.SPEAKING), *_LEAVE)
        case State.BROKEN:
            return ((1, "bytes", ("",), State.BROKEN), (2, "wait", ("short", "long"), State.BROKEN), *_LEAVE)


def make_program(
    seed: int,
    *,
    peers: int = 8,
    steps: int = 30,
    keys: Keys | None = None,
    absence: bool | None = None,
    ports: Sequence[Port] = tuple(Port),
) -> Program:
    """The program of a seed. `keys` and `absence` are random unless given; `ports` are those of the node."""
    rng = random.Random(f"{seed}/program")
    drawn_keys, drawn_absence = rng.choice(list(Keys)), rng.random() < 0.3
    keys = drawn_keys if keys is None else keys
    absence = drawn_absence if absence is None else absence
    others = rng.choices(ports, [_WEIGHTS[port] for port in ports], k=max(0, peers - 2))
    at = [Port.DATA, Port.CONTROL, *others][:peers]
    programs = tuple(PeerProgram(port, tuple(_walk(rng, port, steps, keys, absence=absence))) for port in at)
    return Program(seed, keys, absence, programs)


def _walk(rng: random.Random, port: Port, steps: int, keys: Keys, *, absence: bool) -> Iterator[Step]:
    state = State.AWAY
    for _ in range(steps):
        possible = choices(port, state, keys, absence=absence)
        _, verb, variants, state = rng.choices(possible, [each[0] for each in possible])[0]
        yield Step(verb, rng.choice(variants), rng.getrandbits(31))
