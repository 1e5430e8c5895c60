// Connecting and listening by text, for io/tcp.hpp.
#include <coppice/io/tcp.hpp>

#include <cstddef>
#include <system_error>

namespace coppice::io {

using namespace internal;

namespace {

constexpr std::size_t told_max = 300;  // bytes of the text that a message shows

// Shows bytes other than printable ASCII as '?', so that they cannot confuse a terminal or a log.
std::string shown(std::string_view text) {
    std::string out(text.substr(0, told_max));
    for (char& c : out) {
        if (c < ' ' || c > '~') c = '?';
    }
    return text.size() > told_max ? out + "..." : out;
}

}  // namespace

namespace internal {

connect_race_request::arguments connect_text_request::parsed(tcp::socket& target,
                                                             const arguments& a) noexcept {
    const result<authority> where = authority::parse(a.to);
    if (!where) return {target, where.error()};
    return {target, where.value().host, where.value().port, a.attempt_delay};
}

std::string connect_text_request::subject() const {
    return shown(text_);
}

}  // namespace internal

namespace tcp {

acceptor listen(context& loop, std::string_view at, const acceptor_options& options) {
    const result<endpoint> parsed = endpoint::parse(at);
    if (!parsed || parsed.value().is_unix()) {
        throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                                "listen " + shown(at));
    }
    return acceptor(loop, parsed.value(), options);
}

}  // namespace tcp

}  // namespace coppice::io
