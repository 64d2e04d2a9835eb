"""The chain `mu3e`: decays mu -> eee in a stream of pixel hits."""
