// The ways to make and to run a loop, for io/context.hpp.
#include <coppice/io/context.hpp>

#include <coppice/base/saturating.hpp>
#include <coppice/io/simulation.hpp>

#include <algorithm>
#include <memory>

namespace coppice::io {

using namespace internal;

namespace {

// Treats a limit in the past as now, so that the time left is never negative.
time_point limit_after(time_point now, duration time) noexcept {
    return saturating_add(now, std::max(time, duration::zero()));
}

}  // namespace

context::context(backend kind)
    : event_loop(kind == backend::sim ? std::make_unique<simulation>(1) : nullptr, nullptr,
                 kernel_uring(), kind) {}

context::context(uring_calls& calls, backend kind) : event_loop(nullptr, nullptr, calls, kind) {}

context::context(simulation& world) : event_loop(nullptr, &world, kernel_uring(), backend::sim) {}

context::~context() {
    end();
}

void context::run() {
    run_until(time_point::max(), until_idle::with_guards);
}

bool context::run_for(duration time) {
    return run_until(limit_after(now(), time), until_idle::with_guards);
}

bool context::drain(duration limit) {
    const bool late = run_until(limit_after(now(), limit), until_idle::alone);
    if (late) end_pending();
    return !late;
}

}  // namespace coppice::io
