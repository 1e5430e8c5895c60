// resolve_request: one look-up of a resolver.
#pragma once

#include <coppice/base/internal/check.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/internal/request.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace coppice::io::internal {

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

}  // namespace coppice::io::internal
