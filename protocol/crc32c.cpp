// A CRC instruction has a latency of three cycles and can start every cycle. So the CRCs of three parts of a block are
// computed side by side and combined by tables: the CRC of a part followed by n zero bytes is a linear function of its
// own CRC. (V. Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel white paper
// 323405, 2011.) Processors with carry-less multiplication of vectors fold 256 bytes into the next 256 instead, for any
// length: modulo the CRC polynomial, 128 bits that lie d bits ahead of others equal their halves times x^(d+64) and
// x^d. (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel white paper
// 323102, 2009.) The copy writes the block in order, line by line, and on x86 past the caches: the device reads a slot,
// or the CPU reads it after the whole batch arrived. In the caches its lines would only be fetched and evicted again.
#include "crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are read in place and must be little-endian");

namespace crc32c {
namespace {

constexpr uint32_t polynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed

using Table = std::array<uint32_t, 256>;

// tables[k][b]: the register after byte b and k zero bytes.
constexpr std::array<Table, 8> make_byte_tables()
{
    std::array<Table, 8> tables{};
    for (uint32_t b = 0; b < 256; ++b) {
        uint32_t value = b;
        for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? polynomial : 0);
        tables[0][b] = value;
    }
    for (std::size_t k = 1; k < 8; ++k)
        for (std::size_t b = 0; b < 256; ++b) tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xFF];
    return tables;
}

constexpr std::array<Table, 8> byte_tables = make_byte_tables();

// The register after `n_bytes` zero bytes, by tables for its four bytes.
class ZeroBytes {
  public:
    explicit constexpr ZeroBytes(std::size_t n_bytes)
    {
        for (int bit = 0; bit < 32; ++bit) {
            uint32_t value = uint32_t{1} << bit;
            for (std::size_t i = 0; i < n_bytes; ++i) value = value >> 8 ^ byte_tables[0][value & 0xFF];
            for (std::size_t b = 0; b < 256; ++b)
                if (b >> bit % 8 & 1) tables_[bit / 8][b] ^= value;
        }
    }
    uint32_t operator()(uint32_t value) const
    {
        return tables_[0][value & 0xFF] ^ tables_[1][value >> 8 & 0xFF] ^ tables_[2][value >> 16 & 0xFF] ^
               tables_[3][value >> 24];
    }

  private:
    std::array<Table, 4> tables_{};
};

