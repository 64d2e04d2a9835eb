"""Labels of pixels by the algorithms for a CPU that Hennequin compares: for comparisons with labels of runs."""
