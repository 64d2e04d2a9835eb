// The kernels of a chain, compiled as plain C++ for one instruction set. This file is compiled once for each set, with
// its own HLT_TARGET; HLT_KERNEL_LIST is the generated list of the kernels of the chain. A kernel with a CPU form
// exists twice: find_kernel returns HLT_CPU_FORM(name), find_common_kernel the kernel itself.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#if defined(__AVX2__)
// For CPU forms with intrinsics; included here, outside the namespace below. GCC warns about values that its own
// intrinsics leave undefined on purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

#include "cpu_target.h"

#define HLT_WITH_CPU_FORMS
#define HLT_CPU_FORM(name) void name##_cpu(const name##_parameters& p, const uint32_t event)

namespace HLT_TARGET {

#include HLT_KERNEL_LIST

namespace {

template <auto kernel, typename Parameters>
void run_block(const void* parameters, uint32_t block)
{
    kernel(*static_cast<const Parameters*>(parameters), dim3{block, 1, 1});
}

template <auto form, typename Parameters>
void run_form(const void* parameters, uint32_t block)
{
    form(*static_cast<const Parameters*>(parameters), block);
}

}  // namespace

KernelFunction find_kernel(std::string_view name)
{
#if defined(HLT_CPU_FORMS)
#define HLT_FIND(kernel) \
    if (name == #kernel) return &run_form<&kernel##_cpu, kernel##_parameters>;
    HLT_CPU_FORMS(HLT_FIND)
#undef HLT_FIND
#endif
    return find_common_kernel(name);
}

KernelFunction find_common_kernel(std::string_view name)
{
#define HLT_FIND(kernel) \
    if (name == #kernel) return &run_block<&kernel, kernel##_parameters>;
    HLT_KERNELS(HLT_FIND)
#undef HLT_FIND
    return nullptr;
}

}  // namespace HLT_TARGET
