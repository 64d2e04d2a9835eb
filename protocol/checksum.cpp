// Python extension hltnode.protocol._checksum: the checksum of MDF records (formats.md B1), which no library has in the
// form that LHCb uses and which Python computes at 10 MB/s.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>

namespace nb = nanobind;

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Bob Jenkins' one-at-a-time hash, seed 0; characters are signed, as in the C++ code that defined the format.
static uint32_t jenkins(const Bytes& bytes)
{
    uint32_t hash = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        hash += static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(bytes.data()[i])));
        hash += hash << 10;
        hash ^= hash >> 6;
    }
    hash += hash << 3;
    hash ^= hash >> 11;
    hash += hash << 15;
    return hash;
}

NB_MODULE(_checksum, module)
{
    module.doc() = "Checksum of MDF records";
    module.def("jenkins", &jenkins, nb::arg("bytes"), nb::call_guard<nb::gil_scoped_release>(),
               "Bob Jenkins' one-at-a-time hash of a buffer of bytes, with signed characters and seed 0");
}
