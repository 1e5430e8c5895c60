// Questions to the system's resolver, for io/resolver.hpp.
#include <coppice/base/saturating.hpp>
#include <coppice/io/resolver.hpp>

#include <netdb.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
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

// On its way to the worker and back. Owns itself; `asker` is the loop's, and gone if it was
// stopped.
struct resolve_request::question : job, operation {
    question(resolve_request& r, context& c)
        : job(&ask), operation(&answer), asker(&r), owner(c), host(r.host_), port(r.port_) {}

    static void ask(job* j) noexcept {
        question& q = *static_cast<question*>(j);
        q.failure = q.unwanted.load(relaxed) ? EAI_AGAIN : q.look_up();  // relaxed: a hint
        q.owner.post(q);
    }
    static void answer(operation* op) noexcept {
        const std::unique_ptr<question> q(static_cast<question*>(op));
        if (q->asker == nullptr) return;
        q->asker->question_ = nullptr;
        q->asker->failure_ = q->failure;
        q->asker->found_ = std::move(q->found);
        q->asker->answered();
    }
    int look_up() noexcept { return owner.system().look_up(host, port, found); }

    resolve_request* asker;
    atomic<bool> unwanted{false};  // set by the loop: the answer will be dropped
    context& owner;
    std::string host;
    std::uint16_t port;
    time_point due = time_point::max();  // of a simulation's answer; max: the worker has it
    int failure = 0;
    std::vector<endpoint> found;
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
        } else {
            owner().background().run(*q);
        }
        question_ = q.release();
    } catch (const std::bad_alloc&) {
        set_outcome(-ENOMEM);
        return true;
    } catch (const std::system_error& e) {  // no thread
        set_outcome(-e.code().value());
        return true;
    }
    // Armed even without a deadline: the end of the context expires every timer.
    owner().arm(*this, std::min(deadline(), question_->due));
    listen();
    return false;
}

void resolve_request::interrupt() noexcept {
    if (question_ == nullptr) return;  // it is ending already
    question* const q = std::exchange(question_, nullptr);
    if (q->due == time_point::max()) {
        q->unwanted.store(true, relaxed);  // relaxed: a hint
        q->asker = nullptr;
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
        self.question_->failure = self.question_->look_up();
        question::answer(self.question_);
    } else {
        self.stop();
    }
}

}  // namespace coppice::io