uint64_t u64_at(const uint8_t* bytes)
{
    uint64_t value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

// Eight bytes per step by tables; the copy follows in pieces that are still in the L1 cache.
uint32_t copy_portable(uint32_t crc, const uint8_t* from, uint8_t* to, std::size_t size)
{
    constexpr std::size_t piece = 8192;
    const auto& t = byte_tables;
    crc = ~crc;
    while (size) {
        const std::size_t n = size < piece ? size : piece;
        std::size_t i = 0;
        for (; i + 8 <= n; i += 8) {
            const uint64_t word = u64_at(from + i) ^ crc;
            crc = t[7][word & 0xFF] ^ t[6][word >> 8 & 0xFF] ^ t[5][word >> 16 & 0xFF] ^ t[4][word >> 24 & 0xFF] ^
                  t[3][word >> 32 & 0xFF] ^ t[2][word >> 40 & 0xFF] ^ t[1][word >> 48 & 0xFF] ^ t[0][word >> 56];
        }
        for (; i < n; ++i) crc = crc >> 8 ^ t[0][(crc ^ from[i]) & 0xFF];
        if (to) {
            std::memcpy(to, from, n);
            to += n;
        }
        from += n;
        size -= n;
    }
    return ~crc;
}

#if defined(__x86_64__) || (defined(__aarch64__) && defined(__linux__))
#define CRC32C_INSTRUCTIONS

constexpr std::size_t line_size = 64;
constexpr std::size_t long_stretch = 2048;
constexpr std::size_t short_stretch = 256;
constexpr ZeroBytes long_zeros(long_stretch);
constexpr ZeroBytes short_zeros(short_stretch);

#if defined(__x86_64__)
constexpr const char* instructions = "sse4.2";
#define CRC32C_TARGET __attribute__((target("sse4.2")))

bool has_instructions() { return __builtin_cpu_supports("sse4.2"); }

CRC32C_TARGET inline uint64_t sum8(uint64_t crc, uint64_t word) { return _mm_crc32_u64(crc, word); }
CRC32C_TARGET inline uint64_t sum1(uint64_t crc, uint8_t byte)
{
    return _mm_crc32_u8(static_cast<uint32_t>(crc), byte);
}

// `to` starts a cache line; `finish_copy` orders the writes for other processors.
inline void copy_line(const uint8_t* from, uint8_t* to)
{
    for (std::size_t i = 0; i < line_size; i += sizeof(__m128i))
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
}
inline void finish_copy() { _mm_sfence(); }
#else
constexpr const char* instructions = "armv8-crc";
#define CRC32C_TARGET __attribute__((target("+crc")))

bool has_instructions() { return getauxval(AT_HWCAP) & HWCAP_CRC32; }

CRC32C_TARGET inline uint64_t sum8(uint64_t crc, uint64_t word) { return __crc32cd(static_cast<uint32_t>(crc), word); }
CRC32C_TARGET inline uint64_t sum1(uint64_t crc, uint8_t byte) { return __crc32cb(static_cast<uint32_t>(crc), byte); }

inline void copy_line(const uint8_t* from, uint8_t* to) { std::memcpy(to, from, line_size); }
inline void finish_copy() {}
#endif

// Whole blocks of three parts, from the current position; each step processes 64 bytes of each part and copies the next
// three lines of the block.
template <bool copies, std::size_t stretch>
CRC32C_TARGET inline uint64_t copy_blocks(uint64_t crc, const uint8_t*& from, uint8_t*& to, std::size_t& size,
                                          const ZeroBytes& zeros)
{
    for (; size >= 3 * stretch; size -= 3 * stretch) {
        uint64_t first = crc, second = 0, third = 0;
        for (std::size_t at = 0; at < stretch; at += line_size) {
            if (copies)
                for (std::size_t k = 0; k < 3; ++k)
                    copy_line(from + 3 * at + k * line_size, to + 3 * at + k * line_size);
            for (std::size_t i = at; i < at + line_size; i += 8) {
                first = sum8(first, u64_at(from + i));
                second = sum8(second, u64_at(from + stretch + i));
                third = sum8(third, u64_at(from + 2 * stretch + i));
            }
        }
        const uint32_t both = zeros(static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
        crc = zeros(both) ^ static_cast<uint32_t>(third);
        from += 3 * stretch;
        if (copies) to += 3 * stretch;
    }
    return crc;
}

// The rest that is too short for blocks.
template <bool copies>
CRC32C_TARGET inline uint64_t copy_rest(uint64_t crc, const uint8_t*& from, uint8_t*& to, std::size_t size)
{
    if (copies) {
        std::memcpy(to, from, size);
        to += size;
    }
    for (; size >= 8; size -= 8, from += 8) crc = sum8(crc, u64_at(from));
    for (; size; --size, ++from) crc = sum1(crc, *from);
    return crc;
}

template <bool copies>
CRC32C_TARGET uint32_t copy_by_instructions(uint32_t before, const uint8_t* from, uint8_t* to, std::size_t size)
{
    uint64_t crc = ~before;
    if (copies && size >= 3 * short_stretch) {
        const std::size_t to_line = -reinterpret_cast<uintptr_t>(to) % line_size;
        crc = copy_rest<copies>(crc, from, to, to_line);
        size -= to_line;
    }
    const std::size_t in_blocks = size;
    crc = copy_blocks<copies, long_stretch>(crc, from, to, size, long_zeros);
    crc = copy_blocks<copies, short_stretch>(crc, from, to, size, short_zeros);
    if (copies && size != in_blocks) finish_copy();
    return ~static_cast<uint32_t>(copy_rest<copies>(crc, from, to, size));
}

uint32_t copy_with_instructions(uint32_t crc, const uint8_t* from, uint8_t* to, std::size_t size)
{
    return to ? copy_by_instructions<true>(crc, from, to, size) : copy_by_instructions<false>(crc, from, nullptr, size);
}
#endif

#if defined(__x86_64__)
#define FOLDING_TARGET __attribute__((target("sse4.2,pclmul,avx512f,vpclmulqdq")))

constexpr std::size_t folded_size = 4 * line_size;
// Below this size, aligning the copy to lines costs more than the folding gains.
constexpr std::size_t least_folded_copy = 3 * short_stretch;

bool has_folding()
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("vpclmulqdq");
}

// x^n modulo the polynomial, its bits reversed.
constexpr uint32_t power_of_x(std::size_t n)
{
    uint32_t value = uint32_t{1} << 31;
    for (; n; --n) value = value >> 1 ^ (value & 1 ? polynomial : 0);
    return value;
}

// Factors of the two halves of 128 bits that lie this number of bits ahead. In reversed bit order a product of 64 and
// 32 bits starts 33 bits early.
struct Factors {
    uint64_t first, second;

    explicit constexpr Factors(std::size_t bits) : first(power_of_x(bits + 64 - 33)), second(power_of_x(bits - 33)) {}
};
constexpr Factors by_lane(8 * sizeof(__m128i)), by_line(8 * line_size), by_block(8 * folded_size);

FOLDING_TARGET inline __m512i in_each_lane(const Factors& factors)
{
    return _mm512_broadcast_i32x4(
        _mm_set_epi64x(static_cast<long long>(factors.second), static_cast<long long>(factors.first)));
}

FOLDING_TARGET inline __m512i folded(__m512i ahead, __m512i factors, __m512i next)
{
    constexpr int exclusive_or = 0x96;
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(ahead, factors, 0x00),
                                     _mm512_clmulepi64_epi128(ahead, factors, 0x11), next, exclusive_or);
}

