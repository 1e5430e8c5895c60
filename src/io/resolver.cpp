// Questions to the system's resolver, for io/resolver.hpp.
#include <coppice/io/resolver.hpp>

#include <netdb.h>
#include <cerrno>
#include <system_error>

namespace coppice::io {

namespace {

class resolver_errors final : public std::error_category {
public:
    const char* name() const noexcept override { return "resolver"; }
    std::string message(int code) const override { return ::gai_strerror(code); }
};

struct addresses {
    ~addresses() {
        if (first != nullptr) ::freeaddrinfo(first);
    }
    addrinfo* first = nullptr;
};

}  // namespace

const std::error_category& resolver_category() noexcept {
    static const resolver_errors category;
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
    int look_up() noexcept {
        addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;  // each address once
        addresses list;
        const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &list.first);
        if (failed != 0) return failed;
        try {
            for (const addrinfo* a = list.first; a != nullptr; a = a->ai_next) add(*a);
        } catch (const std::bad_alloc&) {
            return EAI_MEMORY;
        }
        return found.empty() ? EAI_NONAME : 0;
    }
    void add(const addrinfo& a) {
        if (a.ai_family == AF_INET) {
            sockaddr_in address = *reinterpret_cast<const sockaddr_in*>(a.ai_addr);
            address.sin_port = htons(port);
            found.push_back(
                endpoint::from(reinterpret_cast<const sockaddr*>(&address), sizeof address));
        } else if (a.ai_family == AF_INET6) {
            sockaddr_in6 address = *reinterpret_cast<const sockaddr_in6*>(a.ai_addr);
            address.sin6_port = htons(port);
            found.push_back(
                endpoint::from(reinterpret_cast<const sockaddr*>(&address), sizeof address));
        }
    }

    resolve_request* asker;
    atomic<bool> unwanted{false};  // set by the loop: the answer will be dropped
    context& owner;
    std::string host;
    std::uint16_t port;
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
        owner().background().run(*q);
        question_ = q.release();
    } catch (const std::bad_alloc&) {
        set_outcome(-ENOMEM);
        return true;
    } catch (const std::system_error& e) {  // no thread
        set_outcome(-e.code().value());
        return true;
    }
    // Armed even without a deadline: the end of the context expires every timer.
    owner().arm(*this, deadline());
    listen();
    return false;
}

void resolve_request::interrupt() noexcept {
    if (question_ == nullptr) return;          // it is ending already
    question_->unwanted.store(true, relaxed);  // relaxed: a hint
    std::exchange(question_, nullptr)->asker = nullptr;
    set_outcome(-ECANCELED);
    if (timer_entry::armed()) owner().disarm(*this);
    complete = [](operation* op) noexcept { static_cast<resolve_request*>(op)->ended(); };
    owner().defer(*this);
}

void resolve_request::answered() noexcept {
    owner().disarm(*this);
    ended();
}

void resolve_request::expire(timer_entry* entry) noexcept {
    resolve_request& self = *static_cast<resolve_request*>(entry);
    if (self.owner().ending()) {
        self.interrupt();
    } else {
        self.stop();
    }
}

}  // namespace coppice::io
