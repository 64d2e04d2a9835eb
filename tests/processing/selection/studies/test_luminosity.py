"""Luminosity from summaries of known truth: mu, its errors, background, bad events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.selection.studies.luminosity import (
    PLUME_CHANNELS,
    REVOLUTION_HZ,
    Calibration,
    LuminositySums,
    Method,
    run_results,
)
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.lumi_summary import CounterRange, LumiSchema
from hltnode.protocol.raw_data.odin import CrossingType, Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.protocol.raw_data.report_encoders import encode_lumi_summary

SCHEMA = LumiSchema.of(
    [
        *(CounterRange("BXType", 3), CounterRange("GEC", 1), CounterRange("N", 1023), CounterRange("PlumeRead", 1)),
        *(CounterRange("PlumeLumiOverthrLow", 15), CounterRange("PlumeLumiOverthrHigh", 15)),
    ]
)
BB, B1, B2, EE = (CrossingType.BEAM_BEAM, CrossingType.BEAM_1, CrossingType.BEAM_2, CrossingType.NO_BEAM)


def summed(
    crossing: NDArray[np.int64], n: NDArray[np.int64], masks: Mapping[str, NDArray[np.int64]] | None = None
) -> LuminositySums:
    """Sums of events with given crossing types and counts, without banks."""
    sums = LuminositySums(("N", PLUME_CHANNELS), lambda key: SCHEMA)
    values = {"BXType": crossing, "GEC": np.ones_like(n), "N": n, "PlumeRead": np.ones_like(n), **(masks or {})}
    words = np.zeros((len(n), SCHEMA.size // 4), np.uint32)
    for each in SCHEMA.counters[1:]:
        number = values.get(each.name, np.zeros_like(n)).astype(np.uint32)
        words[:, each.offset // 32] |= number << np.uint32(each.offset % 32)
    odin = {"run": np.full(len(n), 5), "time": np.arange(len(n), dtype=np.uint64) * np.uint64(1000), "bunch": crossing}
    sums._add_words(SCHEMA, words, {**odin, "crossing": crossing})
    return sums


def result(
    sums: LuminositySums, counter: str, method: Method, calibration: Calibration | None = None
) -> dict[str, Any]:
    (run,) = run_results(sums, (counter,), method, calibration or Calibration())
    (found,) = run["counters"]
    return dict(found)


MU, BACKGROUND = 1.3, {BB: 0.25, B1: 0.1, B2: 0.2, EE: 0.05}


def toy(rng: np.random.Generator, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Crossings of all types; both beams have the background of each, which contains that of empty crossings."""
    crossing = rng.choice([BB, B1, B2, EE], n, p=[0.55, 0.15, 0.15, 0.15])
    mean = np.vectorize(BACKGROUND.get)(crossing) + MU * (crossing == BB)
    return crossing, rng.poisson(mean)


@pytest.mark.parametrize("method", list(Method))
def test_mu_and_its_error_are_right_over_many_samples(method: Method) -> None:
    rng = np.random.default_rng(5)
    pulls = []
    for _ in range(80):
        found = result(summed(*toy(rng, 2000)), "N", method)["mu"]
        pulls.append((found["value"] - MU) / found["error"])
    assert abs(np.mean(pulls)) < 0.4
    assert np.std(pulls) == pytest.approx(1.0, abs=0.25)


def test_errors_of_channels_that_fire_together_are_right() -> None:
    rng = np.random.default_rng(6)
    pulls = []
    for _ in range(120):
        n = rng.poisson(2.0, 800)
        fired = rng.poisson(0.2 * n[:, None], (800, 8)) > 0
        masks = {
            "PlumeLumiOverthrLow": fired[:, :4] @ (1 << np.arange(4)),
            "PlumeLumiOverthrHigh": fired[:, 4:] @ (1 << np.arange(4)),
        }
        found = result(summed(np.full(800, int(BB)), n, masks), PLUME_CHANNELS, Method.LOG_ZERO)["mu"]
        pulls.append((found["value"] - 2.0 * -np.expm1(-0.2)) / found["error"])
    assert abs(np.mean(pulls)) < 0.35
    assert np.std(pulls) == pytest.approx(1.0, abs=0.2)


def test_background_of_missing_crossing_types_is_named_and_not_subtracted() -> None:
    rng = np.random.default_rng(7)
    crossing, n = toy(rng, 4000)
    every = result(summed(crossing, n), "N", Method.AVERAGE)
    parts = {name: part["value"] for name, part in every["by_crossing"].items()}
    assert every["mu"]["value"] == pytest.approx(
        parts["beam_beam"] - parts["beam_1"] - parts["beam_2"] + parts["no_beam"]
    )
    for kept, signs, note in (
        ([BB], (1, 0, 0, 0), "beam_1: no event"),
        ([BB, EE], (1, 0, 0, -1), "beam_2: no event"),
        ([BB, B1, EE], (1, -1, 0, 0), "beam_2: no event"),
    ):
        chosen = np.isin(crossing, kept)
        found = result(summed(crossing[chosen], n[chosen]), "N", Method.AVERAGE)
        assert found["mu"]["value"] == pytest.approx(np.dot(signs, list(parts.values())))
        assert note in found["notes"]
    none = result(summed(np.full(4, int(B1)), np.ones(4, np.int64)), "N", Method.AVERAGE)
    assert none["mu"] is None


