"""What kernels, lines and simulation know of the detector: light in sea water, and the time slices."""

LIGHT_NS_PER_METRE = 1.3797 / 0.299792458
"""ns that light in sea water needs for a metre: group velocity with an index of 1.3797 (KM3NeT Collaboration, "Letter
of intent for KM3NeT 2.0", J. Phys. G 43 (2016) 084001; the group index at 450 nm)."""
CHERENKOV_COSINE = 1.0 / 1.3499
"""Cosine of the angle of Cherenkov light of a relativistic muon: phase index 1.3499 of sea water at 3.5 km depth."""
SPEED_OF_LIGHT = 0.299792458
"""m/ns."""
SUB_SLICE_NS = 25_000
"""Length of a sub-slice. 84 PMTs at 55 kHz give 116 hits in it, two of them at 1 MHz another 47: near the 100 hits of a
GPU thread of B. Bouhadef et al., "Parallel Neutrino Triggers Using GPUs for an Underwater Telescope",
DESY-PROC-2014-05, section 4.1."""
MARGIN_BEFORE = 1
MARGIN_BEHIND = 1
"""Sub-slices of the neighbours that a time slice repeats."""
WINDOW_REACH_NS = 4_000
"""A window reaches at most this far to either side of its first hits, and a trigger to later ones."""
