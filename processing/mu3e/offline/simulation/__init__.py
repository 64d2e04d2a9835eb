"""A simulated stream of pixel hits: decays of stopped muons, flight of electrons, noise, truth."""
