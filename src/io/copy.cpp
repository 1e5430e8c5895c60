// The two ways of io/copy.hpp.
#include <coppice/io/copy.hpp>

#include <coppice/base/saturating.hpp>

#include <algorithm>
#include <cerrno>

namespace coppice::io::internal {

copying::copying(const arguments& a, bool both) noexcept
    : base(a.target->owner()),
      idle_max_(a.idle_max),
      both_(both),
      there_(*this, *a.target, *a.to),
      back_(*this, *a.to, *a.target) {
    COPPICE_CHECK(&a.target->owner() == &a.to->owner(),
                  "a copy between streams of two contexts: open both on one context");
    COPPICE_CHECK(!both || a.target != a.to,
                  "a copy both ways between a stream and itself: pass two streams");
    back_.over = !both;
}

copying::~copying() {
    COPPICE_CHECK(there_.idle() && back_.idle(), "a copy ended early");
}

bool copying::submit() noexcept {
    if (idle_max_ != duration::max()) active_at_ = owner().now();
    there_.run();
    back_.run();
    if (is_over()) {
        conclude();
        return true;
    }
    listen();
    return false;
}

// Called when an operation of the way has ended in a later turn than the one that started it.
// Lifetime: may destroy *this.
void copying::go_on(way& w) noexcept {
    w.run();
    if (!is_over()) return;
    conclude();
    ended();
}

void copying::conclude() noexcept {
    if (failure_) {
        set_outcome(-EIO);  // error() returns failure_
    } else if (late_) {
        end_at_deadline();
    } else {
        set_outcome(cut_ ? -ECANCELED : 0);
    }
}

// Reads the clock, not the turn's time, because other completions of this turn may have held the
// loop up.
void copying::note_activity() noexcept {
    if (idle_max_ != duration::max()) active_at_ = owner().now();
}

// Returns how long the next operation may wait.
time_point copying::limit() const noexcept {
    if (idle_max_ == duration::max()) return deadline();
    return std::min(deadline(), saturating_add(active_at_, idle_max_));
}

// Called when an operation of a way has failed or was stopped. Returns false if it must be
// repeated, because the other way was active meanwhile.
bool copying::fail(std::error_code error, bool stopped) noexcept {
    if (halted_) {
        cut_ = true;
        return true;
    }
    if (!stopped) {
        failure_ = error;
    } else if (deadline() != time_point::max() && deadline() <= owner().now()) {
        late_ = true;
    } else if (limit() <= owner().now()) {
        failure_ = std::make_error_code(std::errc::timed_out);
    } else {
        return false;
    }
    halt();
    return true;
}

// Stops pending operations; they end in a later turn.
void copying::halt() noexcept {
    halted_ = true;
    halt_.request_stop();
}

void copying::interrupt() noexcept {
    if (!halted_) halt();
}

// ---- One way ----------------------------------------------------------------------------------

copying::way::way(copying& c, stream& f, stream& t) noexcept
    : of_(c), from_(f.reference()), to_(t.reference()), target_(&t) {}

void copying::way::run() noexcept {
    while (!over && !pending_) {
        if (left_.empty()) {
            receive();
        } else {
            send();
        }
    }
}

void copying::way::receive() noexcept {
    pending_ = true;
    receiving& op = receive_.construct(*this, from_);
    if (op.begin(of_.halt_.get_token(), of_.limit())) received();
}

void copying::way::send() noexcept {
    pending_ = true;
    sending& op = send_.construct(*this, to_, left_);
    if (op.begin(of_.halt_.get_token(), of_.limit())) went_out();
}

void copying::way::received() noexcept {
    receiving& op = receive_.get();
    const std::error_code error = op.error();
    const bool stopped = op.stopped();
    buffer_ = op.take();
    receive_.destroy();
    pending_ = false;
    if (error) {
        over = of_.fail(error, stopped);
        return;
    }
    left_ = buffer_.bytes();
    if (!left_.empty()) {
        of_.note_activity();
        return;
    }
    over = true;
    if (of_.both_) target_->shutdown_send();
}

void copying::way::went_out() noexcept {
    sending& op = send_.get();
    const std::error_code error = op.error();
    const bool stopped = op.stopped();
    const std::size_t bytes = op.take();
    send_.destroy();
    pending_ = false;
    if (error) {
        over = of_.fail(error, stopped);
        return;
    }
    sent += bytes;
    left_ = left_.subspan(bytes);
    if (left_.empty()) buffer_.release();
    of_.note_activity();
}

void copying::way::receiving::completed() noexcept {
    way& w = way_;
    w.received();  // destroys *this
    w.of_.go_on(w);
}

void copying::way::sending::completed() noexcept {
    way& w = way_;
    w.went_out();  // destroys *this
    w.of_.go_on(w);
}

copied copy_both_request::take() const noexcept {
    return {sent_there(), sent_back()};
}

}  // namespace coppice::io::internal
