// inplace_token_of: a stop token of any type as an inplace_stop_token.
#pragma once

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/exec/internal/linked_stop.hpp>
#include <coppice/stop/inplace.hpp>

namespace coppice::execution::internal {

// A receiver's stop token as an inplace_stop_token. For a token of another type, a callback passes
// the stop on. Threads: listen(), then reset(), each once; reset() may run inside the callback.
template <class Token>
class inplace_token_of {
public:
    explicit inplace_token_of(const Token&) noexcept {}
    void listen(Token token) noexcept { link_.engage(static_cast<Token&&>(token)); }
    // Called before the receiver is completed. Blocks: while another thread passes a stop on.
    void reset() noexcept { link_.reset(); }
    inplace_stop_token get() const noexcept { return link_.token(); }

private:
    linked_stop<inplace_stop_source, Token> link_;
};
template <>
class inplace_token_of<inplace_stop_token> {
public:
    explicit inplace_token_of(inplace_stop_token token) noexcept : token_(token) {}
    void listen(inplace_stop_token) noexcept {}
    void reset() noexcept {}
    inplace_stop_token get() const noexcept { return token_; }

private:
    inplace_stop_token token_;
};
template <unstoppable_token Token>
class inplace_token_of<Token> {
public:
    explicit inplace_token_of(Token) noexcept {}
    void listen(Token) noexcept {}
    void reset() noexcept {}
    inplace_stop_token get() const noexcept { return {}; }
};

}  // namespace coppice::execution::internal
