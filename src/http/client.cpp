// The connections of http/client.hpp, and the course of a request.
#include <coppice/base/saturating.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/http/client.hpp>
#include <coppice/io/option.hpp>

#include <algorithm>
#include <utility>

#include "idempotent.hpp"
#include "lines.hpp"
#include "options.hpp"
#include "until_stopped.hpp"

namespace coppice::http {

using namespace internal;

client::client(io::context& loop, client_options options)
    : loop_(loop),
      options_(checked(std::move(options))),
      random_(static_cast<std::uint64_t>(loop.now().time_since_epoch().count()) | 1) {
    if (options_.connections_per_host_max == 0) return;
    hosts_ = std::make_shared<client_hosts>();
    hosts_->in_use_max = options_.connections_per_host_max;
    hosts_->hosts_max = options_.idle_connections_max;
}
client::~client() = default;

std::unique_ptr<client_connection> client::take(const io::endpoint* to, std::string_view name,
                                                std::uint16_t port, connections which) {
    const time_point oldest = saturating_sub(loop_.now(), options_.idle);
    std::erase_if(idle_, [&](const auto& c) { return c->used < oldest; });
    const auto leads_there = [&](const auto& c) {
        return name.empty() ? c->name.empty() && c->to == *to : c->name == name && c->port == port;
    };
    while (which == connections::kept_or_new) {
        const auto found = std::find_if(idle_.rbegin(), idle_.rend(), leads_there);
        if (found == idle_.rend()) break;
        std::unique_ptr<client_connection> c = std::move(*found);
        idle_.erase(std::next(found).base());
        // Otherwise bytes have arrived since its last use, or its server has closed it.
        if (c->socket.is_quiet()) return c;
    }
    return std::make_unique<client_connection>(loop_, to != nullptr ? *to : io::endpoint(), name,
                                               port);
}

void client::keep(std::unique_ptr<client_connection> used) noexcept {
    if (options_.idle_connections_max == 0) return;
    if (idle_.size() == options_.idle_connections_max) idle_.erase(idle_.begin());
    used->used = loop_.now();
    used->fresh = false;
    try {
        idle_.push_back(std::move(used));
    } catch (const std::bad_alloc&) {  // the connection is closed
    }
}

// Marsaglia's xorshift. It is seeded from the loop's time, so that a client in a simulation repeats
// its numbers.
std::uint64_t client::random() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
}

// What a client_answer owns. It may outlive the client, but its call must not be read from then.
struct client_opened : io::operation {
    client_opened(client& owner, client_request&& r)
        : operation(&arrive),
          hosts(owner.hosts_),
          request(std::move(r)),
          call(owner, request, client_call::bodies::by_pieces) {}
    static void arrive(operation* op) noexcept { delete static_cast<client_opened*>(op); }

    const std::shared_ptr<client_hosts> hosts;
    const client_request request;
    client_call call;
};

void client_opened_end::operator()(client_opened* opened) const noexcept {
    io::context& loop = opened->call.loop();
    if (opened->call.finished() || loop.is_current()) {
        delete opened;
    } else {
        loop.post(*opened);
    }
}

std::unique_ptr<client_opened, client_opened_end> client::begin_open(client_request&& r) {
    if (r.sink != nullptr) {
        throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                                "http client: open() takes no sink; read the answer instead");
    }
    return std::unique_ptr<client_opened, client_opened_end>(
        new client_opened(*this, std::move(r)));
}

client_call& client::call_of(client_opened& opened) noexcept {
    return opened.call;
}

task<std::string_view> client_answer::read() {
    COPPICE_CHECK(opened_ != nullptr,
                  "client_answer::read() was called on an answer that was moved from");
    const std::string_view piece = co_await opened_->call.read();
    if (piece.empty() && trailers_.empty()) trailers_ = std::move(opened_->call.answer().trailers_);
    co_return piece;
}

client_call::client_call(client& owner, const client_request& r, bodies how) noexcept
    : timer_entry(&expired), client_(owner), loop_(owner.loop_), request_(r), how_(how) {}

client_call::~client_call() {
    unlimit();
    if (how_ == bodies::by_pieces) interrupt();
    let_go();
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
    (void)connection_->socket.set(io::linger(std::chrono::seconds(0)));
    connection_->socket.close();
}

