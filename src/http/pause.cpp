// The timer of http/pause.hpp.
#include <coppice/exec/just.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/io/context.hpp>

#include <coroutine>
#include <optional>

namespace coppice::http {

namespace {

// On the loop, where stops are requested too. A stop takes the timer away and resumes in the next
// turn, so that nothing of the request ends inside its own stop source.
class pausing : io::timer_entry, io::operation {
public:
    pausing(io::context& loop, inplace_stop_token token, duration time) noexcept
        : timer_entry(&fire), operation(&resume), loop_(loop), token_(token), time_(time) {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine) noexcept {
        stopped_ = loop_.ending() || token_.stop_requested();
        if (stopped_) return false;
        coroutine_ = coroutine;
        const time_point now = loop_.now();
        loop_.arm(*this, time_ < time_point::max() - now ? now + time_ : time_point::max());
        callback_.emplace(token_, on_stop(*this));
        return true;
    }
    // False: the request was stopped.
    bool await_resume() noexcept {
        callback_.reset();
        return !stopped_;
    }

private:
    class on_stop {
    public:
        explicit on_stop(pausing& p) noexcept : pausing_(p) {}
        void operator()() const noexcept {
            if (!pausing_.timer_entry::armed()) return;  // its time has come
            pausing_.loop_.disarm(pausing_);
            pausing_.stopped_ = true;
            pausing_.loop_.defer(pausing_);
        }

    private:
        pausing& pausing_;
    };
    static void fire(io::timer_entry* entry) noexcept {
        pausing* const self = static_cast<pausing*>(entry);
        self->stopped_ = self->loop_.ending();
        self->coroutine_.resume();
    }
    static void resume(io::operation* op) noexcept {
        static_cast<pausing*>(op)->coroutine_.resume();
    }

    io::context& loop_;
    inplace_stop_token token_;
    duration time_;
    bool stopped_ = false;
    std::coroutine_handle<> coroutine_;
    std::optional<inplace_stop_callback<on_stop>> callback_;
};

}  // namespace

task<> pause(const request& r, duration time) {
    io::context& loop = r.loop();
    if (!loop.is_current()) co_await loop.get_scheduler().schedule();
    const bool whole = co_await pausing(loop, r.stop_token(), time);
    if (!whole) co_await execution::just_stopped();
}

}  // namespace coppice::http
