// A sender of your own: a C interface with a callback becomes an asynchronous operation that
// composes with all others, can be stopped, and allocates nothing.
#include <coppice/execution.hpp>

#include <cstdio>
#include <optional>
#include <system_error>

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

// ---- The driver, on one thread: start a reading and be called back, or cancel it. ---------------

struct reading {
    void (*done)(reading* self, int status, int value);
};
struct sensor {
    reading* pending = nullptr;
};
void sensor_start(sensor& s, reading& r) {
    s.pending = &r;
}
void sensor_cancel(sensor& s, reading& r) {
    if (s.pending != &r) return;
    s.pending = nullptr;
    r.done(&r, ECANCELED, 0);
}
void sensor_interrupt(sensor& s, int status, int value) {
    if (reading* r = std::exchange(s.pending, nullptr)) r->done(r, status, value);
}

// ---- The sender. --------------------------------------------------------------------------------

// The operation is the driver's object, so it must stay where it is: it is not movable.
template <class Rcvr>
class read_operation : reading {
public:
    using operation_state_concept = ex::operation_state_tag;

    read_operation(sensor& s, Rcvr rcvr) noexcept
        : reading{&finished}, sensor_(s), rcvr_(std::move(rcvr)) {}
    read_operation(read_operation&&) = delete;

    // [start]
    void start() & noexcept {
        // Registers before there is something to cancel. If a stop was requested already, cancel
        // runs inside emplace(), where the operation must not complete.
        on_stop_.emplace(coppice::get_stop_token(ex::get_env(rcvr_)), cancel{this});
        if (stopped_) {
            on_stop_.reset();
            ex::set_stopped(std::move(rcvr_));
        } else {
            sensor_start(sensor_, *this);
        }
    }
    // [/start]

private:
    struct cancel {
        read_operation* self;
        void operator()() noexcept {
            self->stopped_ = true;
            sensor_cancel(self->sensor_, *self);  // if it was started, *self may be gone now
        }
    };
    // [finished]
    static void finished(reading* r, int status, int value) {
        auto& self = *static_cast<read_operation*>(r);
        self.on_stop_.reset();  // before the completion, after which *this may be gone
        if (status == ECANCELED) {
            ex::set_stopped(std::move(self.rcvr_));
        } else if (status != 0) {
            ex::set_error(std::move(self.rcvr_), std::error_code(status, std::generic_category()));
        } else {
            ex::set_value(std::move(self.rcvr_), int(value));
        }
    }
    // [/finished]

    using stop_token = coppice::stop_token_of_t<ex::env_of_t<Rcvr>>;
    sensor& sensor_;
    Rcvr rcvr_;
    bool stopped_ = false;
    std::optional<coppice::stop_callback_for_t<stop_token, cancel>> on_stop_;
};

// Describes the work. Connecting it to a receiver makes the operation.
// [sender]
class read_sender {
public:
    using sender_concept = ex::sender_tag;

    explicit read_sender(sensor& s) noexcept : sensor_(&s) {}

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() {
        return ex::completion_signatures<ex::set_value_t(int), ex::set_error_t(std::error_code),
                                         ex::set_stopped_t()>();
    }
    template <ex::receiver Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return read_operation<Rcvr>(*sensor_, std::move(rcvr));
    }

private:
    sensor* sensor_;
};
// [/sender]
read_sender read(sensor& s) {
    return read_sender(s);
}

// ---- In use, with the library's algorithms. -----------------------------------------------------

// Stands for the hardware: interrupts as soon as it runs.
auto interrupt(sensor& s, int status, int value) {
    return ex::just() | ex::then([&s, status, value] { sensor_interrupt(s, status, value); });
}

int main() {
    sensor left, right;

    auto sum =
        ex::when_all(read(left), read(right), interrupt(left, 0, 20), interrupt(right, 0, 22)) |
        ex::then([](int a, int b) { return a + b; });
    std::printf("sum: %d\n", std::get<0>(*sync_wait(std::move(sum))));

    try {
        sync_wait(ex::when_all(read(left), interrupt(left, EIO, 0)));
    } catch (const std::system_error& error) {
        std::printf("error: %s\n", error.code() == std::errc::io_error ? "I/O" : "another");
    }

    // Stopped before it starts.
    coppice::inplace_stop_source source;
    source.request_stop();
    auto late = read(left) | ex::write_env(ex::prop(coppice::get_stop_token, source.get_token()));
    std::printf("late: %s\n", sync_wait(std::move(late)) ? "a value" : "stopped");

    // The first reading decides. when_any stops the other and waits until it has ended.
    auto first = ex::when_all(ex::when_any(read(left), read(right)), interrupt(right, 0, 7));
    std::printf("first: %d, left is %s\n", std::get<0>(*sync_wait(std::move(first))),
                left.pending == nullptr ? "idle" : "busy");
}
