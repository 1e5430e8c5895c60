// The stop that reaches all processes of a communicator.
#include <coppice/mpi/stop_source.hpp>

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/token/use_await.hpp>

#include <array>
#include <system_error>
#include <utility>

namespace coppice::mpi {

namespace {

void throw_unless_failed(std::error_code error) {
    if (error && error != errc::process_failed) throw std::system_error(error, "mpi::stop_source");
}

}  // namespace

stop_source::stop_source(const communicator& over) : own_(over.duplicate()) {
    service_.start(own_, scope_.get_token());
}

stop_source::~stop_source() {
    COPPICE_CHECK(!internal::communicator_access::owner(own_).is_current(),
                  "mpi::stop_source ends on the environment's thread: end it on another one");
    interrupt_.request_stop();
    this_thread::sync_wait(scope_.join());
}

bool stop_source::request_stop() noexcept {
    if (stop_requested()) return false;
    asked_.store(true, internal::relaxed);  // the post to the environment's thread publishes it
    interrupt_.request_stop();
    return source_.request_stop();
}

// Continues on the environment's thread, since its environment names no scheduler. Goes on
// listening while it sends: a send may wait for its receive. What a stop needs is allocated before.
task<> stop_source::serve(task<> until_interrupted, task<> tells, task<> until_all_heard) {
    co_await std::move(until_interrupted);
    co_await execution::when_all(std::move(tells), std::move(until_all_heard));
}

task<> stop_source::listen(inplace_stop_token end) {
    while (heard_ != expected_) {
        std::array<int, 1> got;
        std::error_code error;
        co_await (receive(own_, got, {any_source}, use_await[error]) |
                  execution::write_env(execution::prop(get_stop_token, end)));
        if (error == std::errc::operation_canceled) co_return;
        source_.request_stop();
        throw_unless_failed(error);
        if (error) co_return;
        ++heard_;
    }
}

task<> stop_source::tell_and_agree() {
    // relaxed: see request_stop()
    std::array<int, 1> tellers{asked_.load(internal::relaxed) ? 1 : 0};
    const std::array<int, 1> request{1};
    const int told = tellers[0];
    std::error_code error;
    for (int rank = 0; rank != own_.size() && told != 0 && !error; ++rank)
        if (rank != own_.rank()) co_await send(own_, request, {rank}, use_await[error]);
    if (!error) co_await all_reduce(own_, tellers, tellers, reduction::sum, use_await[error]);
    expected_ = tellers[0] - told;
    if (error || heard_ == expected_) all_heard_.request_stop();
    throw_unless_failed(error);
}

}  // namespace coppice::mpi
