// Interface of the kernels of a chain, compiled for one instruction set, to cpu_library.cpp.
#pragma once

#include <cstdint>
#include <string_view>

using KernelFunction = void (*)(const void* parameters, uint32_t block);

namespace baseline {
KernelFunction find_kernel(std::string_view name);
KernelFunction find_common_kernel(std::string_view name);
}  // namespace baseline
namespace avx2 {
KernelFunction find_kernel(std::string_view name);
KernelFunction find_common_kernel(std::string_view name);
}  // namespace avx2
namespace avx512 {
KernelFunction find_kernel(std::string_view name);
KernelFunction find_common_kernel(std::string_view name);
}  // namespace avx512
