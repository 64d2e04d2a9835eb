"""hltnode tune."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hltnode.daemon.cli import app
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.protocol.lhcb.bank_types import TRUTH_TYPES
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from tests.processing.lhcb.full_events import full_events

pytest.importorskip("scipy", "1.15")

TRIGGER = """
[sequence]
name = "velo"
[[lines]]
type = "NDisplacedVeloTracks"
name = "Hlt1Displaced"
[[lines]]
type = "VeloMicroBias"
name = "Hlt1MicroBias"
min_tracks = 40
postscale = 0.5
[[lines]]
type = "VeloMicroBias"
name = "Hlt1Rare"
postscale = 0.1
"""


def recorded(events: Iterable[Sequence[RawBank]]) -> list[list[RawBank]]:
    """Events without truth, whose kind is not known."""
    return [[bank for bank in banks if bank.type not in TRUTH_TYPES] for banks in events]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Crossings with few and with many collisions, which stand for minimum bias and a signal; and a configuration."""
    found = tmp_path_factory.mktemp("tune")
    for name, n, nu in (("few", 60, 2.0), ("many", 30, 6.0)):
        events = recorded(simulate_events(n, 2, geometry=VeloGeometry.builtin(), nu=nu))
        (found / f"{name}.mdf").write_bytes(b"".join(encode_record(encode_banks(banks), run=1) for banks in events))
    for name in ("minbias", "z", "bsphiphi"):
        events_of = full_events(3, 3, sample=name, nu=1.0)
        (found / f"{name}3.mdf").write_bytes(b"".join(encode_record(encode_banks(banks), run=1) for banks in events_of))
    mixed = (found / "z3.mdf").read_bytes() + (found / "bsphiphi3.mdf").read_bytes()
    (found / "mixed.mdf").write_bytes(mixed)
    (found / "menu.toml").write_text(TRIGGER)
    return found


def run(command: str, *arguments: object) -> Result:
    return CliRunner().invoke(app, [command, *(str(argument) for argument in arguments)])


def tune(folder: Path, *arguments: object, signals: tuple[str, ...] = ("many",), minbias: str = "few") -> Result:
    files = [part for name in signals for part in ("--signal", folder / f"{name}.mdf")]
    given = (folder / "menu.toml", "--minbias", folder / f"{minbias}.mdf", *files, "--threads", 1)
    return run("tune", *given, "--evaluations", 200, *arguments)


def error_of(result: Result) -> str:
    assert result.exit_code == 2, result.output
    return " ".join(result.output.split())


def test_the_tuned_file_gives_a_node_exactly_the_decisions_that_the_search_computed(
    folder: Path, tmp_path: Path
) -> None:
    tuned, out, of_node = tmp_path / "tuned.toml", tmp_path / "out.json", tmp_path / "rates.json"
    few_searches = ("--max-loss", 0.5, "--no-cross-validation")
    found = tune(folder, "--rate", "9MHz", "--output", tuned, "--json", out, *few_searches)
    assert found.exit_code == 0, found.output
    result = json.loads(out.read_text())
    assert [of for of in result["cuts"] if of["before"] != of["after"]]
    assert result["tuned"]["searched"]["rate_hz"] <= 9e6
    assert run("rates", folder / "few.mdf", "--trigger", tuned, "--json", of_node, "--threads", 1).exit_code == 0
    rates = json.loads(of_node.read_text())
    assert {line: of["rate_hz"] for line, of in rates["lines"].items()} == pytest.approx(
        {line: of["rate_hz"] for line, of in result["lines"].items()}
    )
    assert rates["total"]["rate_hz"] == pytest.approx(result["tuned"]["all"]["rate_hz"])
    assert rates["overlap"] == result["overlap"]
    assert rates["tck"] == result["tuned_tck"] != result["tck"]


def test_signals_may_follow_each_other_and_have_weights_and_names_of_their_files(folder: Path, tmp_path: Path) -> None:
    out, page, other = tmp_path / "out.json", tmp_path / "page.html", tmp_path / "other.mdf"
    menu, few, many = folder / "menu.toml", folder / "few.mdf", folder / "many.mdf"
    other.write_bytes(many.read_bytes())
    few_cuts = ("--tune", "Hlt1MicroBias.min_tracks=20:80")
    options = ("--weight", "other=3", "--evaluations", 100, "--threads", 1, "--json", out, "--report", page, *few_cuts)
    found = run("tune", menu, "--minbias", few, "--signal", many, other, *options)
    assert found.exit_code == 0, found.output
    result = json.loads(out.read_text())
    assert {name: of.get("weight") for name, of in result["samples"].items()} == {
        "minbias": None,
        "many": 1,
        "other": 3,
    }
    values = {name: of["value"] for name, of in result["tuned"]["all"]["efficiencies"].items()}
    assert values["many"] == values["other"]
    assert result["cap_hz"] == pytest.approx(result["shipped"]["searched"]["rate_hz"])
    changed = [f"{of['line']}.{of['cut']}" for of in result["cuts"] if of["before"] != of["after"]]
    assert all(name in found.output for name in changed)
    text = page.read_text()
    assert text.count("<figure>") == 2
    assert "What each line costs and brings" in text
    check_cross_validation(result, found.output, text)


