"""The kernels: CUDA C++ that is also plain C++."""