def test_without_an_empty_event_mu_is_not_known() -> None:
    sums = summed(np.full(10, int(BB)), np.full(10, 3))
    found = result(sums, "N", Method.LOG_ZERO, Calibration(cross_sections={"N": 60.0}))
    assert (found["mu"], found["integrated_per_nb"]) == (None, None)
    assert "beam_beam: no empty event" in found["notes"]
    assert result(sums, "N", Method.AVERAGE)["mu"] == {"value": 3.0, "error": 0.0}


def test_luminosity_follows_from_mu_bunches_and_cross_section() -> None:
    sums = summed(np.full(1001, int(BB)), np.arange(1001) % 2)
    of = Calibration(cross_sections={"N": 60.0}, colliding_bunches=2000)
    found = result(sums, "N", Method.LOG_ZERO, of)
    mu = -np.log(501 / 1001)
    instantaneous = mu * 2000 * REVOLUTION_HZ / 60e-27
    assert found["instantaneous_per_cm2_s"]["value"] == pytest.approx(instantaneous)
    # 1001 events, 1 ms apart: 1 s; 1 nb is 1e-33 cm2.
    assert found["integrated_per_nb"]["value"] == pytest.approx(instantaneous * 1e-33)
    twice = Calibration(cross_sections={"N": 60.0}, colliding_bunches=2000, duration_s=2.0)
    assert result(sums, "N", Method.LOG_ZERO, twice)["integrated_per_nb"]["value"] == pytest.approx(
        2 * found["integrated_per_nb"]["value"]
    )
    error = np.sqrt((1 - 501 / 1001) / (501 / 1001) / 1001)
    assert found["mu"]["error"] == pytest.approx(error)
    for wrong in ({"cross_sections": {"N": 0.0}}, {"colliding_bunches": 0}, {"duration_s": float("nan")}):
        with pytest.raises(ValueError, match="expected"):
            Calibration(**wrong)


def event(n: int, *, run: int = 5, gec: int = 1, plume: int = 1, mask: int = 0, version: int = 7) -> list[RawBank]:
    numbers = {"BXType": 3, "GEC": gec, "N": n, "PlumeRead": plume}
    numbers |= {"PlumeLumiOverthrLow": mask, "PlumeLumiOverthrHigh": mask}
    odin = encode_odin(Odin(run=run, event_id=1, gps_time_us=10**15, bunch_id=7, crossing_type=3))
    return [odin._replace(version=version), encode_lumi_summary(numbers, SCHEMA)]


def added(events: Sequence[Sequence[RawBank]]) -> LuminositySums:
    sums = LuminositySums(("N", PLUME_CHANNELS), lambda key: SCHEMA if key == SCHEMA.key else None)
    for half in (events[:2], events[2:]):
        sums.add(EventTable.of_events([list(each) for each in half]))
    return sums


def test_events_are_read_by_run_and_bad_ones_are_counted() -> None:
    other = LumiSchema.of([CounterRange("X", 1)])
    odin, lumi = event(1)
    events = [
        *(event(0), event(2), event(4, run=6)),
        [lumi],
        [odin],
        [odin._replace(payload=odin.payload[:-4]), lumi],
        [odin, encode_lumi_summary({"X": 1}, other)],
        [odin, lumi._replace(payload=lumi.payload[:-4])],
        [odin, lumi._replace(version=1)],
        [lumi, odin],
    ]
    sums = added(events)
    assert (sums.events, sums.without_odin, sums.without_summary) == (10, 2, 2)
    assert dict(sums.unknown_schemas) == {other.key: 1, SCHEMA.key: 1}
    first, second = run_results(sums, ("N",), Method.AVERAGE, Calibration())
    assert (first["run"], first["events"], second["run"], second["events"]) == (5, 3, 6, 1)
    assert first["counters"][0]["mu"]["value"] == pytest.approx(1.0)
    assert (first["first_time_us"], first["colliding_bunches"]) == (10**15, 1)
    assert added([[], []]).runs == {}


def test_events_beyond_the_event_cut_are_not_empty_and_those_without_plume_do_not_count() -> None:
    events = [event(0), event(0, gec=0, mask=15), event(3, plume=0), event(3, mask=15)]
    sums = added(events)
    log_zero = result(sums, "N", Method.LOG_ZERO)
    assert log_zero["by_crossing"]["beam_beam"]["value"] == pytest.approx(-np.log(1 / 4))
    average = result(sums, "N", Method.AVERAGE)
    assert "beam_beam: 1 events with a largest number or without reconstruction" in average["notes"]
    plume = result(sums, PLUME_CHANNELS, Method.LOG_ZERO)
    assert plume["by_crossing"]["beam_beam"]["value"] == pytest.approx(-np.log(1 / 3))
    assert "beam_beam: 1 events without a valid bank of PLUME are left out" in plume["notes"]


def test_odin_of_version_6_is_read() -> None:
    payload = np.zeros(10, "<u4")
    payload[[0, 5, 6, 8]] = 9, 1, 17, 2 << 22 | 33
    odin = RawBank(BankType.ODIN, 6, 0, memoryview(payload.tobytes()))
    schema = LumiSchema.of([CounterRange("N", 1023)])
    sums = LuminositySums(("N",), lambda key: schema)
    sums.add(EventTable.of_events([[odin, encode_lumi_summary({"N": 1}, schema)]]))
    assert (dict(sums.runs[9].crossings), sums.runs[9].first_time_us) == ({2: 1}, (1 << 32) + 17)
