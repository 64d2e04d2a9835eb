"""The names that a user probably meant, for messages about an unknown name."""

from collections.abc import Iterable

SIMILARITY = 0.6
"""Smallest ratio of difflib: `builder.feeder` and `builder.min_feeders` have 0.7."""
SIMILARITY_OF_SHORT_NAMES = 0.4
"""For names of a few characters, such as fields and cuts: `pt` and `ptt` have 0.8, `p` and `ptt` 0.5."""
_MOST_LISTED = 8


def near_names(typed: str, names: Iterable[str], n: int = 3, similarity: float = SIMILARITY) -> list[str]:
    """At most n of the names that resemble an unknown one, the nearest first."""
    # Local import: it costs 10 ms, and only mistakes need it.
    from difflib import get_close_matches

    return get_close_matches(typed, list(names), n=n, cutoff=similarity)


def did_you_mean(typed: str, names: Iterable[str]) -> str:
    """`; did you mean 'replay'?` for a name close to one of `names`; empty without one."""
    near = near_names(typed, names, n=2)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def expected_one_of(typed: str, names: Iterable[str]) -> str:
    """The names that are expected, after those that the user probably meant."""
    known = list(names)
    near = did_you_mean(typed, known)
    return f"{near or ';'} {'Expected' if near else 'expected'} one of {', '.join(known)}"


def nearest(typed: str, names: Iterable[str]) -> str:
    """The known names that resemble an unknown one, or the first names, as the end of a message."""
    known = list(names)
    if near := near_names(typed, known):
        return f"the nearest are {', '.join(near)}"
    more = ", ..." if len(known) > _MOST_LISTED else ""
    return f"there are {', '.join(known[:_MOST_LISTED])}{more}"
