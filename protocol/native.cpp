// Python extension hltnode.protocol._native: the loops over bytes that no library has and Python is too slow for.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>

namespace nb = nanobind;

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t mfp_header_size = 20;
constexpr uint8_t no_bank = 255;  // type of an absent bank

// Checksum of MDF records (formats.md B1): Bob Jenkins' one-at-a-time hash, seed 0; characters are signed, as in the
// C++ code that defined the format.
uint32_t jenkins(const Bytes& bytes)
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

// Sum of the padded sizes of the n fragments of an MFP (formats.md B3), or -1 where an absent bank has a size. The
// caller has checked that both arrays lie inside the packet.
int64_t fragment_bytes(const Bytes& mfp, uint32_t n, uint32_t align)
{
    const std::size_t sizes_at = (mfp_header_size + n + 3) & ~std::size_t{3};
    if (align > 15 || sizes_at + 2 * std::size_t{n} > mfp.size())
        throw nb::value_error("the arrays of the MFP do not lie inside the packet");
    const uint8_t* types = mfp.data() + mfp_header_size;
    const uint8_t* sizes = mfp.data() + sizes_at;
    const uint32_t mask = (1u << align) - 1;
    uint64_t sum = 0;
    bool absent_with_size = false;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t size = static_cast<uint32_t>(sizes[2 * i]) | static_cast<uint32_t>(sizes[2 * i + 1]) << 8;
        sum += (size + mask) & ~mask;
        absent_with_size |= types[i] == no_bank && size != 0;
    }
    return absent_with_size ? -1 : static_cast<int64_t>(sum);
}

}  // namespace

NB_MODULE(_native, module)
{
    module.doc() = "Loops over bytes of the wire and file formats";
    module.def("jenkins", &jenkins, nb::arg("bytes"), nb::call_guard<nb::gil_scoped_release>(),
               "Bob Jenkins' one-at-a-time hash of a buffer of bytes, with signed characters and seed 0");
    module.def("fragment_bytes", &fragment_bytes, nb::arg("mfp"), nb::arg("n"), nb::arg("align"),
               "Sum of the padded sizes of the n fragments of an MFP, or -1 where an absent bank has a size");
}
