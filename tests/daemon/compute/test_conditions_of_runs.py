"""Each run has the conditions that the run before it has measured, and keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hltnode.daemon.compute.conditions_of_runs import ConditionsOfRuns
from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.measured_quantities import MeasuredQuantity
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.selection.configuration.conditions_folder import ConditionsFolder
from hltnode.processing.selection.errors import ConditionsError
from hltnode.processing.selection.followed_conditions import FollowedConditions
from tests.daemon.fakes import FakeEngine


class Measured:
    """Measurements as a test sets them; those of a run are there once its counts are collected."""

    def __init__(self) -> None:
        self.uncollected: dict[int, dict[str, float]] = {}
        self.of_run: dict[int, dict[str, float]] = {}
        self.used: list[Sequence[MeasuredQuantity]] = []

    def measured_in(self, run: int) -> Mapping[str, float]:
        return self.of_run.get(run, {})

    def use(self, quantities: Sequence[MeasuredQuantity], *, given: bool) -> None:
        self.used.append([each for each in quantities if each.follows])
        self.given = given

    def collect(self) -> None:
        self.of_run |= self.uncollected


class Bench:
    def __init__(self, tmp_path: Path, conditions: str = "", folder: ConditionsFolder | None = None) -> None:
        path = tmp_path / "trigger.toml"
        path.write_text(f'[sequence]\nname = "velo"\n{conditions}')
        trigger = CHAIN.load_trigger(path)
        self.followed = FollowedConditions(CHAIN, CHAIN.with_sequence("velo").load_geometry(None), trigger, folder)
        self.engine = FakeEngine(BatchLimits(events=8))
        self.engine.tck = self.followed.configured.tck
        self.measured = Measured()
        self.runs = ConditionsOfRuns(self.engine, self.followed, self.measured, self.measured)
        self.follower = FakeEngine(BatchLimits(events=8))
        self.follower.tck = self.engine.tck
        self.runs.followers.append(self.follower.replace_constants)

    def begin(self, run: int, **measured: float) -> dict[str, float] | None:
        """Begin a run, which measures these numbers; the conditions of its document if it is new to the engine."""
        document = self.runs.begin(run)
        self.measured.uncollected[run] = measured
        conditions: dict[str, float] | None = None
        if document is not None:
            assert document.tck == self.engine.tck == self.runs.tck_of(run) == self.follower.tck
            assert self.follower.constants == self.engine.constants
            conditions = document.content["conditions"]
        return conditions


def test_a_run_takes_what_the_run_before_has_measured(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert bench.begin(1, beam_x=0.50049, beam_y=-0.3) is None
    assert bench.begin(2, beam_x=0.5, beam_y=-0.3) == {"beam_x": 0.5, "beam_y": -0.3}
    assert [(each.name, each.configured) for each in bench.measured.used[-1]] == [
        ("beam_x", 0.5),
        ("beam_y", pytest.approx(-0.3)),
    ]
    # It has measured the numbers that are in use.
    assert bench.begin(3) is None
    assert bench.runs.tck_of(3) == bench.runs.tck_of(2) != bench.runs.tck_of(1)


def test_a_thread_that_sees_a_new_key_finds_its_conditions_and_a_failure_keeps_those_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread of the event pictures reads the key of the engine, and then the configuration in use."""
    bench = Bench(tmp_path)
    bench.begin(1, beam_x=0.5)
    before = bench.followed.current
    seen: list[int] = []

    def write(_constants: object, _measured: object, tck: int) -> None:
        seen.extend((tck, bench.followed.current.tck))
        raise BackendError("no memory")

    monkeypatch.setattr(bench.engine, "replace_constants", write)
    with pytest.raises(BackendError):
        bench.runs.begin(2)
    assert seen[0] == seen[1] != before.tck
    assert bench.followed.current is before


def test_a_run_that_measured_nothing_changes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.begin(1, beam_x=0.7)
    assert bench.begin(2) == {"beam_x": 0.7}
    assert bench.begin(3) is None
    assert bench.runs.tck_of(3) == bench.runs.tck_of(2)


@pytest.mark.parametrize(("measured", "taken"), [(0.019, None), (-0.021, {"beam_x": -0.021})])
def test_a_small_change_makes_no_new_key(tmp_path: Path, measured: float, taken: object) -> None:
    bench = Bench(tmp_path)
    bench.begin(1, beam_x=measured)
    assert bench.begin(2) == taken


