// A stop callback that an operation holds while it runs; empty if the operation cannot be stopped.
#pragma once
// engage() may run the function before it returns, if the stop was requested earlier. The operation
// must not be able to complete until then. reset() waits for a function that runs on another
// thread. It does not wait if it is called inside that function. So an operation that calls reset()
// before it completes is not used by the callback afterwards. Source: [stoptoken.concepts],
// [exec.recv.concepts] p3.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/queries.hpp>

namespace coppice::execution::internal {

template <class Token, class Fn>
class stop_registration : immovable {
public:
    ~stop_registration() { reset(); }
    void engage(Token token, Fn fn) noexcept {
        callback_.construct(static_cast<Token&&>(token), static_cast<Fn&&>(fn));
        engaged_ = true;
    }
    void reset() noexcept {
        if (!std::exchange(engaged_, false)) return;
        callback_.destroy();
    }

private:
    manual_lifetime<stop_callback_for_t<Token, Fn>> callback_;
    bool engaged_ = false;  // the operation's; the callback does not write it
};

template <unstoppable_token Token, class Fn>
class stop_registration<Token, Fn> : immovable {
public:
    static constexpr void engage(Token, Fn) noexcept {}
    static constexpr void reset() noexcept {}
};

// A stop callback's function that passes the stop to a source.
template <class Source>
class request_stop_of {
public:
    explicit request_stop_of(Source& source) noexcept : source_(&source) {}
    void operator()() noexcept { source_->request_stop(); }

private:
    Source* source_;
};

// An environment with its own stop token; other forwarding queries go to Env.
template <class Token, class Env>
class stop_token_env {
public:
    constexpr stop_token_env(Token token, Env&& base) noexcept
        : token_(token), base_(static_cast<Env&&>(base)) {}
    constexpr Token query(get_stop_token_t) const noexcept { return token_; }
    template <class Query, class... Args>
        requires(!std::is_same_v<Query, get_stop_token_t>) && is_forwarding_query<Query> &&
                has_query<Env, Query, Args...>
    constexpr decltype(auto) query(Query tag, Args&&... args) const
        noexcept(noexcept(std::declval<const Env&>().query(tag, static_cast<Args&&>(args)...))) {
        return static_cast<const Env&>(base_).query(tag, static_cast<Args&&>(args)...);
    }

private:
    Token token_;
    [[no_unique_address]] Env base_;
};

}  // namespace coppice::execution::internal
