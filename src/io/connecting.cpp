// Connecting the streams of io/internal/connecting.hpp, and the race between a name's addresses.
#include <coppice/io/internal/connecting.hpp>

#include <coppice/base/saturating.hpp>
#include <coppice/io/option.hpp>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

namespace coppice::io::internal {

bool connect_request::submit() noexcept {
    context& owner = descriptor_request::owner();
    target_->close();
    const coppice::internal::result<int> fd = owner.system().socket(to_.family(), SOCK_STREAM, 0);
    if (!fd) {
        set_outcome(-fd.error().value());
        return true;
    }
    const no_delay option(true);
    std::error_code error;
    if (to_.is_v4() || to_.is_v6()) {
        error = owner.system().set_option(fd.value(), no_delay::level, no_delay::name,
                                          option.data(), no_delay::size);
    }
    coppice::internal::result<descriptor*> adopted = error;
    if (!error) adopted = owner.adopt(fd.value());
    if (!adopted) {
        owner.system().close(fd.value());
        set_outcome(-adopted.error().value());
        return true;
    }
    static_cast<open_file&>(*target_) = open_file(owner, adopted.value());
    refer_to(*adopted.value());
    return descriptor_request::submit();
}

// ---- The race ---------------------------------------------------------------------------------

std::vector<endpoint> in_turns(std::span<const endpoint> addresses) {
    std::vector<endpoint> ordered;
    if (addresses.empty()) return ordered;
    ordered.reserve(std::min(addresses.size(), connect_race_request::addresses_max));
    const int first_family = addresses.front().family();
    const auto is_first = [&](const endpoint& e) { return e.family() == first_family; };
    const auto is_other = [&](const endpoint& e) { return e.family() != first_family; };
    const auto end = addresses.end();
    auto first = addresses.begin();
    auto other = std::find_if(addresses.begin(), end, is_other);
    while (ordered.size() != ordered.capacity() && (first != end || other != end)) {
        if (first != end) {
            ordered.push_back(*first);
            first = std::find_if(first + 1, end, is_first);
        }
        if (other != end && ordered.size() != ordered.capacity()) {
            ordered.push_back(*other);
            other = std::find_if(other + 1, end, is_other);
        }
    }
    return ordered;
}

namespace {

// Returns true if the error says only that this machine cannot reach the address family, and
// nothing about the peer.
bool is_local(std::error_code error) noexcept {
    return error == std::errc::network_unreachable || error == std::errc::address_not_available ||
           error == std::errc::address_family_not_supported;
}

constexpr std::size_t told_max = 4;  // how many addresses a message names

struct attempt_socket {
    explicit attempt_socket(context& owner) noexcept : socket(owner) {}
    stream socket;
};

}  // namespace

class connect_race_request::look_up final : public resolve_request {
public:
    look_up(connect_race_request& r, const resolve_request::arguments& a) noexcept
        : resolve_request(a), race_(r) {}

private:
    void completed() noexcept override {
        race_.looked_up();
        race_.go_on();
    }
    connect_race_request& race_;
};

class connect_race_request::attempt final : public attempt_socket, public connect_request {
public:
    attempt(connect_race_request& r, const endpoint& to) noexcept
        : attempt_socket(r.owner()), connect_request({socket, to}), race_(r) {}

private:
    void completed() noexcept override {
        race_.attempted(*this);
        race_.go_on();
    }
    connect_race_request& race_;
};

connect_race_request::connect_race_request(const arguments& a) noexcept
    : base(a.target->owner()), timer_entry(&expire), asked_(a) {}

connect_race_request::~connect_race_request() {
    COPPICE_CHECK(pending_ == 0, "a connect_race_request ended early");
}

std::string connect_race_request::subject() const {
    std::string text;
    if (asked_.addresses.empty()) {
        const bool bare = asked_.host.find(':') == asked_.host.npos || asked_.host.front() == '[';
        text.append(bare ? "" : "[").append(asked_.host).append(bare ? ":" : "]:");
        return text + std::to_string(asked_.port);
    }
    for (const endpoint& e : asked_.addresses.first(std::min(asked_.addresses.size(), told_max))) {
        text.append(text.empty() ? "" : ", ").append(e.to_string());
    }
    return asked_.addresses.size() > told_max ? text + ", ..." : text;
}

bool connect_race_request::submit() noexcept {
    asked_.target->close();
    if (asked_.refused) {
        failure_ = asked_.refused;
        set_outcome(-EINVAL);
        return true;
    }
    if (asked_.addresses.empty()) {
        look_up_.reset(
            try_new<look_up>(*this, resolve_request::arguments{owner(), asked_.host, asked_.port}));
        if (look_up_ == nullptr) {
            set_outcome(-ENOMEM);
            return true;
        }
        ++pending_;
        if (look_up_->begin(halt_.get_token(), time_point::max())) looked_up();
    } else {
        order(asked_.addresses);
    }
    try_addresses();
    if (pending_ == 0) {
        conclude();
        return true;
    }
    set_alarm();
    listen();
    return false;
}

void connect_race_request::looked_up() noexcept {
    --pending_;
    if (owner().ending()) halted_ = true;
    if (const std::error_code error = look_up_->error()) {
        if (!halted_) first_failure_ = error;
    } else {
        order(look_up_->take());
    }
}

void connect_race_request::order(std::span<const endpoint> found) noexcept {
    try {
        addresses_ = in_turns(found);
        attempts_.reserve(addresses_.size());
    } catch (const std::bad_alloc&) {
        addresses_.clear();
        first_failure_ = std::make_error_code(std::errc::not_enough_memory);
    }
}

void connect_race_request::try_addresses() noexcept {
    while (!halted_ && attempts_.size() != addresses_.size() &&
           (next_at_ == time_point::min() || next_at_ <= owner().now())) {
        try_next();
    }
}

void connect_race_request::try_next() noexcept {
    std::unique_ptr<attempt> made(try_new<attempt>(*this, addresses_[attempts_.size()]));
    if (made == nullptr) {
        first_failure_ = std::make_error_code(std::errc::not_enough_memory);
        addresses_.resize(attempts_.size());
        return;
    }
    attempt& a = *made;
    attempts_.push_back(std::move(made));  // order() has reserved the memory
    next_at_ = saturating_add(owner().now(), std::max(asked_.attempt_delay, duration::zero()));
    ++pending_;
    if (a.begin(halt_.get_token(), time_point::max())) attempted(a);
}

// Called when an attempt has ended: it wins, or the next address may be tried at once.
void connect_race_request::attempted(attempt& a) noexcept {
    --pending_;
    const std::error_code error = a.error();
    if (!error && !halted_) {
        static_cast<open_file&>(*asked_.target) = std::move(static_cast<open_file&>(a.socket));
        won_ = true;
        halt();
        return;
    }
    a.socket.close();
    if (owner().ending()) halted_ = true;
    if (halted_) return;
    next_at_ = time_point::min();
    if (!first_failure_ || (is_local(first_failure_) && !is_local(error))) first_failure_ = error;
}

// Called when an operation has ended, or when it is time for the next address. Lifetime: may
// destroy *this.
void connect_race_request::go_on() noexcept {
    try_addresses();
    if (timer_entry::armed()) owner().disarm(*this);
    if (pending_ != 0) {
        set_alarm();
        return;
    }
    conclude();
    ended();
}

void connect_race_request::conclude() noexcept {
    set_outcome(won_ ? 0 : -ECANCELED);
    if (!won_ && !halted_) failure_ = first_failure_;
}

void connect_race_request::set_alarm() noexcept {
    time_point when = halted_ ? time_point::max() : deadline();
    if (!halted_ && attempts_.size() != addresses_.size()) when = std::min(when, next_at_);
    if (when != time_point::max()) owner().arm(*this, when);
}

// Stops the attempts under way; they end in a later turn.
void connect_race_request::halt() noexcept {
    halted_ = true;
    halt_.request_stop();
}

void connect_race_request::interrupt() noexcept {
    if (!halted_) halt();
}

void connect_race_request::expire(timer_entry* entry) noexcept {
    connect_race_request& self = *static_cast<connect_race_request*>(entry);
    if (self.owner().ending()) {
        self.halted_ = true;  // the context ends what is under way
    } else if (self.deadline() <= self.owner().now()) {
        self.stop();
    } else {
        self.go_on();
    }
}

}  // namespace coppice::io::internal
