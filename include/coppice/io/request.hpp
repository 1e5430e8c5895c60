// request: one operation that a user started, on its way through a loop; what tokens are built on.
#pragma once
// begin() may be called on any thread: elsewhere than on the loop it posts the request, and the
// loop starts it in its next turn. From then on everything happens on the loop:
//
//   begin -> [posted] -> launch -> ended at once                       : begin() or the post says
//   so
//                              \-> pending -> ended, settle -> [relay] : completed()
//
// A stop request, or a deadline that passes, interrupts what is pending: it ends in the same or the
// next turn, stopped, unless the result came first. Nothing touches the request, nor the memory it
// was given, once it has ended.
//
// A request is constructed from its type's `arguments`, a small copyable value, and afterwards
// gives error(), stopped() and take(), its value_type.

#include <coppice/io/event_loop.hpp>
#include <coppice/io/stop_relay.hpp>
#include <coppice/token/completion.hpp>

#include <string>
#include <system_error>

namespace coppice::io {

// Item is operation, or what else of it the loop needs: ring_operation.
template <class Item>
class basic_request : protected Item, internal::stop_relay<context, operation> {
    using relay = internal::stop_relay<context, operation>;

public:
    // True: it has ended, and completed() will not be called. Otherwise completed() is called on
    // the loop, possibly before this returns.
    // Threads: any. Cost: no allocation; a post if this is not the loop's thread.
    [[nodiscard]] bool begin(inplace_stop_token token, internal::time_point deadline) noexcept {
        token_ = token;
        deadline_ = deadline;
        if (owner_->is_current()) return launch();
        this->complete = &launch_posted;
        owner_->post(*this);
        return false;
    }

    std::error_code error() const noexcept {
        if (outcome_ >= 0) [[likely]]
            return no_error;
        return std::error_code(-outcome_, std::system_category());
    }
    // It ended because of a stop request or its deadline: error() is operation_canceled.
    bool stopped() const noexcept { return stopped_ && outcome_ == -ECANCELED; }

protected:
    template <class... Args>
    explicit basic_request(context& owner, Args... args) noexcept
        : Item(&launch_posted, args...), owner_(&owner) {}
    ~basic_request() = default;

    // On the loop. submit() is true if the operation ended at once, with its result set. Else ended
    // is called from a later turn. interrupt() makes a pending operation end soon, but not before
    // it returns.
    virtual bool submit() noexcept = 0;
    virtual void interrupt() noexcept = 0;
    // On the loop, last of all; may destroy the request.
    virtual void completed() noexcept = 0;

    // For submit(): that the operation is pending is certain, a stop may interrupt it.
    void listen() noexcept {
        relay::listen(*owner_, token_, &interrupt_relayed, &complete_relayed);
    }
    // The operation has ended in a later turn than it was started in.
    void ended() noexcept {
        if (relay::settle()) completed();
    }
    // The operation is over because its deadline has come.
    void end_at_deadline() noexcept {
        stopped_ = true;
        outcome_ = -ECANCELED;
    }
    // A stop request or the deadline.
    void stop() noexcept {
        stopped_ = true;
        interrupt();
    }

    context& owner() const noexcept { return *owner_; }
    internal::time_point deadline() const noexcept { return deadline_; }
    void set_outcome(int outcome) noexcept { outcome_ = outcome; }
    int outcome() const noexcept { return outcome_; }
    bool stop_came() const noexcept { return stopped_; }

private:
    bool launch() noexcept {
        const bool late = deadline_ != internal::time_point::max() && deadline_ <= owner_->now();
        if (late || token_.stop_requested() || owner_->ending()) {
            stopped_ = !owner_->ending();
            outcome_ = -ECANCELED;
            return true;
        }
        return submit();
    }
    static void launch_posted(operation* op) noexcept {
        basic_request& self = *static_cast<basic_request*>(static_cast<Item*>(op));
        if (self.launch()) self.completed();
    }
    static void interrupt_relayed(relay& r) noexcept { static_cast<basic_request&>(r).stop(); }
    static void complete_relayed(relay& r) noexcept { static_cast<basic_request&>(r).completed(); }

