// connecting: connects a stream to one endpoint, or to the first of several that answers.
#pragma once
// connect_options in socket.hpp says how the addresses of a name are tried.
//
//   looking up -> trying -> won                  : completes when the other attempts have ended
//                        \-> failed              : every address was tried, and none answered
//   a stop, the deadline, or the context's end cancels whatever is under way

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/io/internal/request.hpp>
#include <coppice/io/internal/resolve_request.hpp>
#include <coppice/io/open_file.hpp>
#include <coppice/io/stream.hpp>
#include <coppice/stop/inplace.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace coppice::io::internal {

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

// Returns the addresses in the order in which they are tried: the families alternate, beginning
// with the family of the first address. Returns at most connect_race_request::addresses_max.
// Errors: std::bad_alloc.
std::vector<endpoint> in_turns(std::span<const endpoint> addresses);

// Resolves the name, if one is given, and connects the stream to the first address that answers.
class connect_race_request : public basic_request<operation>, timer_entry {
    using base = basic_request<operation>;

public:
    using value_type = void;
    static constexpr const char* name = "connect";
    static constexpr std::size_t addresses_max = 16;  // addresses tried for one name
    struct arguments {
        arguments(stream& s, std::string_view h, std::uint16_t p, duration d) noexcept
            : target(&s), host(h), port(p), attempt_delay(d) {}
        arguments(stream& s, std::span<const endpoint> to, duration d) noexcept
            : target(&s), addresses(to), attempt_delay(d) {}
        // For text that does not parse as a place: the request fails at once with `why`.
        arguments(stream& s, std::error_code why) noexcept : target(&s), refused(why) {}
        stream* target;
        std::string_view host;  // empty: `addresses` are given instead
        std::uint16_t port = 0;
        std::span<const endpoint> addresses;
        duration attempt_delay{};  // see connect_options
        std::error_code refused;
    };
    explicit connect_race_request(const arguments& a) noexcept;

    std::error_code error() const noexcept { return failure_ ? failure_ : base::error(); }
    // Returns "name:port", or the addresses.
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
    std::unique_ptr<look_up> look_up_;                // only if a name is given
    std::vector<endpoint> addresses_;                 // in the order in which they are tried
    std::vector<std::unique_ptr<attempt>> attempts_;  // one for each address tried so far
    // operations under way: the look-up, or attempts
    std::size_t pending_ = 0;
    // when to try the next address
    time_point next_at_ = time_point::min();
    std::error_code first_failure_;  // the most telling failure of an address so far
    // the error of the whole operation, if it has failed for a reason of its own
    std::error_code failure_;
    bool won_ = false;
    bool halted_ = false;  // once set, nothing further is started
    inplace_stop_source halt_;
};

}  // namespace coppice::io::internal
