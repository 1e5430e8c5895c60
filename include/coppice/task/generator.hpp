// generator<Ref, V, Allocator>: a coroutine that is a range; C++23's std::generator.
#pragma once
// The body runs only while the caller asks for the next element. It gives an element by
// `co_yield x`, and all elements of another generator or range by `co_yield
// ranges::elements_of(r)`. It cannot co_await; async_generator can.
//
// The root, which is the generator that the caller iterates, knows the innermost coroutine. An
// element therefore costs the same at every depth of elements_of. A depth of any number of
// generators uses constant stack, with every compiler and optimization level, also when they are
// destroyed before they have ended.
//
// Source: [coro.generator], [range.elementsof]. Different from there: a frame without an allocator
// comes from the thread's frame_pool; elements_of has a constructor, because g++ 12 destroys
// aggregates in co_yield twice; there is no namespace pmr.

#include <coppice/task/internal/generator_promise.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <iterator>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

namespace coppice {

namespace ranges {

// `co_yield ranges::elements_of(r)` in a generator gives all elements of the range r. If r is a
// generator, the body of r runs in place of this one. A coroutine for another range gets its frame
// from `allocator`. Lifetime: refers to r unless R is given explicitly. Source: [range.elementsof].
template <std::ranges::range R, class Allocator = std::allocator<std::byte>>
struct elements_of {
    // Refers to `elements`, or keeps them if R is an object type.
    constexpr elements_of(R elements, Allocator from = Allocator())
        : range(static_cast<R&&>(elements)), allocator(static_cast<Allocator&&>(from)) {}

    [[no_unique_address]] R range;              // whose elements are given
    [[no_unique_address]] Allocator allocator;  // gives the frame of a coroutine for the range
};
template <class R, class Allocator = std::allocator<std::byte>>
elements_of(R&&, Allocator = Allocator()) -> elements_of<R&&, Allocator>;

}  // namespace ranges

// A view and an input range, whose elements the body gives. `Ref` is what the iterator's * returns;
// without V, an object type stands for an r-value reference. `V` is the value type, or void: Ref
// without const, volatile, and reference. `Allocator` is the type of the allocator of the frame, or
// void: any allocator that follows std::allocator_arg among the coroutine's parameters, or none.
//
// Move-only; iterated once. Threads: one at a time; it may move to another thread between two
// elements. Blocks: never by itself. Errors: an exception that the body throws leaves begin() or
// ++, and the range has then ended. An exception of a generator in elements_of leaves the outer
// body's co_yield first. Cost: a frame, which is no allocation in steady state; per element about a
// call through a pointer. Lifetime: an element lives until ++; destroying the generator destroys
// the body's variables where it waits.
template <class Ref, class V = void, class Allocator = void>
class [[nodiscard]] generator : public std::ranges::view_interface<generator<Ref, V, Allocator>> {
    using value_type = std::conditional_t<std::is_void_v<V>, std::remove_cvref_t<Ref>, V>;
    using reference_type = std::conditional_t<std::is_void_v<V>, Ref&&, Ref>;
    static_assert(std::is_object_v<value_type> &&
                      std::is_same_v<value_type, std::remove_cv_t<value_type>>,
                  "generator: the value type is an object type without const or volatile");
    static_assert(std::is_reference_v<reference_type> ||
                      (std::is_same_v<reference_type, std::remove_cv_t<reference_type>> &&
                       std::copy_constructible<reference_type>),
                  "generator: Ref is a reference, or a copyable type without const or volatile");

public:
    // What co_yield takes.
    using yielded = std::conditional_t<std::is_reference_v<reference_type>, reference_type,
                                       const reference_type&>;
    using promise_type = internal::generator_promise<generator, yielded, Allocator>;
    class iterator;

    generator(generator&& other) noexcept : coroutine_(std::exchange(other.coroutine_, {})) {}
    generator& operator=(generator other) noexcept {
        std::swap(coroutine_, other.coroutine_);
        return *this;
    }
    ~generator() {
        if (coroutine_) coroutine_.promise().destroy_from_innermost(coroutine_);
    }

    // Runs the body to its first element. Call it once. Errors: throws what the body throws.
    iterator begin() {
        COPPICE_CHECK(
            coroutine_,
            "begin() of a generator that was moved from: use the generator that it was moved to");
        coroutine_.promise().advance(coroutine_);
        return iterator(coroutine_);
    }
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

private:
    friend promise_type;
    template <class Generator, class Yielded, class Alloc>
    friend class internal::generator_promise;

    explicit generator(std::coroutine_handle<promise_type> coroutine) noexcept
        : coroutine_(coroutine) {}

    std::coroutine_handle<promise_type> coroutine_;
};

// Move-only. Lifetime: that of the generator, which may be moved meanwhile.
template <class Ref, class V, class Allocator>
class generator<Ref, V, Allocator>::iterator {
public:
    using value_type = typename generator::value_type;
    using difference_type = std::ptrdiff_t;

    iterator(iterator&& other) noexcept : coroutine_(std::exchange(other.coroutine_, {})) {}
    iterator& operator=(iterator&& other) noexcept {
        coroutine_ = std::exchange(other.coroutine_, {});
        return *this;
    }
    reference_type operator*() const
        noexcept(std::is_nothrow_copy_constructible_v<reference_type>) {
        return static_cast<reference_type>(coroutine_.promise().element());
    }
    // Runs the body to its next element, or to its end. Errors: throws what the body throws.
    iterator& operator++() {
        coroutine_.promise().advance(coroutine_);
        return *this;
    }
    void operator++(int) { ++*this; }
    // Returns true if the body has ended.
    friend bool operator==(const iterator& i, std::default_sentinel_t) noexcept {
        return !i.coroutine_.promise().has_element();
    }

private:
    friend class generator;
    explicit iterator(std::coroutine_handle<promise_type> coroutine) noexcept
        : coroutine_(coroutine) {}

    std::coroutine_handle<promise_type> coroutine_;
};

}  // namespace coppice
