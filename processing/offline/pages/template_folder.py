"""The folder of the templates that pages of all chains share. It needs no library for figures."""

from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
"""Templates of the pages of reports and of events, and the pages that others extend."""
