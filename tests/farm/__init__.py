"""Real nodes on this machine beside the model of the same farm: rates, latencies, moved MEPs, credits."""
