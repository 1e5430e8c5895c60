// The link of secure_link.hpp: lets its engine work, and moves bytes between it and the socket.
#include "secure_link.hpp"

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

// The protocol that both sides speak, if a handshake agrees on one at all.
constexpr std::string_view protocol_of_http = "http/1.1";

}  // namespace

// Runs once at a time: start(), then perform() or refuse(), then arrive() on the loop.
class secure_link::computation : io::operation {
public:
    computation(secure_link& l, thread_pool& pool) noexcept
        : operation(&arrive), link_(l), pool_(pool) {}
    void start() noexcept {
        hold_.construct(link_.loop_);
        scheduled_.construct_with([this]() noexcept {
            return execution::connect(execution::schedule(pool_.get_scheduler()), receiver{this});
        });
        execution::start(scheduled_.get());
    }
    // Computes nothing any longer, if it is not too late.
    void give_up() noexcept { is_given_up_.store(true, relaxed); }  // relaxed: a hint

private:
    struct receiver {
        using receiver_concept = execution::receiver_tag;
        void set_value() && noexcept { of->perform(); }
        // The pool has ended: the loop computes.
        void set_stopped() && noexcept { of->refuse(); }
        computation* of;
    };
    using scheduled =
        execution::connect_result_t<execution::schedule_result_t<thread_pool::scheduler&>,
                                    receiver>;

    // On the pool.
    void perform() noexcept {
        if (is_given_up_.load(relaxed)) {  // relaxed: a hint
            outcome_ = {.what = io::secure_step::needs_input};
        } else {
            outcome_ = link_.engine_->handshake();
        }
        link_.loop_.post(*this);
    }
    void refuse() noexcept {
        is_refused_ = true;
        link_.loop_.post(*this);
    }
    // The last access: the link may end.
    static void arrive(operation* op) noexcept {
        computation& c = *static_cast<computation*>(op);
        c.scheduled_.destroy();
        c.hold_.destroy();
        if (std::exchange(c.is_refused_, false)) c.outcome_ = c.link_.engine_->handshake();
        c.link_.computed(c.outcome_);
    }

    secure_link& link_;
    thread_pool& pool_;
    io::secure_progress outcome_;
    bool is_refused_ = false;
    atomic<bool> is_given_up_{false};
    manual_lifetime<io::context::work_guard> hold_;  // the loop does not end meanwhile
    manual_lifetime<scheduled> scheduled_;
};

secure_link::owned secure_link::make(io::context& loop, io::internal::descriptor& slot,
                                     std::unique_ptr<io::secure_engine> engine,
                                     std::string_view other_protocol, thread_pool* pool) {
    owned made(new secure_link(loop, slot, std::move(engine), other_protocol));
    if (pool != nullptr) made->computation_ = std::make_unique<computation>(*made, *pool);
    return made;
}

secure_link::secure_link(io::context& loop, io::internal::descriptor& slot,
                         std::unique_ptr<io::secure_engine>&& engine,
                         std::string_view other_protocol) noexcept
    : link(loop),
      slot_(slot),
      generation_(slot.generation),
      engine_(std::move(engine)),
      other_protocol_(other_protocol),
      input_(*this, &input_ended, io::opcode::receive_pooled),
      output_(*this, &output_ended, io::opcode::send) {}

secure_link::~secure_link() = default;

void secure_link::begin_with(io::pooled_buffer&& received) noexcept {
    cipher_ = std::move(received);
    engine_->input(cipher_.bytes());
}

void secure_link::close(bool) noexcept {
    if (is_computing_) computation_->give_up();
}

void secure_link::owner_is_gone() noexcept {
    is_owned_ = false;
    if (!is_pending()) delete this;
}

