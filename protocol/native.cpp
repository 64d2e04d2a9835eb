// Python extension hltnode.protocol._native: loops over bytes that no library offers and that are too slow in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace nb = nanobind;

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t mfp_header_size = 20;
constexpr uint8_t no_bank = 255;  // type of an absent bank

// Checksum of MDF records (docs/formats/mdf.md): Bob Jenkins' one-at-a-time hash, seed 0; characters are signed, as in
// the C++ code that defined the format.
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

// Sum of the padded sizes of the n fragments of an MFP (docs/formats/mfp.md), or -1 where an absent bank has a size.
// The caller has checked that both arrays lie inside the packet.
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

// A view of the bytes of an object; valid during the lifetime of this one.
class View {
  public:
    explicit View(PyObject* object)
    {
        if (PyObject_GetBuffer(object, &buffer_, PyBUF_SIMPLE) != 0) throw nb::python_error();
    }
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    ~View() { PyBuffer_Release(&buffer_); }
    const void* data() const { return buffer_.buf; }
    std::size_t size() const { return static_cast<std::size_t>(buffer_.len); }

  private:
    Py_buffer buffer_;
};

constexpr std::size_t bank_header_size = 8;
constexpr uint16_t bank_magic = 0xCBCB;

uint16_t u16_at(const uint8_t* bytes) { return static_cast<uint16_t>(bytes[0] | bytes[1] << 8); }

// The raw banks (docs/formats/raw-bank.md) that fill a memoryview of bytes, as objects of `type`, a tuple of type,
// version, source id and a view of the payload; and where the first damaged bank starts, or the end.
nb::tuple scan_banks(const nb::handle& view, const nb::type_object& type)
{
    const View bytes(view.ptr());
    const auto* data = static_cast<const uint8_t*>(bytes.data());
    nb::list banks;
    std::size_t at = 0;
    while (bytes.size() - at >= bank_header_size && u16_at(data + at) == bank_magic) {
        const std::size_t length = u16_at(data + at + 2), following = at + ((length + 3) & ~std::size_t{3});
        if (length < bank_header_size || following > bytes.size()) break;
        const nb::object payload = view[nb::slice(at + bank_header_size, at + length)];
        const nb::tuple parts = nb::make_tuple(data[at + 4], data[at + 5], u16_at(data + at + 6), payload);
        banks.append(nb::steal(
            PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject*>(type.ptr()), nb::make_tuple(parts).ptr(), nullptr)));
        at = following;
    }
    return nb::make_tuple(banks, at);
}

// Where the particles of a truth bank (docs/formats/truth-banks.md) start, and the lengths of their three lists of ids:
// `fixed_size` bytes and, three times, a number and that many ids of 32 bits. Stops where the bytes end. Returns
// starts, lengths (three per particle) and the end.
nb::tuple find_particles(const Bytes& data, std::size_t at, std::size_t n, std::size_t fixed_size)
{
    constexpr std::size_t n_lists = 3, word = 4;
    nb::list starts, lengths;
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < n; ++i) {
        starts.append(at);
        at += fixed_size;
        for (std::size_t k = 0; k < n_lists; ++k) {
            if (at + word > data.size()) return nb::make_tuple(starts, lengths, -1);
            const uint8_t* number = data.data() + at;
            const std::size_t n_ids = u16_at(number) | static_cast<std::size_t>(u16_at(number + 2)) << 16;
            lengths.append(n_ids);
            at += word * (n_ids + 1);
        }
    }
    return nb::make_tuple(starts, lengths, at);
}

// Header, payload and padding of raw banks (docs/formats/raw-bank.md), given as tuples (type, version, source id,
// payload), back to back. Throws for a bank that does not fit its header.
nb::bytes encode_banks(const nb::list& banks)
{
    constexpr std::size_t max_size = 0xFFFF;
    std::vector<char> out;
    out.reserve(1 << 18);
    for (const nb::handle bank : banks) {
        if (!PyTuple_Check(bank.ptr()) || PyTuple_GET_SIZE(bank.ptr()) != 4)
            throw nb::value_error("a raw bank has four parts");
        uint8_t type, version;
        uint16_t source;
        const View payload(PyTuple_GET_ITEM(bank.ptr(), 3));
        const std::size_t length = bank_header_size + payload.size();
        if (!nb::try_cast(nb::handle(PyTuple_GET_ITEM(bank.ptr(), 0)), type) ||
            !nb::try_cast(nb::handle(PyTuple_GET_ITEM(bank.ptr(), 1)), version) ||
            !nb::try_cast(nb::handle(PyTuple_GET_ITEM(bank.ptr(), 2)), source) || length > max_size)
            throw nb::value_error("a raw bank does not fit its header");
        const unsigned char header[bank_header_size] = {bank_magic & 0xFF,
                                                        bank_magic >> 8,
                                                        static_cast<unsigned char>(length & 0xFF),
                                                        static_cast<unsigned char>(length >> 8),
                                                        type,
                                                        version,
                                                        static_cast<unsigned char>(source & 0xFF),
                                                        static_cast<unsigned char>(source >> 8)};
        const std::size_t at = out.size();
        out.resize(at + ((length + 3) & ~std::size_t{3}));
        std::memcpy(out.data() + at, header, bank_header_size);
        std::memcpy(out.data() + at + bank_header_size, payload.data(), payload.size());
    }
    return nb::bytes(out.data(), out.size());
}

}  // namespace

NB_MODULE(_native, module)
{
    module.doc() = "Loops over bytes of the wire and file formats";
    module.def("jenkins", &jenkins, nb::arg("bytes"), nb::call_guard<nb::gil_scoped_release>(),
               "Bob Jenkins' one-at-a-time hash of a buffer of bytes, with signed characters and seed 0");
    module.def("scan_banks", &scan_banks, nb::arg("view"), nb::arg("type"),
               "The raw banks that fill a view of bytes, and where the first damaged one starts, or the end");
    module.def("find_particles", &find_particles, nb::arg("data"), nb::arg("at"), nb::arg("n"), nb::arg("fixed_size"),
               "Starts of particles in truth data, lengths of their lists, and the end, -1 where the bytes end before");
    module.def("encode_banks", &encode_banks, nb::arg("banks"),
               "Raw banks, given as (type, version, source id, payload), back to back; ValueError if one does not fit");
    module.def("fragment_bytes", &fragment_bytes, nb::arg("mfp"), nb::arg("n"), nb::arg("align"),
               "Sum of the padded sizes of the n fragments of an MFP, or -1 where an absent bank has a size");
}
