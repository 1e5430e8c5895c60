// A simulated operating system for tests of tokens: takes operations, and completes them when told.
#pragma once

#include <coppice/base/intrusive.hpp>
#include <coppice/token.hpp>

#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

namespace coppice::test {

using namespace coppice::internal;

// What the system needs while an operation runs. Completes through a function pointer.
struct system_context {
    void (*function)(int result, system_context*) = nullptr;
    int parameter = 0;
    system_context* next = nullptr;
};

// Threads: one. Completes operations in order.
class system {
public:
    void start(system_context& context) {
        queue_.push_back(&context);
        ++pending_;
    }
    bool run_one() {
        system_context* const context = queue_.pop_front();
        if (context == nullptr) return false;
        --pending_;
        context->function(context->parameter, context);
        return true;
    }
    void run() {
        while (run_one()) {
        }
    }
    int pending() const { return pending_; }

    // A user's operation: returns its parameter; a negative one is an errno. The initiation holds
    // what the system needs, so nothing is allocated.
    class initiation : system_context {
    public:
        initiation(system& s, int value) noexcept : system_(&s) { parameter = value; }
        void operator()(completion<int> done) noexcept {
            done_ = done;
            function = [](int result, system_context* context) {
                completion<int> c = static_cast<initiation*>(context)->done_;
                const int error = result < 0 ? -result : 0;
                std::move(c)(std::error_code(error, std::system_category()), result);
            };
            system_->start(*this);
        }

    private:
        system* system_;
        completion<int> done_;
    };
    template <class Token = use_await_t>
    auto echo(int parameter, Token&& token = {}) {
        return completion_token_transform<void(std::error_code, int)>(std::forward<Token>(token),
                                                                      initiation(*this, parameter));
    }

private:
    intrusive_queue<system_context, &system_context::next> queue_;
    int pending_ = 0;
};

// Completes inside its initiation.
template <class Token = use_await_t>
auto at_once(int value, Token&& token = {}) {
    return completion_token_transform<void(std::error_code, int)>(
        std::forward<Token>(token),
        [value](completion<int> done) noexcept { std::move(done)(std::error_code(), value); });
}

// Completes on a thread of its own.
template <class Token = use_await_t>
auto elsewhere(int value, Token&& token = {}) {
    return completion_token_transform<void(std::error_code, int)>(
        std::forward<Token>(token), [value](completion<int> done) noexcept {
            std::thread([value, done]() mutable {
                std::move(done)(std::error_code(), value);
            }).detach();
        });
}

// Fails later.
template <class Token = use_await_t>
auto failing(Token&& token = {}) {
    return completion_token_transform<void(std::error_code)>(
        std::forward<Token>(token), [](completion<> done) noexcept {
            std::thread([done]() mutable {
                std::move(done)(std::make_error_code(std::errc::io_error));
            }).detach();
        });
}

// Ends only when it is told to stop, with operation_canceled.
class until_stopped_initiation {
public:
    until_stopped_initiation() noexcept = default;
    until_stopped_initiation(const until_stopped_initiation&) noexcept {}
    void operator()(completion<> done) noexcept {
        done_ = done;
        registration_.engage(get_stop_token(execution::get_env(done)), on_stop(*this));
    }

private:
    class on_stop {
    public:
        explicit on_stop(until_stopped_initiation& i) noexcept : initiation_(&i) {}
        void operator()() noexcept {
            completion<> done = initiation_->done_;
            std::move(done)(std::make_error_code(std::errc::operation_canceled));
        }

    private:
        until_stopped_initiation* initiation_;
    };
    completion<> done_;
    execution::internal::stop_registration<inplace_stop_token, on_stop> registration_;
};
template <class Token = use_await_t>
auto until_stopped(Token&& token = {}) {
    return completion_token_transform<void(std::error_code)>(std::forward<Token>(token),
                                                             until_stopped_initiation());
}

}  // namespace coppice::test
