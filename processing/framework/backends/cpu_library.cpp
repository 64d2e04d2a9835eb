// The kernels of a chain as a shared library: one set of kernels per instruction set, found by name.
//
// The library has a plain C interface. So CMake, or a compiler at run time, can build it for any chain
// (kernel_library.py opens it). HLT_KERNEL_DIGEST identifies its sources.
#include "cpu_target.h"

namespace {

struct Target {
    std::string_view name;
    bool (*supported)();
    KernelFunction (*find)(std::string_view name);
    KernelFunction (*find_common)(std::string_view name);
};

const Target targets[] = {
#ifdef HLT_X86_TARGETS
    {"avx512",
     [] {
         return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
     },
     &avx512::find_kernel, &avx512::find_common_kernel},
    {"avx2", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"); }, &avx2::find_kernel,
     &avx2::find_common_kernel},
#endif
    {"baseline", [] { return true; }, &baseline::find_kernel, &baseline::find_common_kernel},
};

}  // namespace

#define HLT_EXPORT extern "C" __attribute__((visibility("default")))

HLT_EXPORT const char* hlt_kernel_digest() { return HLT_KERNEL_DIGEST; }

// Instruction set number `index` of those that this machine supports, best first; a null pointer after the last.
HLT_EXPORT const char* hlt_kernel_target(uint32_t index)
{
    for (const Target& target : targets)
        if (target.supported() && index-- == 0) return target.name.data();
    return nullptr;
}

// The kernel of a name for an instruction set: its CPU form if it has one and `common` is 0. A null pointer for an
// unknown name.
HLT_EXPORT KernelFunction hlt_find_kernel(const char* target_name, const char* name, int common)
{
    for (const Target& target : targets)
        if (target.name == target_name && target.supported())
            return common != 0 ? target.find_common(name) : target.find(name);
    return nullptr;
}
