"""Files that are installed with the package: the example of a configuration, rules, dashboards, units."""

from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
"""Beside `daemon`, in the repository as in an installed package."""


def example_configuration() -> str:
    """The configuration of a farm node with every key."""
    return (DEPLOY / "node.toml").read_text()
