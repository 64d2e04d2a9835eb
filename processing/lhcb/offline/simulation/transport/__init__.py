"""The paths of the particles: field, material, decays."""
