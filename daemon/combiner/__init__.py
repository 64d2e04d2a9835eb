"""Seeds of several nodes: slices that a node holds, and the combiner that joins the seeds."""