def check_cross_validation(result: dict[str, Any], tables: str, page: str) -> None:
    """The estimate for unseen events is complete and consistent, and stands in the tables and on the page."""
    of = result["cross_validation"]
    assert set(of) == {
        "folds",
        "rounds",
        "search_cap_hz",
        "optimism",
        "unseen",
        "relative_error",
        "wanted_error",
        "events",
        "events_needed",
    }
    assert of["optimism"]["value"] >= 1
    assert of["search_cap_hz"] <= result["cap_hz"]
    assert result["tuned"]["searched"]["rate_hz"] <= of["search_cap_hz"] * (1 + 1e-9)
    unseen = of["unseen"]
    assert unseen["rate_hz"] == pytest.approx(result["tuned"]["searched"]["rate_hz"] * of["optimism"]["value"])
    assert 0 <= unseen["low_hz"] < unseen["rate_hz"] < unseen["high_hz"]
    assert set(unseen["efficiencies"]) == {"many", "other"}
    assert of["events"] == result["samples"]["minbias"]["events"] == 60
    assert of["relative_error"] > of["wanted_error"] == 0.02
    assert of["events_needed"] == np.ceil(60 * (of["relative_error"] / 0.02) ** 2)
    expected = f"{unseen['rate_hz'] / 1e3:.1f} kHz"
    assert "expected on unseen events: " + expected.split()[0] in tables
    assert expected in page
    rounded = float(f"{of['events_needed']:.3g}")
    needed = f"2 % needs about {rounded:,.0f}"
    for text in (tables, page):
        assert "60 events of minimum bias give the rate relative to the cap to" in text
        assert needed in text


def test_the_same_seed_gives_the_same_result_with_cross_validation(folder: Path, tmp_path: Path) -> None:
    results = []
    for number in range(2):
        out = tmp_path / f"{number}.json"
        options = ("--tune", "Hlt1MicroBias.min_tracks=20:80", "--seed", 3, "--evaluations", 100, "--json", out)
        found = tune(folder, *options)
        assert found.exit_code == 0, found.output
        results.append(out.read_text())
    assert results[0] == results[1]
    result = json.loads(results[0])
    assert result["cross_validation"]["search_cap_hz"] <= result["cap_hz"]


