// small_object: one object of any type derived from a base; in place if it is small.
#pragma once
// Holds the senders, schedulers, and operations whose types any_sender and any_scheduler hide.

#include <coppice/base/internal/namespaces.hpp>

#include <cstddef>
#include <new>
#include <utility>

namespace coppice::execution::internal {

// Holds one object derived from Base: in place if it fits into Size bytes, otherwise on the heap.
template <class Base, std::size_t Size>
class small_object {
public:
    small_object() noexcept = default;
    small_object(small_object&& other) noexcept { take(other); }
    small_object& operator=(small_object&& other) noexcept {
        if (this != &other) {
            reset();
            take(other);
        }
        return *this;
    }
    ~small_object() { reset(); }

    template <class T>
    static constexpr bool fits = sizeof(T) <= Size && alignof(T) <= alignof(std::max_align_t);

    // Constructs a T from what make() returns. Cost: no allocation if fits<T> and MayBeInside,
    // which says that the object can be moved together with its holder.
    template <class T, bool MayBeInside = true, class Make>
    T& emplace_with(Make&& make) {
        reset();
        T* made;
        if constexpr (fits<T> && MayBeInside) {
            made = ::new (static_cast<void*>(storage_)) T(make());
        } else {
            made = new T(make());
        }
        object_ = made;
        return *made;
    }
    // Takes an object on the heap, and destroys it later with `delete`.
    void adopt(Base* object) noexcept {
        reset();
        object_ = object;
    }
    void reset() noexcept {
        Base* const object = std::exchange(object_, nullptr);
        if (object == nullptr) return;
        if (is_inside(object)) {
            object->~Base();
        } else {
            delete object;
        }
    }
    Base* get() const noexcept { return object_; }

private:
    bool is_inside(const Base* object) const noexcept {
        const auto* const at = reinterpret_cast<const std::byte*>(object);
        return !(at < storage_) && at < storage_ + Size;
    }
    // A Base that is to be moved has relocate(small_object&), which move-constructs itself there.
    void take(small_object& other) noexcept {
        if (other.object_ == nullptr) return;
        if (other.is_inside(other.object_)) {
            other.object_->relocate(*this);
            other.reset();
        } else {
            object_ = std::exchange(other.object_, nullptr);
        }
    }

    alignas(std::max_align_t) std::byte storage_[Size];
    Base* object_ = nullptr;
};

}  // namespace coppice::execution::internal