bool secure_link::keep_agreed() noexcept {
    try {
        agreed_ = std::make_shared<const io::agreed_security>(engine_->agreed());
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

std::shared_ptr<const io::secure_session> secure_link::take_session() noexcept {
    if (has_given_session_) return nullptr;
    std::shared_ptr<const io::secure_session> latest = engine_->latest_session();
    has_given_session_ = latest != nullptr;
    return latest;
}

// ---- The operations of the connection ----------------------------------------------------------

bool secure_link::start(ring_operation& op) noexcept {
    user& mine = op.code == io::opcode::send ? writer_ : reader_;
    user& other = op.code == io::opcode::send ? reader_ : writer_;
    COPPICE_CHECK(mine.op == nullptr, "two operations in one direction on one secure_link");
    mine.op = &op;
    if (&mine == &writer_) taken_ = 0;
    pump();
    if (ring_operation* const ended = other.take()) loop_.defer(*ended);
    return mine.take() != nullptr;
}

void secure_link::cancel(ring_operation& op) noexcept {
    user& mine = op.code == io::opcode::send ? writer_ : reader_;
    if (mine.op != &op) return;  // it has ended, and waits for its turn
    const bool sent = &mine == &writer_ && taken_ != 0;
    if (&mine == &writer_) has_left_output_ = has_output();
    mine.finish(sent ? static_cast<int>(taken_) : -ECANCELED);
    loop_.defer(*mine.take());
}

void secure_link::say_end() noexcept {
    ending_ = true;
    pump();
    for (user* const u : {&reader_, &writer_}) {
        if (ring_operation* const ended = u->take()) loop_.defer(*ended);
    }
}

// Goes on after an operation of the link's own. The last access: the connection may end.
void secure_link::advance() noexcept {
    if (!is_owned_) {
        if (!is_pending()) delete this;
        return;
    }
    pump();
    ring_operation* const read = reader_.take();
    ring_operation* const written = writer_.take();
    if (read != nullptr && written != nullptr) loop_.defer(*written);
    ring_operation* const first = read != nullptr ? read : written;
    if (first != nullptr) first->complete(first);
}

// ---- The engine --------------------------------------------------------------------------------

// Works until something has to be waited for.
void secure_link::pump() noexcept {
    if (is_computing_) return;
    for (;;) {
        flush();
        if (finish_all_if_failed()) return;
        wants_input_ = false;
        if (work() == next::go_on) continue;
        if (is_computing_) return;
        flush();  // what that has written
        if (result_ != 0) continue;
        if (!wants_input_ || take_in() == next::wait) return;
    }
}

// Returns `wait` if the engine needs input or output, or there is nothing to do.
secure_link::next secure_link::work() noexcept {
    if (!ready_) return shake_hands();
    if (reader_.is_active() && decrypt() == next::go_on) return next::go_on;
    if (writer_.is_active()) return encrypt();
    return ending_ && !has_told_ ? say_end_now() : next::wait;
}

secure_link::next secure_link::shake_hands() noexcept {
    if (!reader_.is_active() && !writer_.is_active()) return next::wait;
    if (!make_room()) return next::go_on;
    // Without input there is nothing to compute, unless the last step did not fit into the room.
    if (computation_ == nullptr || (engine_->unread() == 0 && !was_cut_short_)) {
        return note_handshake(engine_->handshake());
    }
    // The room is empty then: what comes home has always got further.
    if (has_output()) return next::wait;
    is_computing_ = true;
    computation_->start();
    return next::wait;
}

// Called when the pool has computed.
void secure_link::computed(io::secure_progress p) noexcept {
    is_computing_ = false;
    if (is_owned_) (void)note_handshake(p);
    if (ready_) computation_.reset();
    if (!is_open()) result_ = -ECANCELED;
    advance();
}

secure_link::next secure_link::note_handshake(const io::secure_progress& p) noexcept {
    was_cut_short_ = p.what == io::secure_step::needs_output;
    if (p.what != io::secure_step::done) return judge(p);
    ready_ = true;
    const std::string_view protocol = engine_->protocol();
    speaks_other_ = !protocol.empty() && protocol == other_protocol_;
    if (!protocol.empty() && protocol != protocol_of_http && !speaks_other_) {
        failure_ = std::make_error_code(std::errc::wrong_protocol_type);
    }
    return next::go_on;
}

secure_link::next secure_link::decrypt() noexcept {
    ring_operation& op = *reader_.op;
    std::byte* const into = loop_.buffers().try_take();
    if (into == nullptr || !make_room()) {
        if (into != nullptr) loop_.buffers().give(into);
        reader_.finish(-ENOMEM);
        return next::go_on;
    }
    const io::secure_progress p = engine_->receive({into, io::buffer_pool::buffer_bytes});
    if (engine_->unread() == 0) cipher_.release();
    was_full_ = p.bytes == io::buffer_pool::buffer_bytes;
    if (p.bytes != 0) {
        op.data = into;
        reader_.finish(static_cast<int>(p.bytes));
        return next::go_on;
    }
    loop_.buffers().give(into);
    const bool was_cut = p.what == io::secure_step::failed && ended_;
    if (p.what != io::secure_step::ended && !was_cut) return judge(p);
    // The end is the connection's leave to close the socket. First goes out what the engine has
    // written, such as tickets, and this side's end. While a writer waits or has left output, the
    // end does not: the peer may read nothing.
    if (has_output() && (ending_ || !(writer_.is_active() || has_left_output_))) {
        return output_.pending ? next::wait : next::go_on;
    }
    if (ending_ && !has_told_) return next::wait;
    // Sending goes on after a cut. If the engine can no longer send, it says so then.
    if (was_cut) cut_ = p.error;
    reader_.finish(was_cut ? -EPROTO : 0);
    return next::go_on;
}

// A record is begun when the room is empty: what was begun always leaves whole.
secure_link::next secure_link::encrypt() noexcept {
    ring_operation& op = *writer_.op;
    if (has_output()) return next::wait;
    if (taken_ == op.size) {
        writer_.finish(static_cast<int>(taken_));
        return next::go_on;
    }
    if (!make_room()) return next::go_on;
    const io::secure_progress p =
        engine_->send(std::span<const std::byte>(op.data, op.size).subspan(taken_));
    taken_ += p.bytes;
    return judge(p);
}

secure_link::next secure_link::say_end_now() noexcept {
    if (has_output()) return next::wait;
    if (!make_room()) return next::go_on;
    const io::secure_progress p = engine_->end();
    has_told_ = p.what == io::secure_step::done;
    return judge(p);
}

// Notes what a call of the engine has come to.
secure_link::next secure_link::judge(const io::secure_progress& p) noexcept {
    if (engine_->unread() == 0) cipher_.release();
    switch (p.what) {
        case io::secure_step::needs_input:
            wants_input_ = true;
            return next::wait;
        case io::secure_step::needs_output:  // flush() makes room, or waits
            return output_.pending ? next::wait : next::go_on;
        case io::secure_step::failed:
            failure_ = p.error;
            return next::go_on;
        default:
            return next::go_on;
    }
}

// After an error of the engine, its alert is sent first. Returns true if nothing is left to do.
bool secure_link::finish_all_if_failed() noexcept {
    if (result_ == 0 && !failure_) return false;
    if (result_ == 0 && has_output()) return true;
    for (user* const u : {&reader_, &writer_}) {
        if (u->is_active()) u->finish(failure_ ? -EPROTO : result_);
    }
    return true;
}

// ---- The socket --------------------------------------------------------------------------------

// Returns true if the operation has ended.
bool secure_link::start_own(own_operation& op) noexcept {
    if (!is_open()) {
        op.result = -ECANCELED;
        return true;
    }
    op.on = &slot_;
    op.pending = !loop_.start_here(op);
    return !op.pending;
}

secure_link::next secure_link::take_in() noexcept {
    if (input_.pending) return next::wait;
    if (start_own(input_)) {
        came(input_.result);
        return next::go_on;
    }
    return next::wait;
}

void secure_link::input_ended(io::operation* op) noexcept {
    own_operation& own = *static_cast<own_operation*>(static_cast<ring_operation*>(op));
    own.pending = false;
    own.link.came(own.result);
    own.link.advance();
}

void secure_link::came(int result) noexcept {
    if (result > 0) {
        cipher_ = io::pooled_buffer(loop_.buffers(), input_.data, static_cast<std::size_t>(result));
        engine_->input(cipher_.bytes());
    } else if (result == 0 && !ended_) {
        ended_ = true;
        engine_->end_input();
    } else {
        result_ = result == 0 ? -ECONNABORTED : result;
    }
}

bool secure_link::make_room() noexcept {
    if (room_.is_there()) return true;
    if (!room_.acquire()) {
        result_ = -ENOMEM;
        return false;
    }
    engine_->output(room_.all());
    sent_ = 0;
    return true;
}

// Sends what the engine has written, as far as the socket takes it, and gives the room back.
void secure_link::flush() noexcept {
    if (output_.pending) return;
    while (has_output() && result_ == 0) {
        output_.data = room_.all().data() + sent_;
        output_.size = engine_->written() - sent_;
        if (!start_own(output_)) return;
        went(output_.result);
    }
    finish_sending();
}

void secure_link::output_ended(io::operation* op) noexcept {
    own_operation& own = *static_cast<own_operation*>(static_cast<ring_operation*>(op));
    own.pending = false;
    own.link.went(own.result);
    own.link.advance();
}

void secure_link::went(int result) noexcept {
    if (result > 0) {
        sent_ += static_cast<std::size_t>(result);
    } else {
        result_ = result == 0 ? -EPIPE : result;
    }
}

void secure_link::finish_sending() noexcept {
    if (!room_.is_there()) return;
    engine_->output({});
    room_.release();
    has_left_output_ = false;
    if (has_told_ && is_open() && !std::exchange(has_shut_, true)) {
        (void)loop_.system().shutdown(slot_.fd, io::internal::shutdown_direction::send);
    }
}

// ---- What tasks await --------------------------------------------------------------------------

std::error_code secure_request::error() const noexcept {
    return outcome() == -EPROTO && link_.failure() ? link_.failure() : base::error();
}

bool secure_request::submit() noexcept {
    if (link_.start(inner_)) {
        set_outcome(inner_.result);
        return true;
    }
    if (deadline() != time_point::max()) loop().arm(*this, deadline());
    listen();
    return false;
}

void secure_request::ended_inside(io::operation* op) noexcept {
    secure_request& self =
        static_cast<inner_operation*>(static_cast<io::internal::ring_operation*>(op))->of;
    self.set_outcome(self.inner_.result);
    if (self.timer_entry::armed()) self.loop().disarm(self);
    self.ended();
}

void secure_request::expire(io::timer_entry* entry) noexcept {
    secure_request& self = *static_cast<secure_request*>(entry);
    if (!self.loop().ending()) self.stop();
}

}  // namespace coppice::http
