// The kernels, compiled as plain C++ for one instruction set. CMake compiles this file once per set, each time with
// another HLT_TARGET; cpu_module.cpp picks one at run time.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "cpu_target.h"

namespace HLT_TARGET {

#include "lhcb/hlt1.cuh"

namespace {

template <auto kernel, typename Parameters>
void run_block(const void* parameters, uint32_t block)
{
    kernel(static_cast<const Parameters*>(parameters), dim3{block, 1, 1});
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
