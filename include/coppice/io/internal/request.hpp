// request: one operation that the user started, on its way through a loop. Tokens build on it.
#pragma once
// begin() may be called on any thread. On a thread other than the loop's it posts the request, and
// the loop starts it in its next turn. From then on everything happens on the loop:
//
//   begin -> [posted] -> launch -> ended at once                       : see below
//                              \-> pending -> ended, settle -> [relay] : completed()
//
// If the request ends at once on the loop, begin() returns true. If it was posted, completed() is
// called instead. After many completions in a row one waits for the next turn
// (event_loop::may_complete_here).
//
// A stop request or a deadline that passes interrupts a pending request. It then ends as stopped,
// in the same turn or the next, unless its result came first. Once a request has ended, nothing
// touches it or the memory that it was given.
//
// A request is constructed from its type's `arguments`, a small copyable value. After its end it
// gives error(), stopped(), and take(), which returns its value_type.

#include <coppice/io/internal/event_loop.hpp>
#include <coppice/io/internal/stop_relay.hpp>
#include <coppice/token/completion.hpp>

#include <string>
#include <system_error>

namespace coppice::io::internal {

// Item is `operation`, or a type derived from it that the loop needs, such as ring_operation.
template <class Item>
class basic_request : protected Item, stop_relay<event_loop, operation> {
    using relay = stop_relay<event_loop, operation>;

public:
    // Starts the request. Returns true if it has ended; completed() will then not be called.
    // Otherwise completed() is called on the loop, possibly before this returns.
    // Threads: any. Cost: no allocation; a post if this is not the loop's thread.
    [[nodiscard]] bool begin(inplace_stop_token token, time_point deadline) noexcept {
        token_ = token;
        deadline_ = deadline;
        if (loop_->is_current()) return launch() && completes_here();
        this->complete = &launch_posted;
        loop_->post(*this);
        return false;
    }

    std::error_code error() const noexcept {
        if (outcome_ >= 0) [[likely]]
            return no_error;
        return std::error_code(-outcome_, std::system_category());
    }
    // Returns true if it ended because of a stop request or its deadline; error() is then
    // operation_canceled.
    bool stopped() const noexcept { return stopped_ && outcome_ == -ECANCELED; }

protected:
    template <class... Args>
    explicit basic_request(event_loop& loop, Args... args) noexcept
        : Item(&launch_posted, args...), loop_(&loop) {}
    ~basic_request() = default;

    // Called on the loop. submit() returns true if the operation ended at once and its outcome is
    // set. Otherwise it arranges that ended() is called in a later turn. interrupt() makes a
    // pending operation end soon, but not before interrupt() returns.
    virtual bool submit() noexcept = 0;
    virtual void interrupt() noexcept = 0;
    // Called on the loop as the last access; may destroy the request.
    virtual void completed() noexcept = 0;

    // Called by submit() once the operation is certain to be pending: from now on a stop may
    // interrupt it.
    void listen() noexcept { relay::listen(*loop_, token_, &interrupt_relayed, &complete_relayed); }
    // Called when the operation has ended in a later turn than the one that started it.
    void ended() noexcept {
        if (relay::settle() && completes_here()) completed();
    }
    // Records that the operation is over because its deadline has passed.
    void end_at_deadline() noexcept {
        stopped_ = true;
        outcome_ = -ECANCELED;
    }
    // Called on a stop request, and when the deadline passes.
    void stop() noexcept {
        stopped_ = true;
        interrupt();
    }