void client_call::expired(io::timer_entry* entry) noexcept {
    client_call& call = *static_cast<client_call*>(entry);
    if (call.loop_.ending()) return;
    call.late_ = true;
    call.interrupt();
}

// Limits what follows to `time`.
void client_call::limit(duration time) noexcept {
    unlimit();
    if (in_sink_) return;
    loop_.arm(*this, saturating_add(loop_.now(), time));
}

void client_call::unlimit() noexcept {
    if (timer_entry::armed()) loop_.disarm(*this);
}

void client_call::fail(std::error_code error, const char* what) const {
    if (late_) error = std::make_error_code(std::errc::timed_out);
    throw std::system_error(error, what);
}

bool client_call::stopped() const noexcept {
    return stopped_ || outer_.stop_requested() ||
           (deadline_ != execution::instant::never() && loop_.now() >= deadline_);
}

task<bool> client_call::perform() {
    const duration total = request_.total.value_or(client_.options_.total);
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
        co_await wait(delay);
    }
    if (route_ != nullptr) answer_.url_ = route_->url.to_string();
    co_return true;
}

// Sends the request once, and once more if a kept connection turns out to be closed.
task<> client_call::ask() {
    bool again = idempotent(method_) && (without_body_ || request_.source == nullptr);
    // If one kept connection was closed, the others may be closed, too.
    client::connections which = client::connections::kept_or_new;
    while (!stopped_) {
        if (client_.hosts_ != nullptr && host_ == nullptr) {
            co_await admit();
            if (stopped_) break;
        }
        // Replaces the closed connection, which is destroyed first, since the host's limit counts
        // its place.
        connection_ = nullptr;
        connection_ = client_.take(to_, name_, port_, which);
        const bool kept = !connection_->fresh;
        const bool answered = co_await attempt(kept && again);
        if (answered) co_return;
        again = false;
        which = client::connections::new_only;
    }
    fail(std::make_error_code(std::errc::operation_canceled), "http request");
}

// Gives false if the kept connection turned out to be closed, and the request may be sent again.
task<bool> client_call::attempt(bool may_fail) {
    send_error_.clear();
    head_received_ = false;
    heard_ = false;
    if (connection_->fresh) {
        limit(client_.options_.connect);
        ++client_.made_;
        std::error_code ec;
        if (name_.empty()) {
            co_await connection_->socket.connect(*to_, use_await[ec]);
        } else {
            co_await connect_by_name(ec);
        }
        if (ec) {
            lost_ = !stopped();
            fail(ec, "connect");
        }
    }
    limit(client_.options_.answer);
    const bool answered = co_await exchange();
    if (!answered) {
        const bool ends = late_ || stopped();
        if (may_fail && !ends && !heard_) co_return false;
        lost_ = !ends && !heard_;
        fail(send_error_ ? send_error_ : std::make_error_code(std::errc::connection_aborted),
             "http request: no answer arrived");
    }
    // The server has answered with a success, but does not take the body.
    if (late_)
        fail(std::make_error_code(std::errc::timed_out),
             "http request: the server did not take the body in time");
    unlimit();
    if (how_ == bodies::whole || outcome_ != outcome::answered) finish();
    co_return true;
}

// Called when the answer's body has ended: keeps the connection for other requests if it is
// reusable.
void client_call::finish() {
    unlimit();
    // The request's own Connection field can only say close (RFC 9112 section 9.6).
    const bool asked_to_close = find_line(fields_, "Connection").has_value();
    const bool reusable = !closes_ && !asked_to_close && (!version_1_0_ || keep_alive_) &&
                          connection_->socket.is_open() && connection_->input.empty();
    if (reusable) client_.keep(std::move(connection_));
    let_go();
}

void client_call::let_go() noexcept {
    connection_ = nullptr;
    release();
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

// While the name is looked up and its addresses are raced there is no socket to close.
task<> client_call::connect_by_name(std::error_code& ec) {
    const auto connecting = [](io::tcp::socket& s, std::string_view name, std::uint16_t port,
                               std::error_code& error) -> task<> {
        co_await s.connect(name, port, use_await[error]);
    };
    const bool ended =
        co_await until_interrupted(connecting(connection_->socket, name_, port_, ec));
    if (ended) co_return;
    if (!late_ && !stopped_) co_await execution::just_stopped();
    ec = std::make_error_code(std::errc::operation_canceled);
}

}  // namespace coppice::http
