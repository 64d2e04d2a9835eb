"""Back ends that run kernels: on the CPU (the same sources, compiled) and with CUDA (CuPy, NVRTC)."""
