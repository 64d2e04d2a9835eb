"""Likeness of two samples to the decoders: distributions of banks, hits and truth, with their Kolmogorov distances."""

from hltnode.processing.lhcb.offline.validation.likeness.sample import SampleSummary

__all__ = ["SampleSummary"]
