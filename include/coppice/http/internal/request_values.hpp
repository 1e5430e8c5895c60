// request_values: what filters hand to the handler of a request, one value of each type.
#pragma once

#include <coppice/base/internal/namespaces.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace coppice::http::internal {

// Its address identifies the type.
template <class T>
inline constexpr char value_key = 0;

// Throws std::out_of_range: get() asked for a type of which no filter has set a value.
[[noreturn]] void refuse_unset_value();

// A list, since there are few values. They are destroyed in the reverse order of their setting, so
// a value may refer to an earlier one. Threads: one at a time.
class request_values {
public:
    // Sets or replaces the value of that type. Errors: what moving it throws, and std::bad_alloc;
    // nothing has changed then. Cost: one allocation.
    template <class T>
    T& set(T&& value) {
        auto made = std::make_unique<node<T>>(std::move(value));
        T& result = made->value;
        std::unique_ptr<node_base>* const at = place_of(&value_key<T>);
        if (*at != nullptr) *at = std::move((*at)->next);
        made->next = std::move(first_);
        first_ = std::move(made);
        return result;
    }
    // Returns the value of that type, or nullptr if none is set.
    template <class T>
    T* find() const noexcept {
        static_assert(std::is_same_v<T, std::decay_t<T>>, "values are kept by their plain type");
        node_base* n = first_.get();
        while (n != nullptr && n->key != &value_key<T>) n = n->next.get();
        return n == nullptr ? nullptr : &static_cast<node<T>*>(n)->value;
    }

    // Returns the value of that type. Errors: std::out_of_range if none is set.
    template <class T>
    T& get() const {
        T* const value = find<T>();
        if (value == nullptr) refuse_unset_value();
        return *value;
    }

private:
    struct node_base {
        explicit node_base(const char* k) noexcept : key(k) {}
        virtual ~node_base() = default;
        const char* const key;
        std::unique_ptr<node_base> next;
    };
    template <class T>
    struct node final : node_base {
        explicit node(T&& v) : node_base(&value_key<T>), value(std::move(v)) {}
        T value;
    };
    std::unique_ptr<node_base>* place_of(const char* key) noexcept {
        std::unique_ptr<node_base>* at = &first_;
        while (*at != nullptr && (*at)->key != key) at = &(*at)->next;
        return at;
    }

    std::unique_ptr<node_base> first_;
};

}  // namespace coppice::http::internal
