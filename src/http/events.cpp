// Server-sent events: their format, comments between them, and the end at a drain.
#include <coppice/http/events.hpp>

#include <coppice/base/internal/options.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/exec/when_any.hpp>
#include <coppice/io/context.hpp>

#include "loop_wait.hpp"
#include "whole_writes.hpp"

#include <exception>
#include <stdexcept>
#include <string>

namespace coppice::http {

using namespace internal;

namespace {

void check_line(std::string_view text, const char* what) {
    if (text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos) return;
    throw std::invalid_argument(std::string("event_writer::send: the ") + what +
                                " has a line break or a NUL");
}

// CR, LF, and CRLF each end a line for a page.
void append_data(std::string_view data, std::string& out) {
    for (;;) {
        const std::size_t end = data.find_first_of("\r\n");
        out.append("data: ").append(data.substr(0, end)).append("\n");
        if (end == data.npos) return;
        data.remove_prefix(end + (data.substr(end).starts_with("\r\n") ? 2 : 1));
    }
}

std::string text_of_event(const page_event& e) {
    std::string text;
    check_line(e.name, "name");
    if (e.retry && e.retry->count() < 0) {
        throw std::invalid_argument("event_writer::send: retry is negative");
    }
    if (e.id) {
        check_line(*e.id, "id");
        text.append("id: ").append(*e.id).append("\n");
    }
    if (e.retry) text.append("retry: ").append(std::to_string(e.retry->count())).append("\n");
    if (!e.name.empty()) text.append("event: ").append(e.name).append("\n");
    if (e.data) append_data(*e.data, text);
    return text.append("\n");
}

// The producer and the keep-alive share one writer, which allows one at a time.
class live_events final : public event_writer {
public:
    live_events(io::context& loop, body_writer& out) noexcept
        : loop_(loop), out_(out), texts_(out) {}

    task<> send(const page_event& e) override {
        const std::string text = text_of_event(e);
        if (loop_.is_current()) {
            co_await write(text);
        } else {
            co_await execution::starts_on(loop_.get_scheduler(), write(text));
        }
    }
    // Called at the end: sends what a stopped call has left.
    task<> finish() { return texts_.write(); }
    inplace_stop_token stop_token() const noexcept override { return out_.stop_token(); }
    inplace_stop_token drain_token() const noexcept override { return out_.drain_token(); }

    // Sends comments, until it is stopped. `ends`: completes when the server drains.
    task<> send_comments(duration interval, bool ends) {
        const inplace_stop_token drain = ends ? out_.drain_token() : inplace_stop_token();
        const inplace_stop_token stop = co_await execution::read_env(get_stop_token);
        for (;;) {
            const std::uint64_t before = written_;
            const auto over = co_await execution::stopped_as_optional(execution::then(
                execution::stop_when(execution::schedule_after(loop_.get_scheduler(),
                                                               execution::time_span(interval)),
                                     drain),
                [] { return true; }));
            if (stop.stop_requested()) co_await execution::just_stopped();
            if (!over && drain.stop_requested()) co_return;
            if (before == written_ && !is_writing_) co_await write(":\n\n");
        }
    }

private:
    // Called on the loop.
    task<> write(std::string_view text) {
        const inplace_stop_token stop = co_await execution::read_env(get_stop_token);
        while (is_writing_) {
            loop_wait wait(loop_, waiters_, stop, execution::instant::never());
            const bool woken = co_await wait;
            wait.end();
            co_await loop_wait::settled(wait);
            if (!woken) co_await execution::just_stopped();
        }
        is_writing_ = true;
        ++written_;
        std::exception_ptr error;
        bool done = false;
        try {
            done = (co_await execution::stopped_as_optional(execution::then(write_now(text), [] {
                       return true;
                   }))).has_value();
        } catch (...) {
            error = std::current_exception();
        }
        is_writing_ = false;  // before the stop is passed on: the frame may outlive it
        loop_wait::wake_all(waiters_);
        if (error) std::rethrow_exception(error);
        if (!done) co_await execution::just_stopped();
    }
    task<> write_now(std::string_view text) {
        if (!texts_.text().empty()) co_await texts_.write();  // what a stopped call has left
        texts_.text() = text;
        co_await texts_.write();
        co_await out_.flush();
    }

    io::context& loop_;
    body_writer& out_;
    whole_writes texts_;         // of events and comments
    std::uint64_t written_ = 0;  // how many
    bool is_writing_ = false;
    loop_wait::list waiters_;
};

class events_body final : public body_source {
public:
    events_body(io::context& loop, std::unique_ptr<event_producer> producer,
                const events_options& options) noexcept
        : loop_(loop), producer_(std::move(producer)), options_(options) {}
    std::optional<std::uint64_t> length() const noexcept override { return std::nullopt; }
    task<> write_to(body_writer& out) override {
        live_events to(loop_, out);
        co_await execution::when_any(
            producer_->run(to), to.send_comments(options_.comment_interval, options_.end_at_drain));
        co_await to.finish();
    }

private:
    io::context& loop_;
    const std::unique_ptr<event_producer> producer_;
    const events_options options_;
};

}  // namespace

namespace internal {

response events_of(const request& r, std::unique_ptr<event_producer> producer,
                   const events_options& options) {
    check_option("events_options::comment_interval", options.comment_interval,
                 std::chrono::milliseconds(1));
    return response(200)
        .content_type("text/event-stream")
        .add("Cache-Control", "no-store")
        .body(std::make_shared<events_body>(r.loop(), std::move(producer), options));
}

}  // namespace internal

std::string_view last_event_id(const request& r) noexcept {
    return r.find("Last-Event-ID").value_or(std::string_view());
}

}  // namespace coppice::http
