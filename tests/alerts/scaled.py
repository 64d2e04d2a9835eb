"""The rules, routes and intervals of deploy/prometheus with all durations divided by one number.

One duration stays: a node does not answer a scrape faster because the rules are scaled. A busy machine without answers
for the divided 1.5 s would raise HltnodeNodeDown beside any other fault.
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


NOT_DIVIDED = "HltnodeNodeDown"
"""The alert whose `for` stays as it is."""
_KEPT = re.compile(rf"(alert: {NOT_DIVIDED}\n(?:.*\n)*? *for: )(\w+)")


def scaled(text: str, divisor: int) -> str:
    """The text with the durations of expressions and rules divided, in milliseconds, but for `for` of NOT_DIVIDED."""
    kept = _KEPT.search(text)
    for place in _PLACES:
        text = place.sub(lambda m: f"{m[1]}{int(m[2]) * UNITS_MS[m[3]] // divisor}ms{m[4]}", text)
    text = _HORIZON.sub(lambda m: f"{m[1]}{int(m[2]) // divisor}{m[3]}", text)
    return text if kept is None else _KEPT.sub(lambda m: m[1] + kept[2], text)


def seconds(duration: str) -> float:
    """Seconds of a duration in the notation of the rules."""
    return int(duration[:-1]) * UNITS_MS[duration[-1]] / 1000
