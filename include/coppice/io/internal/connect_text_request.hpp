// connect_text_request: connects a new socket to a place that is given as text.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/internal/connecting.hpp>
#include <coppice/io/socket.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace coppice::io::internal {

// A base class, so that the socket is constructed before the request that connects it.
struct connected_socket {
    explicit connected_socket(context& owner) noexcept : made(owner) {}
    tcp::socket made;
};

// Parses the text, looks the name up, and connects to the first address that answers. The value is
// the socket.
class connect_text_request : connected_socket, public connect_race_request {
public:
    using value_type = tcp::socket;
    static constexpr const char* name = "connect";
    struct arguments {
        arguments(context& c, std::string_view t, duration d) noexcept
            : owner(&c), to(t), attempt_delay(d) {}
        context* owner;
        std::string_view to;
        duration attempt_delay;
    };
    explicit connect_text_request(const arguments& a) noexcept
        : connected_socket(*a.owner), connect_race_request(parsed(made, a)), text_(a.to) {}
    std::string subject() const;
    tcp::socket take() noexcept { return std::move(made); }

protected:
    ~connect_text_request() = default;

private:
    static connect_race_request::arguments parsed(tcp::socket& target, const arguments& a) noexcept;

    const std::string_view text_;
};

}  // namespace coppice::io::internal
