// http/proxy_header.hpp: an error or an end of a prefix is that of the whole, and what version 1
// says is what its text says.
#include <coppice/http/proxy_header.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "guarded_bytes.hpp"
#include "verify.hpp"

namespace {

using namespace coppice;
using http::parse_status;
using test::verify;
using test::verify_equal;

std::string described(std::string_view bytes, http::proxy_header& header) {
    const http::parse_result r = http::parse_proxy_header(bytes, header);
    if (r.status == parse_status::partial) return "partial";
    if (r.status == parse_status::error) return std::to_string(r.error) + " " + r.reason;
    verify(r.consumed <= bytes.size(), "more consumed than there is");
    verify(r.consumed <= http::proxy_header_bytes_max, "a header beyond the limit");
    return std::to_string(r.consumed) + " " + header.client.to_string() + " " +
           header.server.to_string();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static test::guarded_bytes memory(1 << 16);
    if (size > 60'000) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    http::proxy_header header;
    const std::string whole = described(memory.place_view(bytes), header);
    bool decided = false;
    for (std::size_t n = 0; n < size; n += n < 300 ? 1 : 61) {
        http::proxy_header part;
        const std::string now = described(memory.place_view(bytes.substr(0, n)), part);
        if (decided || now != "partial") verify_equal(now, whole, "a prefix");
        decided = now != "partial";
    }
    if (!bytes.starts_with("PROXY TCP") || whole == "partial" || whole.starts_with("400")) return 0;
    const std::string_view rest = bytes.substr(bytes.find('\r'));
    const auto address = [](const io::endpoint& e) {
        const std::string text = e.to_string();
        return e.is_v6() ? text.substr(1, text.rfind(']') - 1) : text.substr(0, text.rfind(':'));
    };
    const std::string again = std::string("PROXY ") + (header.client.is_v6() ? "TCP6 " : "TCP4 ") +
                              address(header.client) + " " + address(header.server) + " " +
                              std::to_string(header.client.port()) + " " +
                              std::to_string(header.server.port()) + std::string(rest);
    http::proxy_header other;
    const std::string second = described(memory.place_view(again), other);
    verify(other.client == header.client && other.server == header.server, "written again");
    verify(second != "partial", "written again");
    return 0;
}
