"""A chain with several sequences: the choice of the sequence and its consequences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import hltnode.processing.selection.select_lines as select_lines_module
from hltnode.processing.algorithms.deliver_lists import DELIVERING
from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.trigger_chain import Sequence, TriggerChain

VELO = CHAIN.sequences["velo"]
WITH_CLONES = Sequence(
    algorithms=AlgorithmSequence(tuple(it for it in VELO.algorithms if it.name not in ("velo_kill_clones",))),
    subdetectors=frozenset({0}),
    counts={"velo_tracks": VELO.counts["velo_tracks"]},
)


def two_sequences() -> TriggerChain:
    return TriggerChain.offering(
        {"velo": VELO, "clones": WITH_CLONES},
        "clones",
        name="two",
        kernels=CHAIN.kernels,
        source=CHAIN.source,
        readout=CHAIN.readout,
        types=CHAIN.types,
        event_words=CHAIN.event_words,
        menu=replace(CHAIN.menu, lines=CHAIN.menu.of("velo")),
        geometry=CHAIN.geometry,
    )


def configured(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trigger.toml"
    path.write_text(text)
    return path


def test_the_default_sequence_runs_if_none_is_chosen() -> None:
    chain = two_sequences()
    assert chain.load_trigger(None).sequence is None
    assert chain.with_sequence(None).sequence is WITH_CLONES.algorithms


def test_a_configuration_chooses_the_sequence_and_an_option_overrides_it(tmp_path: Path) -> None:
    chain = two_sequences()
    path = configured(tmp_path, '[sequence]\nname = "clones"')
    assert chain.load_trigger(path).sequence == "clones"
    assert chain.load_trigger(path, "velo").sequence == "velo"


def test_what_depends_on_the_sequence_goes_with_it() -> None:
    chosen = two_sequences().with_sequence("clones")
    assert chosen.sequence is WITH_CLONES.algorithms
    assert (chosen.subdetectors, tuple(chosen.counts)) == (frozenset({0}), ("velo_tracks",))


def test_the_library_holds_the_kernels_of_all_sequences_once() -> None:
    for name in ("velo", "clones"):
        names = [it.name for it in two_sequences().with_sequence(name).algorithms]
        assert sorted(names) == sorted(it.name for it in (*VELO.algorithms, *DELIVERING))


@pytest.mark.parametrize(
    "text", ['name = "all"', "[sequence.no_algorithm]\nx = 1", "[sequence.velo_cluster_limit]\nmax_clusters = -1"]
)
def test_what_the_sequence_does_not_take_is_refused_with_the_name_of_the_file(tmp_path: Path, text: str) -> None:
    path = configured(tmp_path, f"[sequence]\n{text}")
    with pytest.raises(TriggerConfigError, match=rf"^{path}: sequence\."):
        two_sequences().load_trigger(path)


def test_an_unknown_sequence_is_refused_with_the_list_of_sequences(tmp_path: Path) -> None:
    path = configured(tmp_path, '[sequence]\nname = "all"')
    with pytest.raises(TriggerConfigError, match=r"sequence\.name: .* no sequence 'all'; there are velo, clones"):
        two_sequences().load_trigger(path)
    with pytest.raises(TriggerConfigError, match="none to choose from"):
        replace(two_sequences(), sequences={}).load_trigger(None, "velo")


def test_the_engine_runs_the_chosen_sequence_and_the_key_says_which() -> None:
    chain = two_sequences()
    engines = [
        chain.create_engine(
            CpuBackend(chain.kernels, threads=1),
            chain.load_geometry(None),
            chain.load_trigger(None, name),
            BatchLimits(events=4, input_bytes=1 << 16),
        )
        for name in (None, "velo", "clones")
    ]
    for engine, sequence in zip(engines[1:], (VELO, WITH_CLONES), strict=True):
        *algorithms, lines = engine.chain.sequence
        assert (tuple(algorithms), lines.name) == (sequence.algorithms.algorithms, "select_lines")
    default, velo, clones = (engine.tck for engine in engines)
    assert default == clones != velo
    assert engines[2].collections == ("velo_tracks", "unknown_selections")
    for engine in engines:
        engine.close()


def test_a_configuration_is_composed_once_and_its_kernel_written_at_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    def write(*arguments: object) -> str:
        written.append(arguments)
        return "kernel"

    monkeypatch.setattr(select_lines_module, "_kernel", write)
    chain = two_sequences()
    trigger = chain.load_trigger(None, "velo")
    chain.document(trigger)
    composed = chain.with_lines(trigger)
    assert chain.with_lines(trigger) is composed
    assert written == []
    (of_lines,) = (each.generated for each in composed.sequence if each.name == select_lines_module.NAME)
    assert of_lines is not None
    assert (of_lines.body, of_lines.body, len(written)) == ("kernel", "kernel", 1)
    # Another object may have other lines; so may another chain and another choice of lists.
    assert chain.with_lines(replace(trigger)) is not composed
    assert two_sequences().with_lines(trigger) is not composed
    assert chain.with_lines(trigger, with_lists=False) is not composed
