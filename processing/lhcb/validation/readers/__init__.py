"""Reference samples in the formats of others."""
