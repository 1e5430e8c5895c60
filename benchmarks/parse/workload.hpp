// Request heads of two sizes, and what each rival must parse from them.
#pragma once
// A rival parses a head so that method, target, and every field's name and value can be read
// afterwards. It stores them as it likes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bench_parse {

struct workload {
    const char* name;
    std::string_view bytes;
};

inline constexpr std::array<workload, 2> workloads = {{
    {"parse_40", "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"},
    {"parse_700",
     "GET /catalogue/items/4711?colour=green&size=large&page=3 HTTP/1.1\r\n"
     "Host: shop.example.com\r\n"
     "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
     "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8\r\n"
     "Accept-Language: en-GB,en;q=0.7,de;q=0.3\r\n"
     "Accept-Encoding: gzip, deflate, br\r\n"
     "Referer: https://shop.example.com/catalogue/items?colour=green&size=large\r\n"
     "Cookie: session=8f14e45fceea167a5a36dedd4bea2543; basket=c4ca4238a0b923820dcc509a6f75849b; "
     "theme=dark; seen_banner=1; consent=necessary\r\n"
     "Connection: keep-alive\r\n"
     "Upgrade-Insecure-Requests: 1\r\n"
     "Sec-Fetch-Dest: document\r\n"
     "Sec-Fetch-Mode: navigate\r\n"
     "Cache-Control: no-cache\r\n"
     "Pragma: no-cache\r\n"
     "\r\n"},
}};

// FNV-1a over the parts of a head, each closed by a zero byte.
class digest {
public:
    digest& operator<<(std::string_view part) noexcept {
        for (const char c : part) mix(static_cast<unsigned char>(c));
        mix(0);
        return *this;
    }
    std::uint64_t value() const noexcept { return value_; }

private:
    void mix(unsigned char byte) noexcept { value_ = (value_ ^ byte) * 0x100000001b3; }
    std::uint64_t value_ = 0xcbf29ce484222325;
};

struct rival {
    const char* name;
    // Returns the digest of method, target, and fields in order, or 0 if it rejects the head.
    std::uint64_t (*read)(std::string_view bytes);
    // Parses the same bytes `times` times. Returns a sum that depends on every result.
    std::size_t (*run)(std::string_view bytes, std::size_t times);
};

extern const rival coppice;
// coppice with one instruction set, or with the best available one if the processor lacks it.
extern const rival coppice_scalar, coppice_sse, coppice_avx2, coppice_avx512;
#ifdef BENCH_WITH_BEAST
extern const rival beast;
#endif
#ifdef BENCH_WITH_HTTP_PARSER
extern const rival http_parser;
#endif

// Makes the compiler believe that the bytes may have changed.
inline std::string_view reread(std::string_view bytes) noexcept {
    const char* data = bytes.data();
    asm volatile("" : "+r"(data) : : "memory");
    return {data, bytes.size()};
}

}  // namespace bench_parse
