// resolver: the addresses of a name, asked from the system on a worker thread of the process.
#pragma once
// The system's resolver (getaddrinfo) blocks, so it runs on a worker for names (workers.hpp): eight
// names can be under way at once, others wait. It cannot be interrupted: a stopped request ends at
// once, as do those of a context that is destroyed, and the worker drops the answer when it comes.
// Literal addresses are answered without a worker. A simulation has hosts of its own
// (simulation::plant_host), and answers on the loop.

#include <coppice/io/initiate.hpp>
#include <coppice/io/request.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::io {

// The errors of getaddrinfo, EAI_NONAME and its like, by their number.
const std::error_category& resolver_category() noexcept;

class resolve_request : public basic_request<operation>, timer_entry {
    using base = basic_request<operation>;

public:
    using value_type = std::vector<endpoint>;
    static constexpr const char* name = "resolve";
    struct arguments {
        arguments(context& c, std::string_view h, std::uint16_t p) noexcept
            : owner(&c), host(h), port(p) {}
        context* owner;
        std::string_view host;
        std::uint16_t port;
    };
    explicit resolve_request(const arguments& a) noexcept
        : base(*a.owner), timer_entry(&expire), host_(a.host), port_(a.port) {}

    std::error_code error() const noexcept;
    std::string subject() const { return std::string(host_); }
    std::vector<endpoint> take() noexcept { return std::move(found_); }

protected:
    ~resolve_request() { COPPICE_CHECK(question_ == nullptr, "a resolve_request ended early"); }

private:
    struct question;
    class look_ups;
    bool submit() noexcept final;
    void interrupt() noexcept final;
    void answered() noexcept;
    static void expire(timer_entry* entry) noexcept;

    std::string_view host_;
    std::uint16_t port_;
    int failure_ = 0;               // of getaddrinfo
    question* question_ = nullptr;  // with a worker, or on its way back
    std::vector<endpoint> found_;
};

// Threads: any may ask; several questions at once. Lifetime: the context
// outlives it; the name that is asked for outlives the operation.
class resolver {
public:
    // Its operations complete on `owner`'s loop.
    explicit resolver(context& owner) noexcept : owner_(&owner) {}

    // Gives the host's endpoints with the port, in the order in which they should be tried; at
    // least one. Errors: of resolver_category(); not_enough_memory. Cost: allocates.
    template <class Token = use_await_t>
    auto resolve(std::string_view host, std::uint16_t port,
                 Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<resolve_request>({*owner_, host, port}, static_cast<Token&&>(token));
    }

private:
    context* owner_;
};

}  // namespace coppice::io
