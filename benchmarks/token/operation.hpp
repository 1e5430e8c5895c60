// The stand-in's operation as an operation of coppice, for any token, and a coroutine to await it.
#pragma once

#include "system.hpp"

#include <coppice/token.hpp>

#include <coroutine>
#include <exception>

namespace bench_token {

// Holds what the system needs while the operation runs. Before that, a copy copies only the
// argument: copying just-cleared fields as one block stalls the processor (13 ns here).
class xyz_initiation : public os_context {
public:
    explicit xyz_initiation(int p) noexcept { parameter = p; }
    xyz_initiation(const xyz_initiation& other) noexcept : os_context() {
        parameter = other.parameter;
    }
    void operator()(coppice::completion<int> done) noexcept {
        done_ = done;
        callback = [](int result, os_context* context) {
            std::move(static_cast<xyz_initiation*>(context)->done_)(coppice::no_error, result);
        };
        os_xyz(parameter, this);
    }
    // For block: the calling thread runs the system.
    void drive(coppice::block_latch& done) noexcept {
        while (!done.is_set()) os_run_one();
    }

private:
    coppice::completion<int> done_;
};

// Declares that the system never calls back while it is being called.
class xyz_later_initiation : public xyz_initiation {
public:
    static constexpr bool completes_inside = false;
    using xyz_initiation::xyz_initiation;
};

// The same operation, for waiters whose type the compiler knows.
class xyz_direct_initiation : public os_context {
public:
    static constexpr bool completes_inside = false;
    explicit xyz_direct_initiation(int p) noexcept { parameter = p; }
    xyz_direct_initiation(const xyz_direct_initiation& other) noexcept : os_context() {
        parameter = other.parameter;
    }
    template <class Completion>
    void operator()(Completion) noexcept {
        callback = [](int result, os_context* context) {
            Completion::of (*static_cast<xyz_direct_initiation*>(context))(coppice::no_error,
                                                                           result);
        };
        os_xyz(parameter, this);
    }
    // For block: the calling thread runs the system.
    void drive(coppice::block_latch& done) noexcept {
        while (!done.is_set()) os_run_one();
    }
};

template <class Initiation = xyz_direct_initiation, class Token = coppice::use_await_t>
auto async_xyz(int parameter, Token&& token = {}) {
    return coppice::completion_token_transform<void(std::error_code, int)>(
        static_cast<Token&&>(token), Initiation(parameter));
}

template <class Token = coppice::use_await_t>
auto at_once(int parameter, Token&& token = {}) {
    return coppice::completion_token_transform<void(std::error_code, int)>(
        static_cast<Token&&>(token), [parameter](coppice::completion<int> done) noexcept {
            std::move(done)(coppice::no_error, parameter);
        });
}

// A coroutine that starts at once and destroys its frame at its end.
struct detached {
    struct promise_type {
        detached get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};

}  // namespace bench_token
