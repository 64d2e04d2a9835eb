"""The name that a user probably meant, for messages about an unknown name."""

from collections.abc import Iterable

_SIMILARITY = 0.6
"""Smallest ratio of difflib: `builder.feeder` and `builder.min_feeders` have 0.7."""


def did_you_mean(typed: str, names: Iterable[str]) -> str:
    """`; did you mean 'replay'?` for a name close to one of `names`; empty without one."""
    # Local import: it costs 10 ms, and only mistakes need it.
    from difflib import get_close_matches

    near = get_close_matches(typed, list(names), n=2, cutoff=_SIMILARITY)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def expected_one_of(typed: str, names: Iterable[str]) -> str:
    """The names that are expected, after those that the user probably meant."""
    known = list(names)
    near = did_you_mean(typed, known)
    return f"{near or ';'} {'Expected' if near else 'expected'} one of {', '.join(known)}"
