"""Speed of the CPU back end: ratios to another revision of this repository, measured in turn."""
