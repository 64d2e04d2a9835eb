"""The UT: from raw banks to hits sorted by sector group, and to VELO-UT tracks with a momentum."""
