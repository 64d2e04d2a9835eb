"""How often the input of a chain has events, and what one event is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EventRate:
    """Rate of the events of a chain's input, for rates of lines.

    hz: events per second, above 0. event: what one event is, in the singular: "bunch crossing". It is a fixed period of
    time, or a collision, or a trigger of the hardware.
    """

    hz: float = 1e3
    event: str = "event"

    def __post_init__(self) -> None:
        assert self.hz > 0

    def __str__(self) -> str:
        return frequency(self.hz)


def frequency(hz: float) -> str:
    """A frequency with a unit, to six digits: "30 MHz", "166.667 kHz", "5 Hz"."""
    for size, unit in ((1e6, "MHz"), (1e3, "kHz")):
        if hz >= size:
            return f"{hz / size:g} {unit}"
    return f"{hz:g} Hz"
