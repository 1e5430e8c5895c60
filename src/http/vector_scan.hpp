// The scans of scan.hpp with SSE4.2, AVX2, and AVX-512; parse.cpp chooses one at run time.
#pragma once
// A class of ASCII bytes is two tables of 16 bytes. Row l of the first table has bit h set if the
// byte with low half l and high half h is in the class. Row h of the second table is 1 << h, and 0
// from 8 on, since no byte outside ASCII is in such a class. Two shuffles and an AND classify every
// byte of a vector at once. Field values, which make up most bytes, are classified by comparisons
// instead.
//
// The functions declare their own instruction sets. No other code of the program is compiled for
// these, so no such instruction can run on a machine without them. No function reads beyond the
// end.

#include <coppice/http/internal/scan.hpp>

#if defined(__x86_64__)

#include <immintrin.h>
#include <algorithm>
#include <bit>

namespace coppice::http {

using namespace internal;

struct class_tables {
    alignas(16) std::array<unsigned char, 16> by_low_half{};
    alignas(16) std::array<unsigned char, 16> by_high_half{1, 2, 4, 8, 16, 32, 64, 128};
};
template <byte_class Class>
inline constexpr class_tables tables_of = [] {
    class_tables t;
    for (unsigned byte = 0; byte != 128; ++byte) {
        if (is(static_cast<char>(byte), Class)) {
            t.by_low_half[byte & 15] |= static_cast<unsigned char>(1u << (byte >> 4));
        }
    }
    return t;
}();

// What the SSE4.2 and AVX2 scans share: the names, and the end of a text that is shorter than a
// vector.
template <class Vector>
struct vector_scan {
    static const char* token(const char* p, const char* end) noexcept {
        return Vector::template ascii<token_byte>(p, end);
    }
    static const char* path(const char* p, const char* end) noexcept {
        return Vector::template ascii<path_byte>(p, end);
    }
    static const char* query(const char* p, const char* end) noexcept {
        return Vector::template ascii<query_byte>(p, end);
    }
    static const char* host(const char* p, const char* end) noexcept {
        return Vector::template ascii<host_byte>(p, end);
    }
    static const char* value(const char* p, const char* end) noexcept {
        return Vector::text(p, end);
    }
    static const char* digits(const char* p, const char* end) noexcept {
        return Vector::template rest<digit_byte>(p, end);
    }
    template <byte_class Class>
    static const char* rest(const char* p, const char* end) noexcept {
        while (p != end && is(*p, Class)) ++p;
        return p;
    }
};

struct sse_scan : vector_scan<sse_scan> {
    template <byte_class Class>
    [[gnu::target("sse4.2")]] static const char* ascii(const char* p, const char* end) noexcept {
        const auto* const tables = &tables_of<Class>;
        const __m128i low = load(tables->by_low_half.data());
        const __m128i high = load(tables->by_high_half.data());
        for (; end - p >= 16; p += 16) {
            const __m128i bytes = load(p);
            const __m128i half = _mm_set1_epi8(15);
            const __m128i rows = _mm_shuffle_epi8(low, _mm_and_si128(bytes, half));
            const __m128i bits =
                _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi16(bytes, 4), half));
            const __m128i misses = _mm_cmpeq_epi8(_mm_and_si128(rows, bits), _mm_setzero_si128());
            const auto hits = static_cast<unsigned>(_mm_movemask_epi8(misses));
            if (hits != 0) return p + std::countr_zero(hits);
        }
        return rest<Class>(p, end);
    }
    [[gnu::target("sse4.2")]] static const char* text(const char* p, const char* end) noexcept {
        for (; end - p >= 16; p += 16) {
            const __m128i bytes = load(p);
            const __m128i last_control = _mm_set1_epi8(0x1f);
            const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes);
            const __m128i tab = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
            const __m128i deleted = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));
            const __m128i controls = _mm_or_si128(_mm_andnot_si128(tab, low), deleted);
            const auto hits = static_cast<unsigned>(_mm_movemask_epi8(controls));
            if (hits != 0) return p + std::countr_zero(hits);
        }
        return rest<value_byte>(p, end);
    }

private:
    [[gnu::target("sse4.2")]] static __m128i load(const void* p) noexcept {
        return _mm_loadu_si128(static_cast<const __m128i*>(p));
    }
};

