// The course of a client's request, and what ends it early.
#include <coppice/base/saturating.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/http/internal/client_call.hpp>
#include <coppice/io/option.hpp>

#include <algorithm>
#include <exception>
#include <utility>

#include "client_connection.hpp"
#include "client_origins.hpp"
#include "idempotent.hpp"
#include "until_stopped.hpp"

namespace coppice::http::internal {

client_call::client_call(client_core& owner, const client_request& r, bodies how) noexcept
    : timer_entry(&expired), client_(owner), loop_(owner.loop), request_(r), how_(how) {}

client_call::~client_call() {
    unlimit();
    if (how_ == bodies::by_pieces) interrupt();
    let_go();
}

task<bool> client_call::perform() {
    const duration total = request_.total.value_or(client_.options.total);
    if (total < duration(0)) {
        fail(std::make_error_code(std::errc::invalid_argument),
             "http request: the total time is negative");
    }
    return total == duration::max() ? perform_until_stopped() : perform_in_time(total);
}

// The timeout stops the waits, the source, and the sink. It uses the loop's timer, since the
// awaiter may have none.
task<bool> client_call::perform_in_time(duration total) {
    end_ = saturating_add(loop_.now(), total);
    const inplace_stop_token outer = co_await execution::read_env(get_stop_token);
    const scope_exit forget([&] { outer_ = outer; });  // the timeout's own token is gone
    try {
        const std::optional<bool> answered =
            co_await (execution::timeout(perform_until_stopped(), total) |
                      execution::write_env(
                          execution::prop(execution::get_timed_scheduler, loop_.get_scheduler())) |
                      execution::stopped_as_optional());
        co_return answered.value_or(false);  // nothing: stopped before it began
    } catch (const std::system_error& error) {
        if (error.code() != std::errc::timed_out || loop_.now() < end_) throw;
    }
    fail(std::make_error_code(std::errc::timed_out), "http request: the total time has passed");
}

task<bool> client_call::perform_until_stopped() {
    outer_ = co_await execution::read_env(get_stop_token);
    deadline_ = co_await execution::read_env(execution::get_deadline);
    std::optional<bool> answered;
    try {
        answered = co_await result_on_loop({{outer_, loop_}, deadline_}, request());
    } catch (...) {
        interrupt();
        throw;
    }
    if (!answered) interrupt();
    co_return answered.has_value();
}

task<bool> client_call::request() {
    aim();
    for (;;) {
        write_request();
        std::exception_ptr error;
        lost_ = false;
        try {
            co_await ask();
        } catch (const std::system_error&) {
            if (!lost_ || !may_repeat()) throw;
            error = std::current_exception();
            outcome_ = outcome::failed;
            asked_delay_ = duration(0);
        }
        if (error) {
            unlimit();
            late_ = false;
            let_go();
        }
        if (outcome_ == outcome::answered) break;
        if (outcome_ == outcome::redirected) {
            follow();
            continue;
        }
        const duration delay = std::max(next_delay(), asked_delay_);
        if (error && !before_deadline(delay)) std::rethrow_exception(error);
        --retries_left_;
        co_await pause(delay);
    }
    if (route_ != nullptr) answer_.url_ = route_->url.to_string();
    co_return true;
}

// Sends the request once, and once more if a kept connection turns out to be closed; and once more
// if the server says that it has not acted on it.
task<> client_call::ask() {
    const bool repeatable = without_body_ || request_.source == nullptr;
    bool again = idempotent(method_) && repeatable;
    bool refusable = repeatable;
    // If one kept connection was closed, the others may be closed, too.
    client_core::connections which = client_core::connections::kept_or_new;
    while (!stopped_) {
        // The closed connection is destroyed first, since the host's limit counts its place.
        connection_ = nullptr;
        unlimit();  // the wait for a place or a stream has no limit of its own
        if (multiplexes()) co_await join();
        if (connection_ == nullptr && client_.hosts != nullptr && host_ == nullptr) {
            co_await admit();
            if (stopped_) break;
        }
        if (connection_ == nullptr) connection_ = client_.take(target(), which);
        const bool kept = !connection_->fresh;
        if (kept && deciding_ != nullptr) std::exchange(deciding_, nullptr)->speak_http1();
        const bool answered = co_await attempt(kept && again, refusable);
        if (answered) co_return;
        if (connection_->stream != nullptr && connection_->stream->is_unprocessed()) {
            refusable = false;
            continue;
        }
        again = false;
        which = client_core::connections::new_only;
    }
    fail(std::make_error_code(std::errc::operation_canceled), "http request");
}

// Gives false if the request may be sent again: the kept connection turned out to be closed, or the
// server says that it has not acted on the request.
task<bool> client_call::attempt(bool may_fail, bool may_be_refused) {
    if (connection_->fresh) co_await connect();
    const bool answered = co_await exchange();
    if (!answered) {
        const bool ends = late_ || stopped();
        const client_stream* const stream = connection_->stream.get();
        const bool refused = stream != nullptr && stream->is_unprocessed();
        const bool closed = stream == nullptr || stream->was_closed_unheard();
        if ((refused ? may_be_refused : may_fail && closed) && !ends && !heard_) co_return false;
        lost_ = !ends && !heard_ && (stream == nullptr || !stream->failure());
        fail(loss(), "http request: no answer arrived");
    }
    // The server has answered with a success, but does not take the body.
    if (late_)
        fail(std::make_error_code(std::errc::timed_out),
             "http request: the server did not take the body in time");
    unlimit();
    if (how_ == bodies::whole || outcome_ != outcome::answered) finish();
    co_return true;
}

// Returns why the connection was lost.
std::error_code client_call::loss() const noexcept {
    const client_stream* const stream = connection_->stream.get();
    if (stream != nullptr && stream->failure()) return stream->failure();
    if (stream == nullptr && send_error_) return send_error_;
    return std::make_error_code(std::errc::connection_aborted);
}

// Decides what to do with the answer whose head has arrived.
client_call::outcome client_call::judge() {
    if (answer_repeats()) return outcome::failed;
    return answer_redirects() ? outcome::redirected : outcome::answered;
}

void client_call::let_go() noexcept {
    state_ = state::ended;
    connection_ = nullptr;
    release();
    if (deciding_ != nullptr) std::exchange(deciding_, nullptr)->give_up_deciding();
}

void client_call::stop() noexcept {
    if (loop_.is_current()) {
        stopped_ = true;
        interrupt();
    } else {
        posted_ = true;
        loop_.post(posted_operation_);
    }
}

void client_call::posted_stop::arrive(operation* op) noexcept {
    client_call& call = static_cast<posted_stop*>(op)->call;
    call.arrived_ = true;
    call.stopped_ = true;
    call.interrupt();
    if (call.waiter_) call.waiter_.resume();  // may end the call
}

// Ends every wait on the socket in a later turn. The connection ends with a reset: a mere end would
// tell the server that nothing more is asked, and it would still make the answer.
void client_call::interrupt() noexcept {
    if (sending_)
        enough_->request_stop();  // the source may wait for something other than the socket
    if (waiting_ != nullptr) waiting_->request_stop();
    if (connection_ == nullptr || !connection_->socket.is_open()) return;
    if (client_stream* const stream = connection_->stream.get()) {
        if (late_) stream->note_timeout();
        connection_->socket.close();
        stream->close(true);
        return;
    }
    (void)connection_->socket.set(io::linger(std::chrono::seconds(0)));
    connection_->socket.close();
}

void client_call::expired(io::timer_entry* entry) noexcept {
    client_call& call = *static_cast<client_call*>(entry);
    if (call.loop_.ending()) return;
    call.late_ = true;
    call.interrupt();
}

bool client_call::stopped() const noexcept {
    return stopped_ || outer_.stop_requested() ||
           (deadline_ != execution::instant::never() && loop_.now() >= deadline_);
}

// Limits what follows to `time`.
void client_call::limit(duration time) noexcept {
    unlimit();
    if (state_ == state::delivering) return;  // the sink's time is not limited here
    loop_.arm(*this, saturating_add(loop_.now(), time));
}

void client_call::unlimit() noexcept {
    if (timer_entry::armed()) loop_.disarm(*this);
}

void client_call::fail(std::error_code error, const char* what) const {
    if (late_) error = std::make_error_code(std::errc::timed_out);
    throw std::system_error(error, what);
}

// Awaits work that waits for something other than the socket, with a stop source through which
// interrupt() stops it. Returns false if the work was stopped, by interrupt() or from outside.
task<bool> client_call::until_interrupted(task<> work) {
    inplace_stop_source given_up;
    waiting_ = &given_up;
    const scope_exit done([this] { waiting_ = nullptr; });
    if (stopped_) given_up.request_stop();  // interrupt() came too early for this
    auto whole = std::move(work) | execution::then([]() noexcept { return true; });
    const std::optional<bool> ended =
        co_await (execution::stop_when(std::move(whole), given_up.get_token()) |
                  execution::stopped_as_optional());
    co_return ended.has_value();
}

// Waits. Errors: operation_canceled if the request was stopped by its own token.
task<> client_call::wait(duration time) {
    const auto passing = [](io::context& loop, duration t) -> task<> {
        co_await loop.get_scheduler().schedule_after(t);
    };
    const bool ended = co_await until_interrupted(passing(loop_, time));
    if (stopped_) fail(std::make_error_code(std::errc::operation_canceled), "http request");
    // A call that was admitted continues, although its wait was ended for that.
    if (!ended && host_ == nullptr) co_await execution::just_stopped();
}

}  // namespace coppice::http::internal
