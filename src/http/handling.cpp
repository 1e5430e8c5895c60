// handling and overdue: running a handler that is awaited, or a producer.
#include "connection.hpp"
#include "incoming_body.hpp"
#include "until_stopped.hpp"

#include <coppice/base/saturating.hpp>

#include <stdexcept>
#include <utility>

namespace coppice::http {

using namespace internal;

// Enters `handling`: engages the stop source, and starts to watch for the client's end and its next
// requests.
void connection::begin_run(exchange& e) {
    end_run(e);
    e.stop.emplace();
    e.origin.stop = e.stop->get_token();
    enter(state::handling, loop_.options.timeouts.handler);
    e.origin.deadline = e.deadline;
    watch();
}

// Enters `handling` again after a wait for the client, for the time that the request has left.
void connection::resume_run(exchange& e) noexcept {
    enter(state::handling, saturating_sub(e.origin.deadline, loop_.context.turn_time()));
}

// Enters `handling` for a producer, which has as much time as its client.
void connection::run_untimed() noexcept {
    enter(state::handling, duration::max());
}

// Enters `overdue`: the handler is told to stop. The caller must not touch the connection
// afterwards.
void connection::tell_to_stop() noexcept {
    loop_.counts.timed_out.add();
    enter(state::overdue, loop_.options.timeouts.handler_stop);
    request_stop();
}

void connection::end_run(exchange& e) noexcept {
    e.streamed.reset();  // its body may refer to the source
    e.origin.stop = {};
    e.origin.deadline = time_point::max();
    e.stop.reset();
}

// Requests a stop. The caller must not touch the connection afterwards: what is stopped may end it.
void connection::request_stop() noexcept {
    if (batch_ != nullptr && batch_->stop) batch_->stop->request_stop();
}

// Waits for an asynchronous handler.
task<connection::step> connection::run_handler(exchange& e) {
    const handler& h = *e.match.handler;
    if (h.needs().body) co_return co_await run_reading_handler(e);
    if (!loop_.on_pool(h)) {
        if (away_) co_await come_home();
        begin_run(e);
    }
    const bool departed = away_;
    if (departed && !begin_away(e)) co_return step::gone;
    e.origin.pool = loop_.on_pool(h) ? loop_.shared.pool : nullptr;
    step reached = step::gone;
    {
        const route_flight flight(loop_.counts_of(e.match));
        request r(e.parser.head(), e.body, e.match.parameters, &e.origin);
        std::optional<response> made;
        std::exception_ptr error;
        try {
            made = co_await result_of({e.origin.stop, loop_.context, loop_.team_of(h)}, h.start(r));
        } catch (...) {
            error = std::current_exception();
        }
        const bool may_answer = !departed || e.right.end();
        // The task may have ended on any thread.
        if (!away_ || !loop_.shared.pool->is_current()) {
            if (!come_home_at_once()) co_await come_home();
        }
        const bool answers = may_answer && (away_ || !e.given_up);
        if (answers) {
            reached = conclude(e, std::move(made), error, r);
        } else if (error) {
            (void)answer_to(e, error);  // no client gets it; on_exception is told
        }
    }
    // Comes after everything that may refer to the stop source is gone: the request's values, the
    // answer, the error.
    if (!away_ && reached != step::stream) end_run(e);
    co_return reached;
}

// Copies the head to where it stays while the body arrives, and what has arrived after it into
// e.rest.
void connection::keep_head(exchange& e) {
    e.rest.assign(e.left.substr(e.head_bytes));
    e.head.assign(e.left.substr(0, e.head_bytes));
    e.buffer.release();
    e.left = {};
    read_again(e, e.head);
}

// Runs a handler that reads the body itself.
task<connection::step> connection::run_reading_handler(exchange& e) {
    if (away_) co_await come_home();
    keep_head(e);
    incoming_body body(*this, e);
    begin_run(e);
    e.origin.body = &body;
    e.origin.pool = loop_.on_pool(*e.match.handler) ? loop_.shared.pool : nullptr;
    step reached = step::gone;
    {
        const route_flight flight(loop_.counts_of(e.match));
        request r(e.parser.head(), {}, e.match.parameters, &e.origin);
        std::optional<response> made;
        std::exception_ptr error;
        if (loop_.on_pool(*e.match.handler)) {
            co_await loop_.shared.pool->get_scheduler().schedule();
        }
        try {
            const handler& h = *e.match.handler;
            made = co_await result_of({e.origin.stop, loop_.context, loop_.team_of(h)}, h.start(r));
        } catch (const refused& why) {
            made.emplace(why.status == 503 ? no_room(e) : refusal(e, why.status, why.reason));
        } catch (...) {
            error = std::current_exception();
        }
        if (!come_home_at_once()) co_await come_home();
        e.origin.body = nullptr;
        if (body.is_broken() || e.given_up) {
            if (!e.given_up) ++e.stops;
            if (error) (void)answer_to(e, error);  // no client gets it; on_exception is told
        } else {
            if (body.is_complete()) {
                e.rest = body.take_rest();
                e.end.read_to_end();
            } else {
                e.end.abandoned();
            }
            reached = conclude(e, std::move(made), error, r);
        }
    }
    // Comes after everything that may refer to the stop source is gone: the request's values, the
    // answer, the error.
    if (reached != step::stream) end_run(e);
    co_return reached;
}

// Continues after a handler that was awaited, with its answer or one in its place. The caller ends
// the run, once the request is gone.
connection::step connection::conclude(exchange& e, std::optional<response> made,
                                      const std::exception_ptr& error, const request& r) {
    if (error) made = answer_to(e, error);
    if (!away_ && !socket_.is_open()) return step::gone;  // cut off in the meantime
    if (!made) made = answer_to_stopped(e);
    if (!made) return step::gone;
    return finish(e, std::move(*made), r);
}

// Makes the answer to the request of a handler that was stopped; nothing if its client has gone.
std::optional<response> connection::answer_to_stopped(exchange& e) {
    const bool late = loop_.context.now() >= e.origin.deadline;
    if (!late && !e.stop->stop_requested()) {  // by something of its own
        report_exception(e, std::make_exception_ptr(std::logic_error(
                                "a handler was stopped by something of its own, though its client "
                                "waits and its time is not up: handle the stop of what it awaits, "
                                "for example with stopped_as_optional")));
        return response::status(500);
    }
    ++e.stops;
    if (!late) return std::nullopt;
    return response::status(503, static_text::promised(overdue_reason));
}

}  // namespace coppice::http
