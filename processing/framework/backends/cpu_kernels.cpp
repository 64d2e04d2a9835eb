// The kernels of a chain, compiled as plain C++ for one instruction set. This file is compiled once for each set, with
// another HLT_TARGET each time, and HLT_KERNEL_LIST the generated list of the kernels of the chain.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "cpu_target.h"

namespace HLT_TARGET {

#include HLT_KERNEL_LIST

namespace {

template <auto kernel, typename Parameters>
void run_block(const void* parameters, uint32_t block)
{
    kernel(*static_cast<const Parameters*>(parameters), dim3{block, 1, 1});
}

}  // namespace

KernelFunction find_kernel(std::string_view name)
{
#define HLT_FIND(kernel) \
    if (name == #kernel) return &run_block<&kernel, kernel##_parameters>;
    HLT_KERNELS(HLT_FIND)
#undef HLT_FIND
    return nullptr;
}

}  // namespace HLT_TARGET
