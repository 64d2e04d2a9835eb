"""`hltnode validate --chain mu3e` on a simulated stream."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.mu3e.offline.simulation.sample import PixelOptions, PixelSample, SampleName
from hltnode.processing.mu3e.offline.tools import TOOLS
from hltnode.processing.mu3e.offline.tools.validation import true_hits
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.errors import BankError
from hltnode.protocol.mu3e.hit_banks import HIT, HitBankType, hits_bank, true_ids_bank
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import encode_banks

SAMPLE = PixelSample(
    SampleRequest(seed=3, run=3),
    PixelOptions(sample=SampleName.SIGNAL, spacing=1, muon_rate=1e7, efficiency=1.0),
)
N = 100


def validated(arguments: list[str]) -> str:
    """What the command prints."""
    done = CliRunner().invoke(app, ["validate", "--chain", "mu3e", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_signal_of_a_quiet_stream_is_found_with_its_vertex(tmp_path: Path) -> None:
    file, result_file = tmp_path / "s.mdf", tmp_path / "v.json"
    file.write_bytes(SAMPLE.encode_records(0, N))
    text = validated([str(file), "--json", str(result_file)])
    result = json.loads(result_file.read_text())
    assert result["sub_slices"] == N
    assert result["decays"]["signal"] == pytest.approx(N, abs=15)
    assert result["accepted"] > 20
    assert result["signal_efficiency"] > 0.8
    assert result["kept"] >= result["signal_efficiency"]
    assert result["track_efficiency"] > 0.95
    assert 20 < result["vertex"] < 800
    assert 0.1 < result["momentum"] < 2.0
    assert "recurling" in text
    assert TOOLS.validation is not None
    tool = TOOLS.validation()
    assert tool.read_result(result_file) == result
    assert "bar" in tool.page([("s.mdf", result)], text)


def test_an_older_result_must_be_one_of_this_chain(tmp_path: Path) -> None:
    assert TOOLS.validation is not None
    tool = TOOLS.validation()
    (tmp_path / "o.json").write_text('{"efficiency": 1}')
    with pytest.raises(ValueError, match=r"o.json: it is no result of hltnode validate --chain mu3e"):
        tool.read_result(tmp_path / "o.json")
    with pytest.raises(ValueError, match=r"none.json"):
        tool.read_result(tmp_path / "none.json")


def test_a_file_without_truth_has_no_numbers(tmp_path: Path) -> None:
    file = tmp_path / "n.mdf"
    file.write_bytes(encode_record(encode_banks([hits_bank(0, np.zeros(2, HIT))]), run=1))
    done = CliRunner().invoke(app, ["validate", "--chain", "mu3e", str(file)])
    assert done.exit_code == 1
    assert "no sub-slice has truth" in done.output


def test_truth_must_have_one_particle_for_each_hit() -> None:
    hits = np.array([(3, 1, 2, 5, 0), (4, 249, 0, 6, 0)], HIT)
    banks = [hits_bank(1, hits), true_ids_bank(1, np.array([7, 8], np.uint32))]
    assert true_hits(banks).tolist() == [[3 << 16 | 1 << 8 | 2, 7], [4 << 16 | 249 << 8, 8]]
    assert len(true_hits(banks[:1])) == 0
    with pytest.raises(BankError, match="1 ids of particles for 2 hits"):
        true_hits([banks[0], true_ids_bank(1, np.array([7], np.uint32))])
    assert banks[1].type == HitBankType.TRUE_IDS
