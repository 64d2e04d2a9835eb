"""What a real GPU does with the node, in one report: `make gpu`, or `python -m benchmarks gpu`.

correctness compares with the CPU, kernel_times and timeline measure with CUDA's events, throughput measures the engine
and a node, memory compares what is used with the plan, comparison says where the estimate was wrong, tools runs pytest
and NVIDIA's compute-sanitizer; command puts them together, report writes. All but the times is tested on the simulated
GPU.
"""
