// request_initiation: what a completion token starts: a request, in place, and its completion.
#pragma once
// initiate.hpp describes a Request. The path of one: the token calls operator() with where to
// complete; the request begins; and deliver() passes its outcome on, at once or on the loop.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/token/block_latch.hpp>
#include <coppice/token/completion.hpp>

#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coppice::io::internal {

template <class Value>
struct request_results {
    using completion_type = completion<Value>;
    using signature_type = void(std::error_code, Value);
};
template <>
struct request_results<void> {
    using completion_type = completion<>;
    using signature_type = void(std::error_code);
};

// Returns the loop of an operation that has not begun.
template <class Arguments>
auto* loop_of(const Arguments& arguments) noexcept {
    if constexpr (requires { arguments.file.owner; }) {
        return arguments.file.owner;
    } else if constexpr (requires { arguments.target->owner(); }) {
        return &arguments.target->owner();
    } else {
        return arguments.owner;
    }
}

template <class Request>
concept has_subject = requires(const Request& request) { request.subject(); };

// What an operation that has failed reports, for example "read_at /etc/passwd". Holds nothing
// before a failure. If there is no memory for the text, the operation's name alone is reported.
class failure_text {
public:
    failure_text() noexcept = default;
    failure_text(const failure_text&) noexcept {}  // copied only before the operation begins
    template <class Request>
    [[gnu::cold, gnu::noinline]] void note(const Request& request) noexcept {
        try {
            const std::string text = std::string(Request::name) + ' ' + request.subject();
            if (text.back() == ' ') return;
            text_ = std::make_unique<char[]>(text.size() + 1);
            std::memcpy(text_.get(), text.c_str(), text.size() + 1);
        } catch (const std::exception&) {  // no memory
        }
    }
    const char* get_or(const char* name) const noexcept { return text_ ? text_.get() : name; }

private:
    std::unique_ptr<char[]> text_;
};
struct no_failure_text {};

// The attributes of such an operation as a sender: the loop on which it completes, in every way.
// The loop is also the timer that a timeout uses where the environment has none.
template <class Loop>
class loop_attributes {
public:
    explicit loop_attributes(Loop* loop) noexcept : loop_(loop) {}
    template <class Tag>
    auto query(execution::get_completion_scheduler_t<Tag>) const noexcept {
        return loop_->get_scheduler();
    }
    auto query(execution::get_timed_scheduler_t) const noexcept { return loop_->get_scheduler(); }

private:
    Loop* loop_;
};

// Holds the arguments before the call, and afterwards the request, in place, until it has ended.
template <class Request>
class request_initiation {
    using arguments_type = typename Request::arguments;
    using results = request_results<typename Request::value_type>;
    using completion_type = typename results::completion_type;

    static constexpr bool tells = has_subject<Request>;
    using text_type = std::conditional_t<tells, failure_text, no_failure_text>;

    // Where a request with a subject notes its failure.
    struct written_to {
        written_to(text_type& t) noexcept : text(&t) {}
        text_type& get() const noexcept { return *text; }
        text_type* text;
    };
    struct not_written {
        not_written(text_type&) noexcept {}
    };
    using text_reference = std::conditional_t<tells, written_to, not_written>;

    class running final : public Request {
    public:
        running(const arguments_type& of, completion_type done, text_type& text) noexcept
            : Request(of), done_(done), text_(text) {}
        // Called as the last access: destroys *this. The memory that it was in may then be freed.
        void deliver() noexcept {
            completion_type done = done_;
            const std::error_code error = Request::error();
            if (Request::stopped()) {
                done.tell_stopped();
            } else if constexpr (tells) {
                if (error.value() != 0) text_.get().note(*this);
            }
            if constexpr (std::is_void_v<typename Request::value_type>) {
                this->~running();
                std::move(done)(error);
            } else {
                typename Request::value_type value = Request::take();
                this->~running();
                std::move(done)(error, static_cast<typename Request::value_type&&>(value));
            }
        }

        auto& completing_loop() const noexcept { return Request::owner(); }

    private:
        void completed() noexcept override { deliver(); }
        completion_type done_;
        [[no_unique_address]] text_reference text_;
    };

public:
    static constexpr const char* name = Request::name;

    explicit request_initiation(const arguments_type& arguments) noexcept : arguments_(arguments) {}
    request_initiation(const request_initiation& other) noexcept : arguments_(other.arguments_) {}

    void operator()(completion_type done) noexcept {
        const completion_env env = execution::get_env(done);
        running& request = request_.construct(arguments_, done, text_);
        loop_ = &request.completing_loop();
        if (request.begin(env.query(get_stop_token),
                          static_cast<time_point>(env.query(execution::get_deadline)))) {
            request.deliver();
        }
    }

    // For messages: what the operation that failed reports.
    const char* failure() const noexcept
        requires(tells)
    {
        return text_.get_or(name);
    }
    auto get_env() const noexcept { return loop_attributes(loop_of(arguments_)); }

    // Waits for the operation. Runs the loop meanwhile if no other thread does.
    void drive(block_latch& done) noexcept { loop_->drive(done); }

private:
    using loop_type =
        std::remove_reference_t<decltype(std::declval<const running&>().completing_loop())>;

    arguments_type arguments_;
    loop_type* loop_ = nullptr;
    [[no_unique_address]] text_type text_;
    manual_lifetime<running> request_;
};

}  // namespace coppice::io::internal
