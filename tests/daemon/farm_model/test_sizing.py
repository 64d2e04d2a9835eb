"""The size of a farm for a site: its files can be used, and its farm carries the rate."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.daemon.configuration.loading import load_config
from hltnode.daemon.farm_model.description import FarmError, load_description, parse_description
from hltnode.daemon.farm_model.feasibility import nodes_at_least, require_possible
from hltnode.daemon.farm_model.results import run_farm
from hltnode.daemon.farm_model.sizing import Site, parse_quantity, sized
from tests.daemon.farm_model.test_measurement import write


def site(rate: float = 1e6, event_bytes: float = 60e3, sources: int = 36, node_rate: float = 50e3) -> Site:
    return Site(
        events_per_second=rate,
        event_bytes=event_bytes,
        sources=sources,
        chain="lhcb",
        node_events_per_second=node_rate,
        accepted=0.05,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1MHz", 1e6), ("250kHz", 250e3), ("60k", 60e3), ("1.5 GB", 1.5e9), ("7", 7.0), (" 2THz ", 2e12)],
)
def test_quantities_have_units(text: str, expected: float) -> None:
    assert parse_quantity(text, "--rate") == expected


@given(st.text(max_size=20))
def test_any_quantity_is_a_number_above_0_or_refused(text: str) -> None:
    try:
        assert parse_quantity(text, "--rate") > 0.0
    except FarmError as error:
        assert "--rate" in str(error)  # noqa: PT017


def test_a_site_has_nodes_with_a_reserve_and_numbers_for_a_node_away() -> None:
    result, _ = sized(site())
    assert (result["nodes"], result["nodes_at_least"]) == (24, 20)
    assert result["node_gbps"] == pytest.approx(1e6 * 60e3 * 8e-9 / 23)
    assert result["source_gbps"] == pytest.approx(1e6 * 60e3 * 8e-9 / 36)
    assert result["bytes_per_day"] == pytest.approx(1e6 * 60e3 * 0.05 * 86_400)
    assert result["buffer_bytes"] == pytest.approx(1e6 * 60e3 * 10)


def test_the_files_are_a_farm_that_loses_nothing_and_a_node_of_it(tmp_path: Path) -> None:
    _, texts = sized(site(rate=20e3, node_rate=9e3))
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    config = load_config(tmp_path / "node.toml")
    farm = load_description(tmp_path / "farm.toml")
    assert farm.node_config().pipeline == config.pipeline
    assert farm.node_config().builder == config.builder
    result = run_farm(farm.with_value("seconds", 1.0))
    assert result["meps"]["lost"] == result["meps"]["left"] == 0
    assert not result["grows"]
    assert result["broken_identities"] == []


def test_nodes_tell_ids_apart_for_the_loss_of_a_node_and_take_frames_of_few_sources() -> None:
    """A lost node holds the ids for at most 9 s: four hellos, three seconds until its MEPs move, two hellos."""
    few, _ = sized(site())
    assert few["closed_ring"] == 65_536 > few["meps_per_second"] * 9
    many, texts = sized(site(rate=20e6, event_bytes=1e3))
    ring = tomllib.loads(texts["node.toml"])["builder"]["closed_ring"]
    assert many["closed_ring"] == ring > many["meps_per_second"] * 9 >= ring / 2
    assert sized(site(rate=1e8, event_bytes=4e6, node_rate=1e6))[0]["closed_ring"] == 1 << 24
    _, texts = sized(site(sources=1))
    assert tomllib.loads(texts["node.toml"])["network"]["max_frame_bytes"] > 16 << 20
    assert "network" not in tomllib.loads(sized(site())[1]["node.toml"])


@settings(max_examples=40)
@given(
    rate=st.floats(1.0, 1e8),
    event_bytes=st.floats(1.0, 4e6),
    sources=st.integers(1, 10_000),
    node_rate=st.floats(1e4, 1e6),
)
def test_any_site_gets_a_farm_that_can_work_or_a_reason(
    rate: float, event_bytes: float, sources: int, node_rate: float
) -> None:
    try:
        result, texts = sized(site(rate, event_bytes, sources, node_rate))
    except FarmError as error:
        assert "nodes.count" in str(error) or "max_mep_bytes" in str(error)  # noqa: PT017
        return
    farm = parse_description(tomllib.loads(texts["farm.toml"]), "farm")
    require_possible(farm)
    assert farm.nodes.count == result["nodes"] >= nodes_at_least(farm)


def test_a_measurement_gives_the_rate_and_the_part_that_is_accepted(tmp_path: Path) -> None:
    path = write(tmp_path / "m.json")
    measured = Site(events_per_second=1e5, event_bytes=1e4, sources=3, chain="lhcb", measurement=path)
    result, texts = sized(measured)
    assert result["accepted"] == 0.05
    assert str(path) in texts["farm.toml"]
    with pytest.raises(FarmError, match="expected mu3e"):
        sized(Site(events_per_second=1e5, event_bytes=1e4, sources=3, chain="mu3e", measurement=path))
    with pytest.raises(FarmError, match="--accepted"):
        sized(Site(events_per_second=1e5, event_bytes=1e4, sources=3, chain="lhcb", node_events_per_second=1e3))