FOLDING_TARGET inline __m128i folded(__m128i ahead, __m128i factors, __m128i next)
{
    const __m128i both =
        _mm_xor_si128(_mm_clmulepi64_si128(ahead, factors, 0x00), _mm_clmulepi64_si128(ahead, factors, 0x11));
    return _mm_xor_si128(both, next);
}

// Read and copy the next line.
template <bool copies>
FOLDING_TARGET inline __m512i next_line(const uint8_t*& from, uint8_t*& to)
{
    const __m512i line = _mm512_loadu_si512(from);
    from += line_size;
    if (copies) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to), line);
        to += line_size;
    }
    return line;
}

// Whole lines from the current position, at least `folded_size` bytes; `to` starts a line.
template <bool copies>
FOLDING_TARGET inline uint64_t fold_lines(uint64_t crc, const uint8_t*& from, uint8_t*& to, std::size_t& size)
{
    __m512i lines[4];
    for (__m512i& line : lines) line = next_line<copies>(from, to);
    lines[0] = _mm512_xor_si512(
        lines[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(static_cast<uint32_t>(crc)))));
    size -= folded_size;
    const __m512i block_factors = in_each_lane(by_block), line_factors = in_each_lane(by_line);
    for (; size >= folded_size; size -= folded_size)
        for (__m512i& line : lines) line = folded(line, block_factors, next_line<copies>(from, to));
    __m512i line = lines[0];
    for (int i = 1; i < 4; ++i) line = folded(line, line_factors, lines[i]);
    for (; size >= line_size; size -= line_size) line = folded(line, line_factors, next_line<copies>(from, to));
    const __m128i lane_factors = _mm512_castsi512_si128(in_each_lane(by_lane));
    __m128i lane = _mm512_castsi512_si128(line);
    lane = folded(lane, lane_factors, _mm512_extracti32x4_epi32(line, 1));
    lane = folded(lane, lane_factors, _mm512_extracti32x4_epi32(line, 2));
    lane = folded(lane, lane_factors, _mm512_extracti32x4_epi32(line, 3));
    crc = sum8(0, static_cast<uint64_t>(_mm_cvtsi128_si64(lane)));
    return sum8(crc, static_cast<uint64_t>(_mm_extract_epi64(lane, 1)));
}

FOLDING_TARGET uint32_t copy_by_folding(uint32_t before, const uint8_t* from, uint8_t* to, std::size_t size)
{
    uint64_t crc = ~before;
    if (!to) {
        if (size >= folded_size) crc = fold_lines<false>(crc, from, to, size);
        return ~static_cast<uint32_t>(copy_rest<false>(crc, from, to, size));
    }
    if (size >= least_folded_copy) {
        const std::size_t to_line = -reinterpret_cast<uintptr_t>(to) % line_size;
        crc = copy_rest<true>(crc, from, to, to_line);
        size -= to_line;
        crc = fold_lines<true>(crc, from, to, size);
        finish_copy();
    }
    return ~static_cast<uint32_t>(copy_rest<true>(crc, from, to, size));
}
#endif

// The effect of 2^k zero bytes on each bit of the register, for each bit k of a size.
using Matrix = std::array<uint32_t, 32>;

uint32_t applied(const Matrix& matrix, uint32_t value)
{
    uint32_t sum = 0;
    for (std::size_t bit = 0; value; ++bit, value >>= 1)
        if (value & 1) sum ^= matrix[bit];
    return sum;
}

std::array<Matrix, 64> make_powers()
{
    std::array<Matrix, 64> powers{};
    for (std::size_t bit = 0; bit < 32; ++bit) {
        const uint32_t value = uint32_t{1} << bit;
        powers[0][bit] = value >> 8 ^ byte_tables[0][value & 0xFF];
    }
    for (std::size_t k = 1; k < powers.size(); ++k)
        for (std::size_t bit = 0; bit < 32; ++bit) powers[k][bit] = applied(powers[k - 1], powers[k - 1][bit]);
    return powers;
}

std::vector<Implementation> find_implementations()
{
    std::vector<Implementation> found;
#if defined(__x86_64__)
    if (has_folding()) found.push_back({"vpclmulqdq", copy_by_folding});
#endif
#ifdef CRC32C_INSTRUCTIONS
    if (has_instructions()) found.push_back({instructions, copy_with_instructions});
#endif
    found.push_back({"portable", copy_portable});
    return found;
}

}  // namespace

const std::vector<Implementation>& implementations()
{
    static const std::vector<Implementation> found = find_implementations();
    return found;
}

uint32_t joined(uint32_t first, uint32_t second, std::size_t second_size)
{
    static const std::array<Matrix, 64> powers = make_powers();
    for (std::size_t k = 0; second_size; ++k, second_size >>= 1)
        if (second_size & 1) first = applied(powers[k], first);
    return first ^ second;
}

}  // namespace crc32c
