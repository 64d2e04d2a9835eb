"""What lines and simulation know of NA62: the RICH, the beam and the masses of particles."""

FOCAL_LENGTH = 17_000.0
"""mm. The mirrors focus parallel light at this distance: the centre of a ring is the slope of its track times the focal
length, and its radius is the tangent of the Cherenkov angle times the focal length. The radiator is as long."""
REFRACTIVITY = 62.8e-6
"""n - 1 of neon at atmospheric pressure (NA62 Collaboration, "The beam and detector of the NA62 experiment at CERN",
JINST 12 (2017) P05025, section 6)."""
INDEX_SQUARE = (1.0 + REFRACTIVITY) ** 2
KAON_MOMENTUM = 75.0
"""GeV/c, along z."""
KAON_MASS = 0.493677
PION_MASS = 0.13957039
NEUTRAL_PION_MASS = 0.1349768
MUON_MASS = 0.1056583755
"""GeV/c2 (Particle Data Group, Review of Particle Physics 2024)."""
MIN_MOMENTUM, MAX_MOMENTUM = 15.0, 35.0
"""GeV/c: the range in which the RICH tells pions from muons."""
