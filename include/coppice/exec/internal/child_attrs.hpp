// child_attrs: the attributes of a sender that completes where its child does.
#pragma once

#include <coppice/exec/internal/attrs.hpp>

namespace coppice::execution::internal {

// Answers the completion queries for Tags as the child does, and no others.
template <class Child, class... Tags>
class child_attrs : public forwarded_attrs<Child> {
public:
    using forwarded_attrs<Child>::forwarded_attrs;
    using forwarded_attrs<Child>::query;

    template <class Tag, class... Env>
        requires one_of<Tag, Tags...> &&
                 callable<get_completion_scheduler_t<Tag>, env_of_t<const Child&>, const Env&...>
    constexpr auto query(get_completion_scheduler_t<Tag> ask, const Env&... env) const noexcept {
        return ask(execution::get_env(*this->child_), env...);
    }
    template <class Tag, class... Env>
        requires one_of<Tag, Tags...> &&
                 callable<get_completion_domain_t<Tag>, env_of_t<const Child&>, const Env&...>
    constexpr auto query(get_completion_domain_t<Tag> ask, const Env&... env) const noexcept {
        return ask(execution::get_env(*this->child_), env...);
    }
};

}  // namespace coppice::execution::internal
