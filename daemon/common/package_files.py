"""Files that are installed with the package: example configuration, alert rules, dashboards, systemd units."""

from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
"""The directory beside `daemon`, both in the repository and in an installed package."""


def example_configuration() -> str:
    """Path of the example configuration of a farm node, with every key."""
    return (DEPLOY / "node.toml").read_text()
