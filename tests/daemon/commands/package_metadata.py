"""Stand-ins for installed packages: only their entry points."""

from pathlib import Path


def install(folder: Path, package: str, entry_points: str) -> None:
    """Write the metadata of an installed package into an importable folder."""
    # Python knows packages by the part of this name before the first dash.
    metadata = folder / f"{package.replace('-', '_')}-1.5.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
    (metadata / "entry_points.txt").write_text(entry_points)
