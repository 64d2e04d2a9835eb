"""Device code for kernels: CUDA C++ that is also plain C++."""
