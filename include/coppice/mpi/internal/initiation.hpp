// initiation: what a completion token starts: a request, in place, and its completion.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/mpi/internal/request.hpp>
#include <coppice/token/completion.hpp>
#include <coppice/token/transform.hpp>

#include <system_error>
#include <type_traits>
#include <utility>

namespace coppice::mpi::internal {

template <class Value>
struct results_of {
    using completion_type = completion<Value>;
    using signature_type = void(std::error_code, Value);
};
template <>
struct results_of<void> {
    using completion_type = completion<>;
    using signature_type = void(std::error_code);
};

struct cancelable_initiation {};
// An operation that nothing ends but MPI; its sender has no set_stopped.
struct unstoppable_initiation {
    using never_stops = void;
};

// A Request has `arguments`, `value_type`, `name`, `can_cancel`, and take().
template <class Request>
class initiation : public std::conditional_t<Request::can_cancel, cancelable_initiation,
                                             unstoppable_initiation> {
    using arguments_type = typename Request::arguments;
    using value_type = typename Request::value_type;
    using completion_type = typename results_of<value_type>::completion_type;

    class running final : public Request {
    public:
        running(arguments_type& of, completion_type done) noexcept : Request(of), done_(done) {}
        // Called as the last access: destroys *this.
        void deliver() noexcept {
            completion_type done = done_;
            const std::error_code error = Request::error();
            if (Request::stopped()) done.tell_stopped();
            if constexpr (std::is_void_v<value_type>) {
                this->~running();
                std::move(done)(error);
            } else {
                const value_type value = Request::take();
                this->~running();
                std::move(done)(error, value);
            }
        }

    private:
        void completed() noexcept override { deliver(); }
        completion_type done_;
    };

public:
    static constexpr const char* name = Request::name;

    explicit initiation(const arguments_type& arguments) noexcept : arguments_(arguments) {}
    initiation(const initiation& other) noexcept : arguments_(other.arguments_) {}

    void operator()(completion_type done) noexcept {
        const completion_env env = execution::get_env(done);
        running& request = request_.construct(arguments_, done);
        if (request.begin(env.query(get_stop_token),
                          static_cast<time_point>(env.query(execution::get_deadline))))
            request.deliver();
    }
    // Called by a thread that blocks.
    void drive(block_latch& done) noexcept { arguments_.owner->drive(done); }

private:
    arguments_type arguments_;
    manual_lifetime<running> request_;
};

template <class Request, class Token>
auto initiate(const typename Request::arguments& arguments, Token&& token) {
    using signature_type = typename results_of<typename Request::value_type>::signature_type;
    return completion_token_transform<signature_type>(static_cast<Token&&>(token),
                                                      initiation<Request>(arguments));
}

}  // namespace coppice::mpi::internal
