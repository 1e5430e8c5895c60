// Questions to the system's resolver, for io/resolver.hpp.
#include <coppice/io/resolver.hpp>

#include <coppice/base/atomic.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/io/workers.hpp>

#include "look_up.hpp"

#include <netdb.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>

namespace coppice::io {

namespace {

class resolver_errors final : public std::error_category {
public:
    const char* name() const noexcept override { return "resolver"; }
    std::string message(int code) const override { return ::gai_strerror(code); }
};

}  // namespace

const std::error_category& resolver_category() noexcept {
    // Never destroyed: an error may outlive main(), and nothing is registered to run after it.
    alignas(resolver_errors) static std::byte place[sizeof(resolver_errors)];
    static const std::error_category& category = *::new (static_cast<void*>(place)) resolver_errors;
    return category;
}

namespace {

atomic<look_up_function> asked{nullptr};  // nullptr: the system; set by tests

int ask_the_system(const std::string& host, std::uint16_t port,
                   std::vector<endpoint>& found) noexcept {
    const look_up_function function = asked.load(relaxed);  // relaxed: a function, always there
    return function != nullptr ? function(host, port, found) : kernel().look_up(host, port, found);
}

}  // namespace

void look_up_by(look_up_function function) noexcept {
    asked.store(function, relaxed);  // relaxed: see above
}

// A look-up on its way to a worker and back. Who frees it:
//
//   queued      the loop, if it withdraws the job
//   under way   abandoned: the worker, when the call is over; else it becomes posted
//   posted      the loop, when it arrives there
//
// The mutex guards the step from under way to abandoned or posted. The post is made under it, so
// that a context that has abandoned its look-ups is no longer used by any worker.
struct resolve_request::question : job, operation {
    question(resolve_request& r, context& c)
        : job(&ask), operation(&answer), asker(&r), owner(c), host(r.host_), port(r.port_) {}

    static void ask(job* j) noexcept {
        question* const q = static_cast<question*>(j);
        q->failure = ask_the_system(q->host, q->port, q->found);
        {
            const std::lock_guard lock(q->mutex);
            if (!q->abandoned) {
                q->posted = true;
                q->owner.post(*q);  // answer() waits for the lock
                return;
            }
        }
        delete q;
    }
    static void answer(operation* op) noexcept {
        const std::unique_ptr<question> q(static_cast<question*>(op));
        {
            const std::lock_guard the_worker_is_gone(q->mutex);
        }
        if (q->asker == nullptr) return;
        q->asker->question_ = nullptr;
        q->asker->failure_ = q->failure;
        q->asker->found_ = std::move(q->found);
        q->asker->answered();
    }
    // Nobody wants the answer. Last of all: q may be gone.
    static void abandon(question* q) noexcept {
        if (q->due != time_point::max() || name_workers().withdraw(*q)) {
            delete q;
            return;
        }
        const std::lock_guard lock(q->mutex);
        q->asker = nullptr;
        q->abandoned = !q->posted;
    }

    resolve_request* asker;  // the loop's; nullptr: nobody wants the answer
    context& owner;          // not used once it is abandoned
    std::string host;
    std::uint16_t port;
    time_point due = time_point::max();  // of a simulation's answer; max: a worker has it
    int failure = 0;
    std::vector<endpoint> found;
    std::mutex mutex;        // guards the two below
    bool abandoned = false;  // written by the loop
    bool posted = false;     // written by the worker
};

std::error_code resolve_request::error() const noexcept {
    if (failure_ != 0) return {failure_, resolver_category()};
    return base::error();
}

bool resolve_request::submit() noexcept {
    set_outcome(0);
    try {
        if (const result<endpoint> literal = endpoint::parse(host_, port_)) {
            found_.push_back(*result<endpoint>(literal));
            return true;
        }
        auto q = std::make_unique<question>(*this, owner());
        if (const std::optional<duration> delay = owner().system().look_up_delay(q->host)) {
            q->due = saturating_add(owner().now(), *delay);
        } else if (const std::error_code no_thread = name_workers().run(*q)) {
            set_outcome(-no_thread.value());
            return true;
        }
        question_ = q.release();
    } catch (const std::bad_alloc&) {
        set_outcome(-ENOMEM);
        return true;
    }
    // Armed even without a deadline: the end of the context expires every timer.
    owner().arm(*this, std::min(deadline(), question_->due));
    listen();
    return false;
}

void resolve_request::interrupt() noexcept {
    if (question_ == nullptr) return;  // it is ending already
    question::abandon(std::exchange(question_, nullptr));
    set_outcome(-ECANCELED);
    if (timer_entry::armed()) owner().disarm(*this);
    complete = [](operation* op) noexcept { static_cast<resolve_request*>(op)->ended(); };
    owner().defer(*this);
}

void resolve_request::answered() noexcept {
    if (timer_entry::armed()) owner().disarm(*this);
    ended();
}

void resolve_request::expire(timer_entry* entry) noexcept {
    resolve_request& self = *static_cast<resolve_request*>(entry);
    if (self.owner().ending()) {
        self.interrupt();
    } else if (self.question_->due <= self.owner().now()) {
        question& q = *self.question_;
        q.failure = self.owner().system().look_up(q.host, q.port, q.found);
        question::answer(&q);
    } else {
        self.stop();
    }
}

}  // namespace coppice::io
