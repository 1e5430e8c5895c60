// request_marks: the id of a request and its place in a trace, made when they are asked for first.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/request.hpp>
#include <coppice/http/trace_context.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

namespace coppice::http {

using namespace internal;

struct exchange;

// Numbers that no two requests of a server share. Threads: any.
class mark_source : immovable {
public:
    // `repeatable`: the numbers are the same in each run, as a simulation needs them. Otherwise no
    // two servers share them either.
    explicit mark_source(bool repeatable) noexcept;

    template <std::size_t Words>
    void fill(std::array<unsigned char, 8 * Words>& bytes) noexcept {
        for (std::size_t i = 0; i != Words; ++i) put(next(), bytes.data() + 8 * i);
    }

private:
    std::uint64_t next() noexcept;
    static void put(std::uint64_t word, unsigned char* to) noexcept;

    std::uint64_t key_ = 0;
    atomic<std::uint64_t> count_{0};  // nothing depends on its order
};

// What tells one request from others. Threads: any, until forget().
class request_marks {
public:
    static constexpr std::size_t id_bytes_max = 128;

    explicit request_marks(exchange& of) noexcept : of_(of) {}
    // Returns the id. `head`: the request's, or nullptr for bytes that are no request. Lifetime:
    // the result is valid until forget().
    std::string_view id(const request_head* head) noexcept;
    // Returns the request's own span.
    trace_context trace(const request_head* head) noexcept;
    // Returns the client's span, if it has sent one.
    std::optional<trace_context> parent(const request_head* head) noexcept;
    // Called when the request is answered: the next one has others.
    void forget() noexcept { made_ = false; }

private:
    void make(const request_head* head) noexcept;
    bool take_id(const request_head& head) noexcept;

    exchange& of_;
    std::mutex mutex_;  // guards what follows
    bool made_ = false;
    bool has_parent_ = false;
    std::size_t id_bytes_ = 0;
    std::array<char, id_bytes_max> id_;
    trace_context trace_;
    trace_context parent_;
};

}  // namespace coppice::http