def test_without_cross_validation_one_search_keeps_the_cap_and_the_report_says_so(folder: Path, tmp_path: Path) -> None:
    results = []
    for option in ("--cross-validation", "--no-cross-validation"):
        out, page = tmp_path / f"{option}.json", tmp_path / f"{option}.html"
        options = ("--tune", "Hlt1MicroBias.min_tracks=20:80", "--evaluations", 100, "--json", out, "--report", page)
        found = tune(folder, *options, option)
        assert found.exit_code == 0, found.output
        results.append(json.loads(out.read_text()))
        for text in (found.output, page.read_text()):
            assert ("he cap is not corrected" in text) == (option == "--no-cross-validation")
            assert ("xpected on unseen events" in text) == (option == "--cross-validation")
    corrected, plain = results
    assert plain["cross_validation"] is None
    assert plain["cap_hz"] == corrected["cap_hz"] > 0
    assert corrected["evaluations"] > 5 * plain["evaluations"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rate", "fast"), "--rate fast: a rate above 0 such as 1.2MHz"),
        (("--rate", "0kHz"), "--rate 0kHz: a rate above 0"),
        (("--rate", "1Hz"), "--rate 1 Hz: the tightest cuts still accept"),
        (("--rate", "29.9MHz"), "--rate 29.9 MHz: the loosest cuts accept"),
        (("--weight", "many=0"), "--weight many=0: a finite weight above 0"),
        (("--weight", "many=-1"), "--weight many=-1: a finite weight above 0"),
        (("--weight", "many=x"), "--weight many=x: a number is expected"),
        (("--weight", "more=1"), "--weight more=1: SIGNAL=NUMBER is expected; the signals are many"),
        (("--tune", "Hlt1Nothing"), "--tune Hlt1Nothing: no line matches"),
        (("--keep", "Hlt1Nothing"), "--keep Hlt1Nothing: no line matches"),
        (("--keep", "*"), "no line has a cut that can be tuned"),
        (("--tune", "Hlt1Displaced.min_ip=0.1:1"), "Hlt1Displaced.min_ip: it is a condition on other candidates"),
        (("--tune", "*.min_ip"), "none of the chosen cuts can be tuned: Hlt1Displaced.min_ip: it is a condition"),
        (("--crossing-rate", "0"), "--crossing-rate 0"),
        (("--crossing-rate", "inf"), "--crossing-rate inf: a finite rate above 0 is expected"),
    ],
)
def test_wrong_options_are_one_line_with_exit_code_2(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in error_of(tune(folder, *arguments))


def test_samples_of_the_wrong_kind_are_refused_with_the_name_of_their_file(folder: Path, tmp_path: Path) -> None:
    assert "minbias3.mdf: 3 of its events are minimum bias, without a signal" in error_of(
        tune(folder, signals=("minbias3",))
    )
    assert "z3.mdf: its events are z, not minimum bias" in error_of(tune(folder, minbias="z3"))
    assert "mixed.mdf: it holds several signals: z, bsphiphi" in error_of(tune(folder, signals=("mixed",)))
    assert "at least one --signal" in error_of(run("tune", folder / "menu.toml", "--minbias", folder / "few.mdf"))
    assert "given twice" in error_of(tune(folder, signals=("few",)))
    other = tmp_path / "many.mdf"
    other.write_bytes((folder / "many.mdf").read_bytes())
    assert "another sample has the name many" in error_of(tune(folder, "--signal", other))
    document = tmp_path / "0x00000001.json"
    document.write_text("{}")
    found = run("tune", document, "--minbias", folder / "few.mdf", "--signal", folder / "many.mdf")
    assert "a TOML file is expected" in error_of(found)


def test_a_file_without_a_readable_event_is_refused_with_its_name_and_damage(folder: Path, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.mdf"
    garbage.write_bytes(bytes(range(1, 200)))
    assert "garbage.mdf: no event can be read: " in error_of(tune(folder, "--signal", garbage))
    assert "garbage.mdf: no event can be read: " in error_of(
        run("tune", folder / "menu.toml", "--minbias", garbage, "--signal", folder / "many.mdf")
    )


def test_the_arrays_of_the_search_stay_in_the_heap(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[bool] = []
    monkeypatch.setattr("hltnode.daemon.commands.selection.tune.keep_heap", lambda: calls.append(True))
    options = ("--tune", "Hlt1MicroBias.min_tracks=20:80", "--evaluations", 100, "--no-cross-validation")
    found = tune(folder, *options, "--json", tmp_path / "t.json")
    assert found.exit_code == 0, found.output
    assert calls == [True]


def test_without_scipy_the_command_ends_before_the_work_and_names_the_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.commands.common.find_spec", lambda _: None)
    assert "hltnode tune needs scipy: pip install -e '.[tune]'" in error_of(tune(folder))


def test_no_result_is_overwritten_without_force(folder: Path, tmp_path: Path) -> None:
    tuned = tmp_path / "tuned.toml"
    tuned.write_text("mine")
    assert "--force overwrites it" in error_of(tune(folder, "--output", tuned))
    assert "of the same command" in error_of(tune(folder, "--output", folder / "menu.toml", "--force"))
    assert tuned.read_text() == "mine"


def test_a_signal_that_no_cut_selects_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty_crossings.mdf"
    events = recorded(simulate_events(12, 2, geometry=VeloGeometry.builtin(), nu=1e-9))
    empty.write_bytes(b"".join(encode_record(encode_banks(banks), run=1) for banks in events))
    message = "--signal empty_crossings: no line selects an event of it"
    assert message in error_of(tune(folder, "--signal", empty))


@pytest.mark.parametrize("chain", ["na62_rich", "mu3e"])
def test_lines_of_other_chains_are_tuned_with_the_same_options(chain: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.mdf" for name in ("background", "signal")]
    for seed, file in enumerate(files):
        made = run("simulate", "--chain", chain, "-n", 60, "--seed", seed, "--output", file)
        assert made.exit_code == 0, made.output
    (tmp_path / "menu.toml").write_text("")
    options = ("--threads", 1, "--evaluations", 100, "--output", tmp_path / "tuned.toml", "--max-loss", 1)
    given = ("--chain", chain, tmp_path / "menu.toml", "--minbias", files[0], "--signal", files[1])
    found = run("tune", *given, *options, "--no-cross-validation")
    assert found.exit_code == 0, found.output
    rates = run("rates", "--chain", chain, files[0], "--trigger", tmp_path / "tuned.toml", "--threads", 1)
    assert rates.exit_code == 0, rates.output
