"""The two ways to run a kernel: on the CPU (the same sources, compiled) and with CUDA (CuPy, NVRTC)."""
