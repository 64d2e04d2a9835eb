"""Hints about unknown names."""

from hltnode.processing.framework.near_names import (
    SIMILARITY_OF_SHORT_NAMES,
    did_you_mean,
    expected_one_of,
    near_names,
    nearest,
)

COMMANDS = ("replay", "rates", "record", "serve")


def test_the_nearest_names_come_first_and_distant_ones_not_at_all() -> None:
    assert near_names("replays", COMMANDS) == ["replay"]
    assert near_names("recplay", COMMANDS, n=1) == ["replay"]
    assert near_names("xyz", COMMANDS) == []
    assert near_names("ptt", ("pt", "p", "z")) == ["pt"]
    assert near_names("ptt", ("pt", "p", "z"), similarity=SIMILARITY_OF_SHORT_NAMES) == ["pt", "p"]


def test_a_hint_names_at_most_two_and_is_empty_without_a_near_name() -> None:
    assert did_you_mean("replays", COMMANDS) == "; did you mean 'replay'?"
    assert did_you_mean("aab", ("aaa", "aac", "aad")).count(" or ") == 1
    assert did_you_mean("xyz", COMMANDS) == ""


def test_the_expected_names_follow_the_near_ones() -> None:
    assert expected_one_of("replays", iter(COMMANDS)) == (
        "; did you mean 'replay'? Expected one of replay, rates, record, serve"
    )
    assert expected_one_of("xyz", COMMANDS) == "; expected one of replay, rates, record, serve"


def test_without_a_near_name_the_first_eight_names_are_listed() -> None:
    assert nearest("replays", COMMANDS) == "the nearest are replay"
    assert nearest("xyz", map(str, range(8))) == "there are 0, 1, 2, 3, 4, 5, 6, 7"
    assert nearest("xyz", map(str, range(9))) == "there are 0, 1, 2, 3, 4, 5, 6, 7, ..."
