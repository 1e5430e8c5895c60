// resolver: looks up the addresses of a name through the system, on a worker thread of the process.
#pragma once
// The system's resolver (getaddrinfo) blocks, so it runs on a worker for names (workers.hpp): eight
// look-ups can run at once, and others wait. A look-up cannot be interrupted. A stopped request
// ends at once, as does a request whose context is destroyed, and the worker drops the answer when
// it comes. A literal address is answered without a worker. A simulation has its own hosts
// (simulation::plant_host), and answers on the loop.

#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/request.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::io {

// Returns the category of getaddrinfo's errors, such as EAI_NONAME, by their number.
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
    int failure_ = 0;               // the error of getaddrinfo
    question* question_ = nullptr;  // held by a worker, or posted back by it
    std::vector<endpoint> found_;
};

// Looks up names. Threads: any; several look-ups at once are allowed. Lifetime: the context must
// outlive the resolver, and the name must outlive the operation.
class resolver {
public:
    // Makes a resolver whose operations complete on `owner`'s loop.
    explicit resolver(context& owner) noexcept : owner_(&owner) {}

    // Looks up `host`. The value is the host's endpoints with the port, at least one, in the order
    // in which they should be tried.
    // Errors: of resolver_category(); not_enough_memory. Cost: allocates.
    template <class Token = use_await_t>
    auto resolve(std::string_view host, std::uint16_t port,
                 Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<resolve_request>({*owner_, host, port}, static_cast<Token&&>(token));
    }

private:
    context* owner_;
};

}  // namespace coppice::io
