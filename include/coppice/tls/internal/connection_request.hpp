// connection_request: one operation of a tls::stream: computes, sends, receives, and again.
#pragma once
//   compute -> send what was written -> by what the engine said:
//     needs_input   receive, compute again
//     needs_output  compute again
//     otherwise     the kind of operation decides: it has ended, or computes again
//
// Everything happens on the loop, except that compute() may move the engine's work elsewhere. At
// most one thing is pending at a time: a receive or a send of the next stream, the wait for the
// other operation's, or the work elsewhere. A stop ends that; what the engine has is kept, and
// the next operation goes on there.

#include <coppice/base/lifetime.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/tls/internal/connection.hpp>
#include <coppice/tls/internal/in_place.hpp>
#include <coppice/tls/internal/namespaces.hpp>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

namespace coppice::tls::internal {

// Which directions an operation uses.
enum class uses { reading, writing, both };

template <class Next>
class connection_request : public io::basic_request<io::operation>,
                           io::timer_entry,
                           protected lane_user {
    using base = io::basic_request<io::operation>;

public:
    // For the next stream's operations.
    void inner_ended(std::error_code error, std::size_t bytes) noexcept {
        inner_error_ = error;
        inner_bytes_ = bytes;
        if (std::exchange(starting_, false)) return;  // begin() continues
        if (take_inner()) {
            go_on();
        } else {
            conclude();
        }
    }
    std::error_code error() const noexcept { return failure_ ? failure_ : base::error(); }

protected:
    connection_request(connection<Next>* on, uses directions) noexcept
        : base(on->owner()),
          io::timer_entry(&expire_deadline),
          on_(on->shared_from_this()),
          uses_(directions),
          was_open_(on->next.is_open()) {}
    ~connection_request() = default;

    // Lets the engine work, and sets last_. Returns false if it works elsewhere: arrive() is then
    // posted to the loop.
    virtual bool compute() noexcept = 0;
    // Judges last_, which is done, ended, or failed. Returns true if the operation has ended.
    virtual bool judge() noexcept = 0;
    // True if what the engine has written must be sent before last_ is judged.
    virtual bool sends_first() const noexcept { return true; }
    // True if a stop no longer changes the outcome.
    virtual bool is_past_stopping() const noexcept { return false; }

    connection<Next>& on() const noexcept { return *on_; }
    tls::engine& engine() const noexcept { return on_->engine; }
    void fail(std::error_code error) noexcept { failure_ = error; }
    bool has_failed() const noexcept { return static_cast<bool>(failure_); }
    // Gives the engine room. Returns false if there is no memory: the operation has then failed.
    bool give_room() noexcept {
        if (on_->make_room()) return true;
        fail(std::make_error_code(std::errc::not_enough_memory));
        return false;
    }
    // Makes this operation continue on the loop, called on another thread as its last access.
    void arrive_on_loop() noexcept {
        this->complete = &arrive;
        this->loop().post(*this);
    }

    // Called when the operation has been posted or deferred. The last access.
    virtual void arrived() noexcept { go_on(); }
    // Continues in a later turn than the one that started the operation. The last access.
    void go_on() noexcept {
        if (run()) conclude();
    }

    progress last_;

private:
    using token = in_place_token<connection_request>;
    using receiving = decltype(std::declval<Next&>().receive(std::declval<std::span<std::byte>>(),
                                                             std::declval<token>()));
    using sending = decltype(std::declval<Next&>().send(std::declval<std::span<const std::byte>>(),
                                                        std::declval<token>()));
    enum class inner { none, receiving, sending };

    bool submit() noexcept final {
        if (!on_->next.is_open()) {
            this->set_outcome(was_open_ ? -ECANCELED : -EBADF);
            return true;
        }
        on_->enter(*this, uses_ != uses::writing, uses_ != uses::reading);
        if (run()) {
            settle_outcome();
            return true;
        }
        if (this->deadline() != time_point::max()) this->loop().arm(*this, this->deadline());
        this->listen();
        return false;
    }
    void interrupt() noexcept final {
        if (std::exchange(halted_, true)) return;
        halt_.request_stop();
        if (std::exchange(waits_for_lane_, false)) continue_next_turn();
    }

    // Returns true if the operation has ended.
    bool run() noexcept {
        for (;;) {
            if (!std::exchange(has_computed_, true) && !compute()) return false;
            if (failure_) return true;
            on_->incoming.free(*this);
            if (on_->has_output() && (sends_first() || last_.what == step::needs_output)) {
                if (!may_start()) return true;
                if (!send()) return false;
                if (failure_ || gives_up_) return true;
                continue;
            }
            on_->outgoing.free(*this);
            if (last_.what == step::needs_input) {
                if (!may_start()) return true;
                if (!receive()) return false;
                if (failure_ || gives_up_) return true;
            } else if (last_.what != step::needs_output && judge()) {
                return true;
            }
            has_computed_ = false;
        }
    }
    // Returns false if a stop or a close ends the operation here.
    bool may_start() noexcept {
        if (!on_->next.is_open()) {
            fail(std::make_error_code(std::errc::operation_canceled));
            return false;
        }
        gives_up_ = halted_;
        return !halted_;
    }

    // Start an operation of the next stream. Return false if it is pending; otherwise it has ended.
    bool receive() noexcept {
        has_computed_ = false;
        if (!on_->incoming.take(*this)) {
            waits_for_lane_ = true;
            return false;
        }
        on_->drop_empty_room();
        const std::span<std::byte> place = on_->place_for_input();
        if (place.empty()) {
            fail(std::make_error_code(std::errc::not_enough_memory));
            return true;
        }
        inner_ = inner::receiving;
        const auto make = [this, place]() noexcept {
            return on_->next.receive(place, token(*this));
        };
        return begin_inner(receive_.construct_with(make));
    }
    bool send() noexcept {
        if (!on_->outgoing.take(*this)) {
            // The other operation is sending: that may make enough room for the engine.
            has_computed_ = last_.what != step::needs_output;
            waits_for_lane_ = true;
            return false;
        }
        inner_ = inner::sending;
        const auto make = [this]() noexcept { return on_->next.send(on_->output(), token(*this)); };
        return begin_inner(send_.construct_with(make));
    }
    template <class Operation>
    bool begin_inner(Operation& begun) noexcept {
        starting_ = true;
        begun.begin(halt_.get_token());
        if (std::exchange(starting_, false)) return false;
        take_inner();
        return true;
    }
    // Takes the outcome of the operation that has ended. Returns false if it ends this one.
    bool take_inner() noexcept {
        const bool received = std::exchange(inner_, inner::none) == inner::receiving;
        if (received) {
            receive_.destroy();
        } else {
            send_.destroy();
        }
        if (inner_error_) {
            if (halted_ && on_->next.is_open()) {
                gives_up_ = true;
            } else if (last_.what != step::failed) {
                fail(inner_error_);
            } else {
                fail(last_.error);  // reports the cause, not the failed send of the alert
            }
            return false;
        }
        if (received) {
            on_->came(inner_bytes_);
        } else {
            on_->went(inner_bytes_);
        }
        return true;
    }

    void conclude() noexcept {
        if (io::timer_entry::armed()) this->loop().disarm(*this);
        settle_outcome();
        this->ended();
    }
    void settle_outcome() noexcept {
        if (failure_) {
            this->set_outcome(-EIO);  // error() says which
        } else {
            this->set_outcome(gives_up_ && !is_past_stopping() ? -ECANCELED : 0);
        }
        on_->drop_empty_room();
        on_->leave(*this);
        on_.reset();
    }

    void lane_is_free() noexcept final {
        if (std::exchange(waits_for_lane_, false)) continue_next_turn();
    }
    void continue_next_turn() noexcept {
        this->complete = &arrive;
        this->loop().defer(*this);
    }
    static void arrive(io::operation* op) noexcept {
        static_cast<connection_request*>(op)->arrived();
    }
    static void expire_deadline(io::timer_entry* entry) noexcept {
        connection_request& self = *static_cast<connection_request*>(entry);
        if (!self.loop().ending()) self.stop();
    }

    std::shared_ptr<connection<Next>> on_;  // empty once the operation has ended
    const uses uses_;
    const bool was_open_;
    bool has_computed_ = false;
    bool starting_ = false;
    bool halted_ = false;    // a stop has come
    bool gives_up_ = false;  // and it ends the operation
    bool waits_for_lane_ = false;
    inner inner_ = inner::none;
    std::size_t inner_bytes_ = 0;
    std::error_code inner_error_;
    std::error_code failure_;
    inplace_stop_source halt_;
    manual_lifetime<receiving> receive_;
    manual_lifetime<sending> send_;
};

}  // namespace coppice::tls::internal
