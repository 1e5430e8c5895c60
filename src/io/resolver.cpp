// Look-ups through the system's resolver, for io/resolver.hpp.
#include <coppice/io/resolver.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/io/internal/workers.hpp>

#include "look_up.hpp"

#include <netdb.h>
#include <pthread.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>

namespace coppice::io {

using namespace internal;

namespace {

class resolver_errors final : public std::error_category {
public:
    const char* name() const noexcept override { return "resolver"; }
    std::string message(int code) const override { return ::gai_strerror(code); }
};

}  // namespace

const std::error_category& resolver_category() noexcept {
    // Never destroyed: an error may outlive main(), and no destructor is registered.
    alignas(resolver_errors) static std::byte place[sizeof(resolver_errors)];
    static const std::error_category& category = *::new (static_cast<void*>(place)) resolver_errors;
    return category;
}

namespace {

atomic<look_up_function> asked{nullptr};  // nullptr: the system's; set by tests

int ask_the_system(const std::string& host, std::vector<endpoint>& found) noexcept {
    // relaxed: it points to code, which always exists
    const look_up_function function = asked.load(relaxed);
    return function != nullptr ? function(host, found) : kernel().look_up(host, 0, found);
}

}  // namespace

void look_up_by(look_up_function function) noexcept {
    asked.store(function, relaxed);  // relaxed: see above
}

// The names that workers are looking up. Each name is looked up once at a time, however many
// questions wait for it. A name that hangs therefore holds one thread, even if it is given up and
// asked for again and again.
class resolve_request::look_ups : immovable {
public:
    struct look_up;
    static look_ups& all() noexcept;
    // Asks for a name. The answer will be posted to the question's context. Errors: no thread;
    // std::bad_alloc.
    std::error_code ask(question& q);
    // Frees the question: now, or on arrival if its answer has already been posted.
    void abandon(question* q) noexcept;

private:
    look_ups() noexcept;
    void end(look_up& l) noexcept;

    std::mutex mutex_;  // guards by_name_, and the lists of waiting questions
    std::unordered_map<std::string_view, std::unique_ptr<look_up>> by_name_;
};

// One request's question. Owned by the loop; once answered, by the loop's mailbox.
struct resolve_request::question : operation, list_hook<> {
    question(resolve_request& r, context& c)
        : operation(&answer), asker(&r), owner(c), host(r.host_), port(r.port_) {}

    static void answer(operation* op) noexcept {
        const std::unique_ptr<question> q(static_cast<question*>(op));
        if (q->asker == nullptr) return;
        q->asker->question_ = nullptr;
        q->asker->failure_ = q->failure;
        q->asker->found_ = std::move(q->found);
        q->asker->answered();
    }

    resolve_request* asker;  // used by the loop; nullptr: the request was given up
    context& owner;
    std::string host;
    std::uint16_t port;
    time_point due = time_point::max();  // when a simulation answers
    look_ups::look_up* asks = nullptr;   // the look-up it waits for; nullptr: a simulation answers
    int failure = 0;
    std::vector<endpoint> found;
};

// A name that a worker looks up, and the questions that wait for the answer. It owns everything
// that the worker uses, so the look-up also ends properly after all its questions have been
// withdrawn.
struct resolve_request::look_ups::look_up : job {
    explicit look_up(const std::string& whose) : job(&call), host(whose) {}
    static void call(job* j) noexcept {
        look_up& self = *static_cast<look_up*>(j);
        self.failure = ask_the_system(self.host, self.found);
        all().end(self);
    }
    void tell(question& q) const noexcept {
        q.failure = failure;
        try {
            for (const endpoint& e : found) {
                q.found.push_back(e.port() == 0 ? e.with_port(q.port) : e);
            }
        } catch (const std::bad_alloc&) {
            q.failure = EAI_MEMORY;
        }
    }

    const std::string host;
    intrusive_list<question> waiting;  // guarded by look_ups::mutex_
    int failure = 0;
    std::vector<endpoint> found;
};

// Never destroyed, like the workers.
resolve_request::look_ups& resolve_request::look_ups::all() noexcept {
    alignas(look_ups) static std::byte place[sizeof(look_ups)];
    static look_ups& one = *::new (static_cast<void*>(place)) look_ups;
    return one;
}

// Registers fork handlers after those of the workers. At a fork, handlers registered later run
// earlier, so this lock is taken before the workers' locks, as everywhere else.
resolve_request::look_ups::look_ups() noexcept {
    (void)name_workers();
    ::pthread_atfork([] { all().mutex_.lock(); }, [] { all().mutex_.unlock(); },
                     [] {
                         // Look-ups under way are the parent's; their questions stay in their
                         // lists.
                         for (auto& entry : all().by_name_) (void)entry.second.release();
                         all().by_name_.clear();
                         all().mutex_.unlock();
                     });
}

std::error_code resolve_request::look_ups::ask(question& q) {
    const std::lock_guard lock(mutex_);
    auto at = by_name_.find(q.host);
    if (at == by_name_.end()) {
        auto made = std::make_unique<look_up>(q.host);
        const std::string_view key = made->host;
        at = by_name_.emplace(key, std::move(made)).first;
        if (const std::error_code no_thread = name_workers().run(*at->second)) {
            by_name_.erase(at);
            return no_thread;
        }
    }
    q.asks = at->second.get();
    q.asks->waiting.push_back(q);
    return {};
}

void resolve_request::look_ups::abandon(question* q) noexcept {
    const std::lock_guard lock(mutex_);
    if (!q->linked()) {  // answered: it is in the mailbox
        q->asker = nullptr;
        return;
    }
    look_up& l = *q->asks;
    decltype(l.waiting)::erase(*q);
    delete q;
    if (l.waiting.empty() && name_workers().withdraw(l)) by_name_.erase(by_name_.find(l.host));
}

// Posts under the lock. A request that was given up has removed its question from the list, so its
// context, which may be destroyed by now, is not used.
void resolve_request::look_ups::end(look_up& l) noexcept {
    const std::lock_guard lock(mutex_);
    while (question* const q = l.waiting.pop_front()) {
        l.tell(*q);
        q->owner.post(*q);  // the loop may destroy it before this returns
    }
    if (const auto at = by_name_.find(l.host); at != by_name_.end() && at->second.get() == &l) {
        by_name_.erase(at);
    }
}

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
        if (host_.find('\0') != host_.npos) {  // else the system would see only a part of the name
            failure_ = EAI_NONAME;
            return true;
        }
        auto q = std::make_unique<question>(*this, owner());
        if (const std::optional<duration> delay = owner().system().look_up_delay(q->host)) {
            q->due = saturating_add(owner().now(), *delay);
        } else if (const std::error_code no_thread = look_ups::all().ask(*q)) {
            set_outcome(-no_thread.value());
            return true;
        }
        question_ = q.release();
    } catch (const std::bad_alloc&) {
        set_outcome(-ENOMEM);
        return true;
    }
    // Armed even without a deadline, because the end of the context expires every timer.
    owner().arm(*this, std::min(deadline(), question_->due));
    listen();
    return false;
}

void resolve_request::interrupt() noexcept {
    if (question_ == nullptr) return;  // already ending
    question* const q = std::exchange(question_, nullptr);
    if (q->asks != nullptr) {
        look_ups::all().abandon(q);
    } else {
        delete q;
    }
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
