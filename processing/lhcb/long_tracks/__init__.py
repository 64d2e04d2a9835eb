"""Long tracks: VELO and VELO-UT tracks followed through the magnet into the SciFi tracker, and SciFi seeds matched to
VELO tracks."""
