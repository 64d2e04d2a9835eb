"""The rules, routes and intervals of deploy/prometheus with all durations divided by one number.

A node does not answer or start faster because the rules are scaled, so the durations of two alerts are divided less. A
busy machine without answers for the divided 1.5 s would else raise HltnodeNodeDown beside any other fault, and three
starts would not fit into the divided 45 s of HltnodeRestartLoop.
"""

import re

UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000}
_DURATION = r"(\d+)([smh])"
# A range, an offset, and the durations of rules, routes and Prometheus' own configuration.
_PLACES = (
    re.compile(rf"(\[){_DURATION}(\])"),
    re.compile(rf"(\boffset ){_DURATION}(\b)"),
    re.compile(
        rf"(?m)^(\s*(?:for|keep_firing_for|(?:group_wait|group_interval|repeat_interval)|evaluation_interval): )"
        rf"{_DURATION}(\b)"
    ),
)
_HORIZON = re.compile(r"(predict_linear\([^,]+, )(\d+)(\))")


SLOWER = {"HltnodeNodeDown": 20, "HltnodeRestartLoop": 4}
"""Alerts whose durations are divided by a number that is smaller by this factor, but at least 1."""
_RULE = re.compile(r"(?m)^(?= *- alert: )")
_ALERT = re.compile(r" *- alert: (\w+)\n")


def divisor_of(rule: str, divisor: int) -> int:
    """The divisor for the text of a rule, or for another text."""
    alert = _ALERT.match(rule)
    return divisor if alert is None else max(1, divisor // SLOWER.get(alert[1], 1))


def scaled(text: str, divisor: int) -> str:
    """The text with every duration of an expression or rule divided, in milliseconds; see SLOWER."""
    return "".join(_divided(part, divisor_of(part, divisor)) for part in _RULE.split(text))


def _divided(text: str, divisor: int) -> str:
    for place in _PLACES:
        text = place.sub(lambda m: f"{m[1]}{int(m[2]) * UNITS_MS[m[3]] // divisor}ms{m[4]}", text)
    return _HORIZON.sub(lambda m: f"{m[1]}{int(m[2]) // divisor}{m[3]}", text)


def seconds(duration: str) -> float:
    """Seconds of a duration in the notation of the rules."""
    return int(duration[:-1]) * UNITS_MS[duration[-1]] / 1000
