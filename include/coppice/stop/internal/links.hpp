// parent_links: what a linked stop_source holds of its parents: a token and a callback of each.
#pragma once
// The callbacks refer to the child's state, which destroys them before itself. If one runs on
// another thread at that time, the end of the state waits for it. The end may also happen inside
// such a callback, because forwarding the stop is the last thing that it does.

#include <coppice/stop/concepts.hpp>
#include <coppice/stop/internal/state.hpp>

#include <type_traits>
#include <utility>

namespace coppice {

class stop_token;  // shared.hpp

}  // namespace coppice

namespace coppice::internal {

// Linked parents that have to be asked whether they can be stopped: the first of them, and whether
// there are others.
struct parents_to_ask {
    const stop_state* first = nullptr;
    bool others = false;
};

// The token of one parent, and the callback that forwards its stop.
template <class Token>
class parent_link {
public:
    parent_link(stop_state& child, Token token)
        : token_(std::move(token)), callback_(token_, forward{&child, &token_}) {}
    bool stop_possible(parents_to_ask& ask) const noexcept {
        if constexpr (std::is_same_v<Token, stop_token>) {
            const stop_state* const parent = token_.state_;
            if (parent == nullptr) return false;
            if (parent->stop_possible_here()) return true;
            if (!parent->asks_parents()) return false;
            if (ask.first == nullptr) ask.first = parent;
            if (ask.first != parent) ask.others = true;
            return false;
        } else {
            return token_.stop_possible();
        }
    }

private:
    struct forward {
        stop_state* child;
        const Token* parent;
        void operator()() noexcept {
            stop_cause cause;
            if constexpr (requires { stop_cause(parent->cause()); }) cause = parent->cause();
            if constexpr (std::is_same_v<Token, stop_token>) {
                child->request_from(*parent->state_, cause);  // *this may be gone
            } else {
                child->request(cause);  // as above
            }
        }
    };
    Token token_;
    stop_callback_for_t<Token, forward> callback_;
};

// All parents. Each is a distinct base, so that its immovable callback is constructed in place.
template <class Indices, class... Tokens>
struct parent_links_base;

template <std::size_t Index, class Token>
struct indexed_parent_link : parent_link<Token> {
    using parent_link<Token>::parent_link;
};

template <std::size_t... Index, class... Tokens>
struct parent_links_base<std::index_sequence<Index...>, Tokens...> final
    : stop_links,
      indexed_parent_link<Index, Tokens>... {
    explicit parent_links_base(stop_state& child, Tokens... tokens)
        : indexed_parent_link<Index, Tokens>(child, std::move(tokens))... {
        static_cast<void>(child);
    }
    bool stop_possible(parents_to_ask& ask) const noexcept override {
        return (static_cast<const indexed_parent_link<Index, Tokens>&>(*this).stop_possible(ask) ||
                ... || false);
    }
};

template <class... Tokens>
using parent_links = parent_links_base<std::index_sequence_for<Tokens...>, Tokens...>;

}  // namespace coppice::internal