struct avx2_scan : vector_scan<avx2_scan> {
    template <byte_class Class>
    [[gnu::target("avx2")]] static const char* ascii(const char* p, const char* end) noexcept {
        const __m256i low = twice(tables_of<Class>.by_low_half.data());
        const __m256i high = twice(tables_of<Class>.by_high_half.data());
        for (; end - p >= 32; p += 32) {
            const __m256i bytes = load(p);
            const __m256i half = _mm256_set1_epi8(15);
            const __m256i rows = _mm256_shuffle_epi8(low, _mm256_and_si256(bytes, half));
            const __m256i bits =
                _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half));
            const __m256i misses =
                _mm256_cmpeq_epi8(_mm256_and_si256(rows, bits), _mm256_setzero_si256());
            const auto hits = static_cast<unsigned>(_mm256_movemask_epi8(misses));
            if (hits != 0) return p + std::countr_zero(hits);
        }
        return sse_scan::ascii<Class>(p, end);
    }
    [[gnu::target("avx2")]] static const char* text(const char* p, const char* end) noexcept {
        for (; end - p >= 32; p += 32) {
            const __m256i bytes = load(p);
            const __m256i last_control = _mm256_set1_epi8(0x1f);
            const __m256i low = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, last_control), bytes);
            const __m256i tab = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\t'));
            const __m256i deleted = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(0x7f));
            const __m256i controls = _mm256_or_si256(_mm256_andnot_si256(tab, low), deleted);
            const auto hits = static_cast<unsigned>(_mm256_movemask_epi8(controls));
            if (hits != 0) return p + std::countr_zero(hits);
        }
        return sse_scan::text(p, end);
    }

private:
    [[gnu::target("avx2")]] static __m256i load(const char* p) noexcept {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    }
    [[gnu::target("avx2")]] static __m256i twice(const unsigned char* p) noexcept {
        return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
};

// Classifies 64 bytes for all classes at once, and keeps the result for the tokens that follow: the
// end of each is a shift and a count away. A table of 128 bytes is the operand of one instruction
// here (VBMI), and a masked load reads no byte outside its mask.
class avx512_scan {
public:
    const char* token(const char* p, const char* end) noexcept { return find<token_byte>(p, end); }
    const char* path(const char* p, const char* end) noexcept { return find<path_byte>(p, end); }
    const char* query(const char* p, const char* end) noexcept { return find<query_byte>(p, end); }
    const char* host(const char* p, const char* end) noexcept { return find<host_byte>(p, end); }
    const char* value(const char* p, const char* end) noexcept { return find<value_byte>(p, end); }
    const char* digits(const char* p, const char* end) noexcept { return find<digit_byte>(p, end); }

private:
    template <byte_class Class>
    [[gnu::always_inline]] const char* find(const char* p, const char* end) noexcept {
        const auto at = static_cast<std::size_t>(p - block_);
        const std::uint64_t outside = at < 64 ? outside_[index<Class>] >> at : 0;
        if (outside == 0) [[unlikely]]
            return find_further(p, end, index<Class>);
        return std::min(p + std::countr_zero(outside), end);
    }
    // Classifies block after block.
    [[gnu::noinline]] const char* find_further(const char* p, const char* end, int which) noexcept {
        for (; p != end; p = block_ + size_) {
            judge(p, end);
            const std::uint64_t outside = outside_[static_cast<std::size_t>(which)];
            if (outside != 0) return p + std::countr_zero(outside);
        }
        return p;
    }
    [[gnu::target("avx512bw,avx512vbmi")]] void judge(const char* p, const char* end) noexcept {
        block_ = p;
        size_ = std::min<std::size_t>(64, static_cast<std::size_t>(end - p));
        const __mmask64 mask = ~std::uint64_t{0} >> (64 - size_);
        const __m512i bytes = _mm512_maskz_loadu_epi8(mask, p);
        const __m512i low = _mm512_loadu_si512(byte_classes.data());
        const __m512i high = _mm512_loadu_si512(byte_classes.data() + 64);
        const __m512i ascii = _mm512_permutex2var_epi8(low, bytes, high);
        const __m512i beyond = _mm512_set1_epi8(value_byte);
        const __m512i classes = _mm512_mask_mov_epi8(ascii, _mm512_movepi8_mask(bytes), beyond);
        keep<token_byte, path_byte, query_byte, host_byte, value_byte, digit_byte>(mask, classes);
    }
    template <byte_class... Classes>
    [[gnu::target("avx512bw,avx512vbmi")]] void keep(__mmask64 mask,
                                                     const __m512i& classes) noexcept {
        ((outside_[index<Classes>] = _mm512_mask_testn_epi8_mask(
              mask, classes, _mm512_set1_epi8(static_cast<char>(Classes)))),
         ...);
    }
    template <byte_class Class>
    static constexpr int index = std::countr_zero(static_cast<unsigned>(Class));

    const char* block_ = nullptr;             // the block that has been classified
    std::size_t size_ = 0;                    // bytes of that block
    std::array<std::uint64_t, 8> outside_{};  // by class: bit i is set if byte i is not in it
};

}  // namespace coppice::http

#endif
