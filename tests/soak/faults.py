"""The kinds of fault, and their order, targets and durations: the same for the same seed."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique


@unique
class Kind(StrEnum):
    """The rows of the matrix. A kind with "at the end" strikes during the last MEPs of a run."""

    KILL_NODE = "node killed"
    LOSE_NODE = "node killed, MEPs reassigned"
    STOP_NODE = "node stopped"
    STOP_NODE_LONG = "node stopped, long"
    CUT_POWER = "power cut"
    KILL_FEEDER = "feeder killed"
    KILL_SUPERVISOR = "supervisor killed"
    STOP_FEEDER = "feeder stopped"
    STOP_FEEDER_LONG = "feeder stopped, long"
    NO_DESCRIPTORS = "descriptors exhausted"
    DIRECTORY_AWAY = "directory moved away"
    DISK_FULL = "disk full"
    FORGE = "forged messages"
    HOSTILE_PEERS = "hostile peers"
    END_KILL_FEEDER = "feeder killed at the end"
    END_STOP_FEEDER = "feeder stopped at the end"
    END_KILL_NODE = "node killed at the end"
    END_STOP_NODE = "node stopped at the end"


@unique
class Standing(StrEnum):
    """Rows of events without duration."""

    WIRE = "fragments damaged"
    COLLECT = "files collected"
    CHANGE_RUN = "run changed"
    SLOW_CONSUMER = "consumer slow"
    NONE = "no fault near"


NODE_KINDS = frozenset(
    {
        Kind.KILL_NODE, Kind.LOSE_NODE, Kind.STOP_NODE, Kind.STOP_NODE_LONG, Kind.CUT_POWER, Kind.NO_DESCRIPTORS,
        Kind.DIRECTORY_AWAY, Kind.DISK_FULL, Kind.FORGE, Kind.HOSTILE_PEERS, Kind.END_KILL_NODE,
        Kind.END_STOP_NODE,
    }
)  # fmt: skip
FEEDER_KINDS = frozenset(Kind) - NODE_KINDS
# Peers other than the feeders reach the ports of a node.
STRANGERS = frozenset({Kind.FORGE, Kind.HOSTILE_PEERS})
END_KINDS = (Kind.END_KILL_FEEDER, Kind.END_STOP_FEEDER, Kind.END_KILL_NODE, Kind.END_STOP_NODE)
RUN_KINDS = tuple(kind for kind in Kind if kind not in END_KINDS)
# During these a feeder sends nothing, so MEPs may lack its fragments.
ABSENCES = FEEDER_KINDS
# After these the feeder is another process.
RESTARTS = frozenset({Kind.KILL_FEEDER, Kind.KILL_SUPERVISOR, Kind.END_KILL_FEEDER})
# During these a node neither receives nor decides, so the time for its MEPs does not advance.
STANDSTILLS = NODE_KINDS - STRANGERS

# Seconds for which a process is stopped or absent, and the weight of a kind after each kind has struck once.
_SECONDS: dict[Kind, tuple[float, float]] = {
    Kind.KILL_NODE: (0.0, 1.0),
    # The supervisor reassigns after 3 s.
    Kind.LOSE_NODE: (4.0, 7.0),
    Kind.STOP_NODE: (0.1, 2.5),
    Kind.STOP_NODE_LONG: (8.0, 10.0),
    Kind.CUT_POWER: (0.5, 2.0),
    Kind.KILL_FEEDER: (0.0, 1.0),
    Kind.KILL_SUPERVISOR: (0.0, 1.0),
    Kind.STOP_FEEDER: (0.1, 2.5),
    Kind.STOP_FEEDER_LONG: (8.0, 10.0),
    Kind.NO_DESCRIPTORS: (2.0, 4.0),
    Kind.DIRECTORY_AWAY: (2.0, 4.0),
    Kind.DISK_FULL: (2.0, 4.0),
    Kind.FORGE: (4.0, 6.0),
    Kind.HOSTILE_PEERS: (6.0, 10.0),
    Kind.END_KILL_FEEDER: (0.0, 9.0),
    Kind.END_STOP_FEEDER: (1.0, 10.0),
    Kind.END_KILL_NODE: (0.0, 2.0),
    Kind.END_STOP_NODE: (1.0, 8.0),
}
_WEIGHTS: dict[Kind, int] = {
    Kind.KILL_NODE: 3, Kind.STOP_NODE: 3, Kind.KILL_FEEDER: 3, Kind.KILL_SUPERVISOR: 2,
    Kind.STOP_FEEDER: 4, Kind.CUT_POWER: 2,
}  # fmt: skip
# The longest stop, once in a soak that is long enough.
LONGEST_SECONDS = 30.0
LONG_SOAK_SECONDS = 300.0
_PAUSE_SECONDS = (0.3, 3.0)


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A planned fault: after `pause` seconds, for `seconds`; `target` is the name of a node or feeder."""

    kind: Kind
    target: str
    seconds: float
    pause: float


def plan(
    seed: int, kinds: Sequence[Kind], targets: Mapping[Kind, Sequence[str]], soak_seconds: float
) -> Iterator[PlannedFault]:
    """Each kind once in random order, then an infinite sequence by weight."""
    rng = random.Random(f"{seed}/{'/'.join(kinds)}")
    if not kinds:
        return
    long_stops = [kind for kind in (Kind.STOP_NODE_LONG, Kind.STOP_FEEDER_LONG) if kind in kinds]
    longest = {rng.choice(long_stops)} if long_stops and soak_seconds >= LONG_SOAK_SECONDS else set()
    first = rng.sample(kinds, len(kinds))
    weights = [_WEIGHTS.get(kind, 1) for kind in kinds]
    while True:
        kind = first.pop() if first else rng.choices(kinds, weights)[0]
        low, high = _SECONDS[kind]
        # Short ones are more frequent.
        seconds = LONGEST_SECONDS if kind in longest else low + (high - low) * rng.random() ** 2
        longest.discard(kind)
        yield PlannedFault(kind, rng.choice(targets[kind]), seconds, rng.uniform(*_PAUSE_SECONDS))
