// connecting: how a stream is connected, to one endpoint or to the first of several that answers.
#pragma once
// A name has several addresses, and some of them may not work: an IPv6 network that leads nowhere
// swallows what is sent for minutes. So they are tried as RFC 8305 ("happy eyeballs") says: the
// families take turns, beginning with that of the first address; the next address is tried when the
// one before has failed, or has not answered for `attempt_delay`, and then beside it; the first
// connection wins, and the other attempts are cancelled and their sockets closed before the
// operation ends. Both families are asked for by one call of getaddrinfo, so section 3 (an answer
// of one family before the other's) does not apply.
//
//   looking up -> trying -> won                  : as soon as the other attempts are gone
//                        \-> failed              : all addresses were tried, none answered
//   a stop, the deadline, or the context's end cancels whatever is under way

#include <coppice/base/internal.hpp>
#include <coppice/io/open_file.hpp>
#include <coppice/io/request.hpp>
#include <coppice/io/resolver.hpp>
#include <coppice/io/stream.hpp>
#include <coppice/stop/inplace.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace coppice::io {

// Opens a socket of the endpoint's family and connects it.
class connect_request : public descriptor_request<> {
public:
    using value_type = void;
    static constexpr const char* name = "connect";
    struct arguments {
        arguments(stream& s, const endpoint& e) noexcept : target(&s), to(e) {}
        stream* target;
        endpoint to;
    };
    explicit connect_request(const arguments& a) noexcept
        : descriptor_request<>(descriptor_reference(a.target->owner()), opcode::connect),
          target_(a.target),
          to_(a.to) {
        peer = to_.data();
        peer_size = to_.size();
    }
    std::string subject() const { return to_.to_string(); }

protected:
    ~connect_request() = default;

private:
    bool submit() noexcept final;

    stream* target_;
    endpoint to_;
};

// How the addresses of a name are tried.
struct connect_options {
    // After so long without an answer the next address is tried as well; 0 or less: all are tried
    // at once; duration::max(): one after the other has failed. RFC 8305, section 5.
    internal::duration attempt_delay = std::chrono::milliseconds(250);
};

namespace internal {

// The order in which the addresses of a name are tried: the families in turns, beginning with that
// of the first; at most connect_race_request::addresses_max. Errors: std::bad_alloc.
std::vector<endpoint> in_turns(std::span<const endpoint> addresses);

}  // namespace internal

// Looks a name up, if it has one, and connects the stream to the first of its addresses that
// answers.
class connect_race_request : public basic_request<operation>, timer_entry {
    using base = basic_request<operation>;

public:
    using value_type = void;
    static constexpr const char* name = "connect";
    static constexpr std::size_t addresses_max = 16;  // of a name that are tried
    struct arguments {
        arguments(stream& s, std::string_view h, std::uint16_t p, const connect_options& o) noexcept
            : target(&s), host(h), port(p), options(o) {}
        arguments(stream& s, std::span<const endpoint> to, const connect_options& o) noexcept
            : target(&s), addresses(to), options(o) {}
        // Asked for by text that names no place: fails at once.
        arguments(stream& s, std::error_code why) noexcept : target(&s), refused(why) {}
        stream* target;
        std::string_view host;  // empty: the addresses are given
        std::uint16_t port = 0;
        std::span<const endpoint> addresses;
        connect_options options;
        std::error_code refused;
    };
    explicit connect_race_request(const arguments& a) noexcept;

    std::error_code error() const noexcept { return failure_ ? failure_ : base::error(); }
    // "name:port", or the addresses.
    std::string subject() const;

protected:
    ~connect_race_request();

private:
    class look_up;
    class attempt;
    bool submit() noexcept final;
    void interrupt() noexcept final;
    void looked_up() noexcept;
    void order(std::span<const endpoint> found) noexcept;
    void try_addresses() noexcept;
    void try_next() noexcept;
    void attempted(attempt& a) noexcept;
    void go_on() noexcept;
    void conclude() noexcept;
    void set_alarm() noexcept;
    void halt() noexcept;
    static void expire(timer_entry* entry) noexcept;

    const arguments asked_;
    std::unique_ptr<look_up> look_up_;                // of a name
    std::vector<endpoint> addresses_;                 // in the order in which they are tried
    std::vector<std::unique_ptr<attempt>> attempts_;  // the addresses that have been tried
    std::size_t pending_ = 0;                         // the look-up or the attempts under way
    // when to try the next address
    internal::time_point next_at_ = internal::time_point::min();
    std::error_code first_failure_;  // of the addresses, the most telling
    std::error_code failure_;        // the operation's
    bool won_ = false;
    bool halted_ = false;  // nothing more is tried
    inplace_stop_source halt_;
};

}  // namespace coppice::io
