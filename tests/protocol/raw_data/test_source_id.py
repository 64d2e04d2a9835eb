"""Run-3 source ids."""

from __future__ import annotations
