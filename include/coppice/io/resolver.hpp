// resolver: looks up the addresses of a name through the system, on a worker thread of the process.
#pragma once
// The system's resolver (getaddrinfo) blocks, so it runs on a worker for names
// (internal/workers.hpp): eight look-ups can run at once, and others wait. A look-up cannot be
// interrupted. A stopped request ends at once, as does a request whose context is destroyed, and
// the worker drops the answer when it comes. A literal address is answered without a worker. A
// simulation has its own hosts (simulation::plant_host), and answers on the loop.

#include <coppice/io/context.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/resolve_request.hpp>

#include <cstdint>
#include <string_view>
#include <system_error>

namespace coppice::io {

// Returns the category of getaddrinfo's errors, such as EAI_NONAME, by their number.
const std::error_category& resolver_category() noexcept;

// Looks up names. Threads: any; several look-ups at once are allowed. Lifetime: the context must
// outlive the resolver, and the name must outlive the operation.
class resolver {
public:
    // Makes a resolver whose operations complete on `owner`'s loop.
    explicit resolver(context& owner) noexcept : owner_(&owner) {}

    // Looks up `host`. The value is the host's endpoints with the port, at least one, in the order
    // in which they should be tried.
    // Errors: of resolver_category(); not_enough_memory; resource_unavailable_try_again if no
    // worker can be started. Cost: allocates.
    template <class Token = use_await_t>
    auto resolve(std::string_view host, std::uint16_t port,
                 Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::resolve_request>({*owner_, host, port},
                                                   static_cast<Token&&>(token));
    }

private:
    context* owner_;
};

}  // namespace coppice::io