    // Return the loop that completes the request, and its context.
    event_loop& loop() const noexcept { return *loop_; }
    context& owner() const noexcept { return loop_->owner(); }
    time_point deadline() const noexcept { return deadline_; }
    void set_outcome(int outcome) noexcept { outcome_ = outcome; }
    int outcome() const noexcept { return outcome_; }
    bool stop_came() const noexcept { return stopped_; }

private:
    bool launch() noexcept {
        const bool late = deadline_ != time_point::max() && deadline_ <= loop_->now();
        if (late || token_.stop_requested() || loop_->ending()) {
            stopped_ = !loop_->ending();
            outcome_ = -ECANCELED;
            return true;
        }
        return submit();
    }
    // Called when the request has ended. Returns true if the caller completes it. Otherwise it
    // completes in the next turn, because too many have completed in a row.
    bool completes_here() noexcept {
        if (loop_->may_complete_here()) [[likely]]
            return true;
        this->complete = &complete_deferred;
        loop_->defer(*this);
        return false;
    }
    static void complete_deferred(operation* op) noexcept {
        static_cast<basic_request*>(static_cast<Item*>(op))->completed();
    }
    static void launch_posted(operation* op) noexcept {
        basic_request& self = *static_cast<basic_request*>(static_cast<Item*>(op));
        if (self.launch()) self.completed();
    }
    static void interrupt_relayed(relay& r) noexcept { static_cast<basic_request&>(r).stop(); }
    static void complete_relayed(relay& r) noexcept { static_cast<basic_request&>(r).completed(); }

    event_loop* loop_;
    inplace_stop_token token_;
    time_point deadline_ = time_point::max();
    int outcome_ = -ECANCELED;  // 0 or more, or a negative errno
    bool stopped_ = false;
};

// The file that a request is for, as it was when the request was made.
struct descriptor_reference {
    explicit descriptor_reference(context& c) noexcept : owner(&c) {}
    descriptor_reference(context& c, descriptor* d) noexcept
        : owner(&c), on(d), generation(d == nullptr ? 0 : d->generation) {}
    context* owner;
    descriptor* on = nullptr;  // nullptr: nothing is open
    std::uint32_t generation = 0;
};

// A request on an open file. Errors: bad_file_descriptor if nothing is open; operation_canceled if
// the file is closed before the request ends, or its context is destroyed.
template <class Item = ring_operation>
class descriptor_request : public basic_request<Item>, timer_entry {
    using base = basic_request<Item>;

protected:
    descriptor_request(const descriptor_reference& file, opcode what) noexcept
        : base(*file.owner, what), timer_entry(&expire_deadline), generation_(file.generation) {
        this->on = file.on;
    }
    ~descriptor_request() = default;

    // Interprets the ring's result. Returns 0 or more, or a negative errno, to end with it; -EAGAIN
    // to continue with another ring operation on the same file.
    virtual int judge(int returned) noexcept { return returned; }

    void interrupt() noexcept override { this->loop().cancel(*this); }
    // Returns true if the file that the request is for is still open.
    bool is_open() const noexcept {
        return this->on != nullptr && this->on->generation == generation_;
    }
    bool submit() noexcept override {
        if (!is_open()) {
            this->set_outcome(this->on == nullptr ? -EBADF : -ECANCELED);
            return true;
        }
        if (start_on_ring()) return true;
        if (this->deadline() != time_point::max()) this->loop().arm(*this, this->deadline());
        this->listen();
        return false;
    }
    // Called on the loop before submit(). Returns true if another operation in this direction is
    // pending, which is an error of the caller. The loop checks this for every descriptor; a
    // request that checks first can name its object in the message.
    bool is_second() const noexcept { return is_open() && this->on->slot(this->code) != nullptr; }
    // Returns how many bytes were received or sent; 0 after an error.
    std::size_t bytes() const noexcept {
        return this->outcome() < 0 ? 0 : static_cast<std::size_t>(this->outcome());
    }
    // Returns the path of the file as it was given to open; empty if it has none or is closed.
    std::string file_name() const {
        return is_open() && this->on->name != nullptr ? *this->on->name : std::string();
    }
    // For a request that opens its own file.
    void refer_to(descriptor& d) noexcept {
        this->on = &d;
        generation_ = d.generation;
    }

private:
    // Returns true if the operation ended at once.
    bool start_on_ring() noexcept {
        this->complete = &ended_on_ring;
        while (this->loop().start(*this)) {
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
        if (self.timer_entry::armed()) self.loop().disarm(self);
        self.ended();
    }
    static void expire_deadline(timer_entry* entry) noexcept {
        descriptor_request& self = *static_cast<descriptor_request*>(entry);
        if (!self.loop().ending()) self.stop();
    }

    std::uint32_t generation_;
};

}  // namespace coppice::io::internal