    context* owner_;
    inplace_stop_token token_;
    internal::time_point deadline_ = internal::time_point::max();
    int outcome_ = -ECANCELED;  // >= 0, or a negative errno
    bool stopped_ = false;
};

// The file that a request is for, as it was when the request was made.
struct descriptor_reference {
    explicit descriptor_reference(context& c) noexcept : owner(&c) {}
    descriptor_reference(context& c, internal::descriptor* d) noexcept
        : owner(&c), on(d), generation(d == nullptr ? 0 : d->generation) {}
    context* owner;
    internal::descriptor* on = nullptr;  // nullptr: nothing is open
    std::uint32_t generation = 0;
};

// A request on an open file. Errors: bad_file_descriptor if nothing is open; operation_canceled if
// the file is closed while the request is on its way, or its context ends.
template <class Item = ring_operation>
class descriptor_request : public basic_request<Item>, timer_entry {
    using base = basic_request<Item>;

protected:
    descriptor_request(const descriptor_reference& file, opcode what) noexcept
        : base(*file.owner, what), timer_entry(&expire_deadline), generation_(file.generation) {
        this->on = file.on;
    }
    ~descriptor_request() = default;

    // What the ring's result means: 0 or more to end with it, -EAGAIN to go on with another
    // operation on the same file.
    virtual int judge(int returned) noexcept { return returned; }

    void interrupt() noexcept override { this->owner().cancel(*this); }
    // Whether the file is open that the request is for.
    bool is_open() const noexcept {
        return this->on != nullptr && this->on->generation == generation_;
    }
    bool submit() noexcept override {
        if (!is_open()) {
            this->set_outcome(this->on == nullptr ? -EBADF : -ECANCELED);
            return true;
        }
        if (start_on_ring()) return true;
        if (this->deadline() != internal::time_point::max())
            this->owner().arm(*this, this->deadline());
        this->listen();
        return false;
    }
    // On the loop, before submit(): whether another operation in this direction is pending, which
    // is the caller's mistake. The loop says so of any descriptor; a request may name its object.
    bool is_second() const noexcept { return is_open() && this->on->slot(this->code) != nullptr; }
    // What was received or sent; 0 after an error.
    std::size_t bytes() const noexcept {
        return this->outcome() < 0 ? 0 : static_cast<std::size_t>(this->outcome());
    }
    // The name of the file, as it was opened; empty if there is none, or it is closed.
    std::string file_name() const {
        return is_open() && this->on->name != nullptr ? *this->on->name : std::string();
    }
    // For a request that opens its file.
    void refer_to(internal::descriptor& d) noexcept {
        this->on = &d;
        generation_ = d.generation;
    }

private:
    // True: it ended at once.
    bool start_on_ring() noexcept {
        this->complete = &ended_on_ring;
        while (this->owner().start(*this)) {
            this->set_outcome(judge(ring_operation::result));
            if (this->outcome() != -EAGAIN) return true;
        }
        return false;
    }
    static void ended_on_ring(operation* op) noexcept {
        descriptor_request& self = *static_cast<descriptor_request*>(static_cast<Item*>(op));
        self.set_outcome(self.judge(self.ring_operation::result));
        if (self.outcome() == -EAGAIN) {
            if (self.stop_came()) {
                self.set_outcome(-ECANCELED);
            } else if (!self.start_on_ring()) {
                return;
            }
        }
        if (self.timer_entry::armed()) self.owner().disarm(self);
        self.ended();
    }
    static void expire_deadline(timer_entry* entry) noexcept {
        descriptor_request& self = *static_cast<descriptor_request*>(entry);
        if (!self.owner().ending()) self.stop();
    }

    std::uint32_t generation_;
};

}  // namespace coppice::io
