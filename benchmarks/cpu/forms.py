"""The compared chains, and the events."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.lhcb.real_events import REAL_FILES, geometry_folder, real_file

REPOSITORY = Path(__file__).resolve().parents[2]
SIMULATED_EVENTS = 250
"""Number of these events; a batch has them twice."""
SEED = 3
REAL_COPIES = 72


@dataclass(frozen=True, slots=True)
class Form:
    """A sequence of this revision, against one of the other revision, in one VELO encoding."""

    name: str
    sequence: str
    baseline: str
    encoding: str
    optional: bool = False
    """Omitted if the other revision does not have it."""


FORMS = (
    Form("velo_superpixel", "velo", "velo", "superpixel"),
    Form("velo_retina", "velo", "velo", "retina"),
    Form("velo_simd", "velo_simd", "velo", "retina"),
    Form("forward", "forward", "velo", "retina"),
    Form("forward_to_forward", "forward", "forward", "retina", optional=True),
    Form("no_ut", "no_ut", "no_ut", "retina", optional=True),
)
"""Chains with vertices.

`velo_simd` and `forward`, the whole sequence with its menu, are compared with the VELO chain of the other revision.
"""

NO_CUT = tuple(("global_event_cut", name, 65535) for name in ("max_ut_clusters", "max_scifi_clusters", "max_clusters"))
"""The whole sequence takes every event, as the VELO chain does."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Events in a file for each encoding. `geometry`: a folder, None for the built-in detector."""

    name: str
    files: dict[str, Path]
    geometry: Path | None
    copies: int


def real(shared: Path) -> Sample:
    """The seven minimum-bias events, repeated. Raises FileNotFoundError."""
    found = {encoding: real_file(shared, encoding) for encoding in REAL_FILES}
    return Sample("real", found, geometry_folder(shared), REAL_COPIES)


def simulated(nu: float | None = None, events: int = SIMULATED_EVENTS) -> Sample:
    """Minimum bias, written once under build/benchmarks with this revision."""
    folder = REPOSITORY / "build" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Path] = {}
    for encoding in ("retina", "superpixel"):
        label = "" if nu is None else f"_nu{nu:g}"
        found[encoding] = folder / f"minbias{label}_{encoding}_{events}_seed{SEED}.mdf"
        if not found[encoding].exists():
            unfinished = found[encoding].with_suffix(".unfinished.mdf")
            command = [shutil.which("hltnode", path=str(Path(sys.executable).parent)) or "hltnode", "simulate"]
            command += ["-n", str(events), "--seed", str(SEED), "--velo-banks", encoding, "-o", str(unfinished)]
            command += [] if nu is None else ["--nu", str(nu)]
            subprocess.run(command, check=True, capture_output=True)
            unfinished.rename(found[encoding])
    return Sample("simulated", found, None, 2)
