// Manual object lifetime: storage without construction, scope exits, immovable bases.
#pragma once

#include <coppice/base/version.hpp>

#include <new>
#include <type_traits>
#include <utility>

namespace coppice {

// A base for objects whose address is their identity, such as operations, sources, and contexts.
struct immovable {
    constexpr immovable() noexcept = default;
    immovable(const immovable&) = delete;
    immovable& operator=(const immovable&) = delete;
};

// Storage for one T, whose lifetime the owner manages. The owner destroys what it constructed; the
// destructor of the storage does nothing. (__builtin_addressof instead of std::addressof keeps
// <memory> out of many headers.)
template <class T>
class manual_lifetime : immovable {
public:
    // Constructs no object.
    constexpr manual_lifetime() noexcept {}
    constexpr ~manual_lifetime() {}

    // Constructs the object from `args`. There must be none yet.
    template <class... Args>
    T& construct(Args&&... args) noexcept(std::is_nothrow_constructible_v<T, Args...>) {
        return *::new (memory()) T(std::forward<Args>(args)...);
    }
    // Constructs the object from what `make` returns, without a move: T may be immovable.
    template <class Make>
    T& construct_with(Make&& make) noexcept(noexcept(std::forward<Make>(make)())) {
        return *::new (memory()) T(std::forward<Make>(make)());
    }
    // Destroys the object. There must be one.
    void destroy() noexcept { value_.~T(); }
    // Returns the object. There must be one.
    T& get() & noexcept { return value_; }
    const T& get() const& noexcept { return value_; }
    T&& get() && noexcept { return std::move(value_); }

private:
    // T may be const.
    void* memory() noexcept {
        return const_cast<void*>(static_cast<const volatile void*>(__builtin_addressof(value_)));
    }

    union {
        T value_;
    };
};

// Returns a new T, or nullptr if there is no memory for it or for what its constructor allocates.
// In that case the arguments are unchanged unless the constructor has begun. Uses plain `new`: to
// sanitizers std::nothrow is another operator, and programs that replace `new` rarely replace it.
template <class T, class... Args>
T* try_new(Args&&... args) noexcept {
    try {
        return new T(std::forward<Args>(args)...);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

// Runs the function given to the constructor when the scope ends, unless dismissed.
template <class Exit>
class scope_exit : immovable {
public:
    explicit scope_exit(Exit exit) noexcept(std::is_nothrow_move_constructible_v<Exit>)
        : exit_(std::move(exit)) {}
    ~scope_exit() {
        if (armed_) exit_();
    }
    // Makes the end of the scope do nothing.
    void dismiss() noexcept { armed_ = false; }

private:
    Exit exit_;
    bool armed_ = true;
};

}  // namespace coppice
