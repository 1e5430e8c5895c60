// The loop of io/run.hpp.
#include <coppice/io/run.hpp>

#include <coppice/base/internal/check.hpp>
#include <coppice/io/simulation.hpp>

#include <span>

namespace coppice::io {

using namespace internal;

namespace {

context make_loop(const run_options& options) {
    COPPICE_CHECK(context::current() == nullptr,
                  "io::run() was called on a thread that runs a loop already: await the work there "
                  "(co_await, spawn), or call io::run() on a thread of its own");
    if (options.simulation != nullptr) return context(*options.simulation);
    return context(options.backend);
}

}  // namespace

run_state::run_state(const run_options& options)
    : loop_(make_loop(options)), timers_(loop_.get_scheduler()), end_(*this) {
    if (!options.stop_on.empty()) signals_.emplace(loop_, std::span(options.stop_on));
}

void run_state::run(operation& start) {
    if (signals_) {
        signals_->wait([this](std::error_code error, int) noexcept {
            if (error) return;  // the set was closed, or cannot be waited for
            signals_->close();  // before the stop, whose callbacks may take long
            stop_.request_stop();
        });
    }
    guard_.emplace(loop_);
    loop_.defer(start);
    loop_.run();
    if (ended_.is_set()) return;
    stop_.request_stop();  // context::stop() was called
    loop_.drive(ended_);
}

void run_state::end_work() noexcept {
    if (loop_.is_current()) {
        end_on_loop();
    } else {
        loop_.post(end_);
    }
}

// The last access is to the latch: after it, run() may return.
void run_state::end_on_loop() noexcept {
    if (signals_) signals_->close();
    guard_.reset();
    ended_.set();
}

}  // namespace coppice::io