@pytest.mark.parametrize("measured", [-4.0, 3.5, 4.0])
def test_a_number_outside_the_range_of_its_condition_is_not_followed(
    tmp_path: Path, measured: float, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(tmp_path)
    bench.begin(1, beam_x=measured, beam_y=0.25)
    assert bench.begin(2) == {"beam_y": 0.25}


def test_a_run_that_comes_again_keeps_its_conditions(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.begin(1, beam_x=0.5)
    first, second = bench.runs.tck_of(1), bench.begin(2, beam_x=1.0)
    assert second == {"beam_x": 0.5}
    document = bench.runs.begin(1)
    assert document == bench.followed.configured.document
    assert (bench.engine.tck, bench.runs.tck_of(1)) == (first, first)
    assert bench.begin(2) == {"beam_x": 0.5}


def test_a_run_of_an_earlier_session_keeps_its_conditions(tmp_path: Path) -> None:
    before = Bench(tmp_path)
    before.begin(1, beam_x=0.5)
    document = before.runs.begin(2)
    assert document is not None
    after = Bench(tmp_path)
    assert after.runs.remember({2: document, 1: after.followed.configured.document}) == {1, 2}
    assert after.begin(2, beam_x=0.9) == {"beam_x": 0.5}
    assert after.begin(3) == {"beam_x": 0.9}


def test_a_run_of_an_earlier_session_with_another_selection_is_not_taken_up(tmp_path: Path) -> None:
    other = CHAIN.document(CHAIN.load_trigger(None, "forward"))
    assert Bench(tmp_path).runs.remember({7: other}) == frozenset()


def test_conditions_that_are_given_stay_beside_those_that_are_followed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "[conditions]\nbeam_y = 0.1\n")
    bench.begin(1, beam_x=0.5, beam_y=0.1)
    assert bench.begin(2) == {"beam_x": 0.5, "beam_y": 0.1}


def test_without_followed_conditions_every_run_has_the_key_of_the_engine() -> None:
    engine, measured = FakeEngine(BatchLimits(events=8)), Measured()
    runs = ConditionsOfRuns(engine, None, measured, measured)
    measured.uncollected[1] = {"beam_x": 1.0}
    assert (runs.begin(1), runs.begin(2), runs.remember({}), runs.may_change) == (None, None, frozenset(), False)
    assert runs.tck_of(1) == runs.tck_of(2) == runs.tck_of(None) == engine.tck


def written(path: Path, **places: tuple[int, float]) -> ConditionsFolder:
    """A folder with one run for each file, and the x of the beam in it."""
    index = 'format = 1\nchain = "lhcb"\nversion = "v"\n'
    for name, (run, beam_x) in places.items():
        index += f'[[runs]]\nfirst = {run}\nlast = {run}\nfiles = ["{name}.toml"]\n'
        (path / f"{name}.toml").write_text(f"beam_x = {beam_x}\nbeam_y = 0\nvelo_opening = 2\nmagnet_polarity = 1\n")
    (path / "conditions.toml").write_text(index)
    return ConditionsFolder.load(path, "lhcb", CHAIN.conditions)


def test_a_run_has_the_conditions_of_the_folder_also_if_the_run_before_has_measured_others(tmp_path: Path) -> None:
    bench = Bench(tmp_path, folder=written(tmp_path, first=(1, 0.5), second=(2, 0.25)))
    for run, beam_x in ((1, 0.5), (2, 0.25), (1, 0.5)):
        bench.runs.admit(run)
        found = bench.begin(run, beam_x=1.0)
        assert found == {"beam_x": beam_x, "beam_y": 0.0, "velo_opening": 2.0}
        assert bench.measured.used[-1][0].configured == beam_x
        assert bench.measured.given
    with pytest.raises(ConditionsError, match="run 3 has no conditions"):
        bench.runs.admit(3)
    with pytest.raises(ConditionsError, match="run 3 has no conditions"):
        bench.runs.begin(3)


def test_a_folder_read_again_is_for_runs_that_begin_later_and_an_invalid_one_changes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, folder=written(tmp_path, first=(1, 0.5)))
    bench.runs.admit(1)
    written(tmp_path, first=(1, 0.75), second=(2, 0.25))
    folder = bench.runs.read_folder()
    assert folder is not None
    with pytest.raises(ConditionsError, match="run 2 has no conditions"):
        bench.runs.admit(2)
    bench.runs.use_folder(folder)
    bench.runs.admit(2)
    # Run 1 was admitted before.
    assert bench.begin(1) == {"beam_x": 0.5, "beam_y": 0.0, "velo_opening": 2.0}
    assert bench.begin(2) == {"beam_x": 0.25, "beam_y": 0.0, "velo_opening": 2.0}
    (tmp_path / "second.toml").write_text("beam_x = 9")
    with pytest.raises(ConditionsError, match=r"second\.toml: beam_x: 9 mm"):
        bench.runs.read_folder()
    assert bench.runs.folder is folder


def test_a_run_that_an_earlier_session_began_keeps_the_conditions_of_its_document(tmp_path: Path) -> None:
    bench = Bench(tmp_path, folder=written(tmp_path, first=(1, 0.5)))
    bench.runs.admit(1)
    document = bench.runs.begin(1)
    assert document is not None
    later = Bench(tmp_path, folder=written(tmp_path, first=(1, 0.75)))
    assert later.runs.remember({1: document}) == {1}
    later.runs.admit(1)
    assert later.begin(1) == document.content["conditions"]


def test_a_quantity_that_only_checks_a_condition_is_not_followed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert {each.name for each in bench.followed.current.measured if not each.follows} == {
        f"beam_{axis}_of_velo_{side}" for axis in "xy" for side in "ac"
    }
    bench.begin(1, beam_x_of_velo_a=0.5)
    assert bench.begin(2) is None


def test_the_values_of_the_last_run_are_counted_before_its_conditions_change(tmp_path: Path) -> None:
    bench = Bench(tmp_path, folder=written(tmp_path, first=(1, 0.5)))
    order: list[str] = []
    bench.measured.collect = lambda: order.append("collect")  # type: ignore[method-assign]
    bench.measured.use = lambda *_args, **_kwargs: order.append("use")  # type: ignore[method-assign]
    bench.runs.begin(1)
    assert order == ["collect", "use"]
