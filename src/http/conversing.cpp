// The long way of a batch: a coroutine that awaits whatever its requests need.
#include "awaiting.hpp"
#include "connection.hpp"

#include <utility>

namespace coppice::http {

using namespace internal;

// Answers what needs waiting: the rest of the batch, and what arrives meanwhile.
session connection::attend(step s, bool& began) {
    began = true;
    exchange& e = *batch_;
    e.more = true;
    bool more = false;
    bool failed = false;
    try {
        more = co_await converse(e, s);
        while (more && e.ahead.has_news()) {
            std::error_code ec;
            io::pooled_buffer more_input = co_await next_input(*this, ec);
            more = !ec && !more_input.empty();
            if (!more) break;
            account(e, loop_.context.now());
            e.clear();
            begin_batch(e, std::move(more_input));
            const step reached = advance(e);
            more = co_await converse(e, reached);
        }
        const bool lingers = !more && (e.closing || e.given_up) && socket_.is_open();
        if (lingers) co_await linger(e);
    } catch (...) {
        failed = true;  // there was no memory
    }
    if (failed) {
        more = false;
        if (!loop_.context.is_current()) co_await loop_.context.get_scheduler().schedule();
        at_home();
        end_run(e);
        abort();
    }
    if (e.is_preface && socket_.is_open()) {
        multiplex_rest(e);
        co_return;
    }
    if (more && !loop_.draining && socket_.is_open()) {
        end_batch(loop_.context.now());
        rest();
        co_return;
    }
    close_socket();
    if (e.sending_late) co_await end_of_late_answer(e);
    end_batch(loop_.context.now());
    end();
}

// Answers the rest of a batch. Gives true if everything was answered and the connection is idle.
task<bool> connection::converse(exchange& e, step s) {
    while (s != step::idle && s != step::last && s != step::gone && s != step::preface) {
        switch (s) {
            case step::drop:
                s = co_await drop_body(e);
                break;
            case step::input:
                s = co_await receive_head(e);
                break;
            case step::body:
                s = co_await receive_body(e);
                if (s == step::answered) s = settle(e, respond(e));
                break;
            case step::flush: {
                const bool written = co_await write(e);
                s = written ? step::answered : step::gone;
                break;
            }
            case step::depart:
                prepare_departure(e);
                co_await loop_.shared.pool->get_scheduler().schedule();
                s = settle(e, respond(e));
                break;
            case step::handler: {
                // Answers that are ready should not wait for a handler that may take long.
                bool written = write_at_once(e);
                if (!written) written = co_await write(e);
                s = step::gone;
                if (!written) break;
                // A frame is given back to the thread that allocated it, so the hop comes before
                // run_handler() has its frame.
                if (!away_ && loop_.on_pool(*e.match.handler)) {
                    prepare_departure(e);
                    co_await loop_.shared.pool->get_scheduler().schedule();
                }
                s = settle(e, co_await run_handler(e));
                break;
            }
            case step::stream:
                s = settle(e, co_await send_stream(e));
                break;
            default:  // answered
                // The next request must not see the stop or the time of the one before. On the
                // pool, a source that was not asked to stop is used again.
                if (away_ && e.right.was_told()) {
                    co_await come_home();
                    s = step::gone;
                    if (!socket_.is_open() || e.given_up) break;
                }
                if (!away_) {
                    end_run(e);
                    e.origin.arrived = loop_.context.turn_time();
                    e.origin.followed = true;
                }
                s = advance(e);
        }
    }
    e.is_preface = s == step::preface;
    bool more = s != step::gone && s != step::preface;
    if (more && !write_at_once(e)) more = co_await write(e);
    if (!loop_.context.is_current()) co_await loop_.context.get_scheduler().schedule();
    at_home();
    end_run(e);
    more = more && s == step::idle && socket_.is_open();
    co_return more;
}

}  // namespace coppice::http
