"""What kernels, lines and simulation know of the detector: magnetic field, material, target, time slices."""

FIELD_TESLA = 1.0
"""Along z, everywhere in the detector."""
MEV_PER_MM = 0.299792458 * FIELD_TESLA
"""MeV/c of transverse momentum for each mm of radius of a helix."""
SPEED_OF_LIGHT = 299.792458
"""mm/ns."""
MUON_MASS = 105.6583755
ELECTRON_MASS = 0.51099895
"""MeV/c^2 (Particle Data Group)."""

LAYER_RADII = (23.3, 29.8, 73.9, 86.3)
"""mm from the axis to the sensors of each layer (K. Arndt et al. (Mu3e), "Technical design of the phase I Mu3e
experiment", Nucl. Instrum. Meth. A 1014 (2021) 165679, arXiv:2009.11690, table of the pixel tracker)."""
LAYER_LADDERS = (8, 10, 24, 28)
LAYER_SENSORS = (6, 6, 17, 18)
"""Sensors of a ladder, along z."""
RECURL_CENTRE = 380.0
"""mm from the middle of the detector to that of a recurl station, which has the outer two layers again."""
PIXEL_MM = 0.080
"""Pixels are squares (D. vom Bruch, "Track and Vertex Reconstruction on GPUs for the Mu3e Experiment",
DESY-PROC-2014-05, section 1.1)."""
LAYER_THICKNESS = 0.00115
"""Radiation lengths of a layer at normal incidence: a sensor of 50 um with its support and flexprint (the same design
report)."""

TARGET_RADIUS = 19.0
TARGET_HALF_LENGTH = 50.0
"""mm: the target is a hollow double cone, widest in the middle (the same report)."""

FRAME_NS = 50
"""The readout boards sort hits into frames of 50 ns (vom Bruch, section 2)."""
SUB_SLICE_NS = 400
"""Length of a sub-slice: eight frames."""
MARGIN_BEFORE = 1
MARGIN_BEHIND = 1
"""Sub-slices of the neighbours that a time slice repeats."""
