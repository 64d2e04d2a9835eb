"""One report on the node with a real GPU: `make gpu`, or `python -m benchmarks gpu`.

`correctness` compares with the CPU, `kernel_times` and `timeline` measure with CUDA events, `throughput` measures the
engine and a node. `memory` compares the used memory with the plan, `comparison` the times with the estimate. `tools`
runs pytest and NVIDIA's compute-sanitizer. `command` combines them, `report` writes the report. Tests cover all but the
times on the simulated GPU.
"""
