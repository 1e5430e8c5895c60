// generator_promise: how the body of a generator gives elements, and how generators nest.
#pragma once
// One promise is the root's: that of the generator which the caller iterates. The others are those
// of generators that an elements_of awaits. All of them refer to the root, which knows the
// innermost coroutine. The promise of that one has the current element: so a body that gives an
// element writes to its own frame only, and its next step does not wait for another address.
//
//   caller --++--> root: innermost_                    only the innermost coroutine is resumed
//                    ^  ^  ^
//            root_   |  |  |        nest_ (in the frame below)
//                    A  B  C   C --------> B --------> A, the root's own body
//
// A body that enters or ends a nested generator only changes innermost_ and suspends. The loop in
// advance() resumes what is innermost then. Symmetric transfer would do the same, but g++ 12 makes
// no tail calls of it without optimization.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/task/internal/task_frame.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

namespace coppice {

template <class Ref, class V, class Allocator>
class generator;

namespace ranges {

template <std::ranges::range R, class Allocator>
struct elements_of;

}  // namespace ranges

}  // namespace coppice

namespace coppice::internal {

// A nested generator, whose elements an outer generator yields by elements_of. The object is in the
// frame of the outer one, in its co_yield expression.
struct generator_nest : immovable {
    explicit generator_nest(std::coroutine_handle<> made) noexcept : inner(made) {}
    ~generator_nest() {
        if (inner) inner.destroy();
    }
    std::coroutine_handle<> inner;   // owned
    std::coroutine_handle<> outer;   // continues when `inner` has ended
    generator_nest* next = nullptr;  // the nest that `outer` is in; null if `outer` is the root's
    std::exception_ptr error;        // what ended `inner`
};

// The part of a promise that does not depend on the type of the generator. Threads: one at a time.
template <class Yielded>
class generator_promise_base : immovable {
public:
    static std::suspend_always initial_suspend() noexcept { return {}; }
    void await_transform() = delete;
    static void return_void() noexcept {}
    // An exception of the root leaves advance().
    void unhandled_exception() {
        if (nest_ == nullptr) {
            element_ = nullptr;
            throw;
        }
        nest_->error = std::current_exception();
    }
    // Awaited at the end of the body: the outer coroutine becomes the innermost.
    class end_of_body {
    public:
        static bool await_ready() noexcept { return false; }
        template <class Promise>
        static void await_suspend(std::coroutine_handle<Promise> self) noexcept {
            generator_promise_base& promise = self.promise();
            promise.element_ = nullptr;
            if (promise.nest_ != nullptr) promise.root_->leave(*promise.outer_);
        }
        static void await_resume() noexcept {}
    };
    static end_of_body final_suspend() noexcept { return {}; }

    std::suspend_always yield_value(Yielded element) noexcept {
        give(element);
        return {};
    }

    // The rest is called for the root alone: by its range, and its iterators.

    // Resumes the innermost coroutine until there is an element or the root has ended.
    void advance(std::coroutine_handle<> root) {
        do {
            innermost_.resume();
        } while (!has_element() && !root.done());
    }
    bool has_element() const noexcept { return innermost_promise_->element_ != nullptr; }
    Yielded element() const noexcept { return static_cast<Yielded>(*innermost_promise_->element_); }
    // Destroys the frames from the innermost out, with constant stack.
    void destroy_from_innermost(std::coroutine_handle<> root) noexcept {
        for (generator_nest* nest = innermost_nest_; nest != nullptr;) {
            generator_nest* const next = nest->next;
            std::exchange(nest->inner, {}).destroy();
            nest = next;
        }
        root.destroy();
    }

protected:
    explicit generator_promise_base(std::coroutine_handle<> self) noexcept : innermost_(self) {}
    ~generator_promise_base() = default;

    void give(std::add_lvalue_reference_t<Yielded> element) noexcept {
        element_ = __builtin_addressof(element);
    }

    // Awaited by co_yield elements_of: the nested generator becomes the innermost.
    class nested {
    public:
        template <class Promise>
        explicit nested(std::coroutine_handle<Promise> made) noexcept
            : nest_(made), promise_(&made.promise()) {}
        static bool await_ready() noexcept { return false; }
        template <class Promise>
        void await_suspend(std::coroutine_handle<Promise> self) noexcept {
            generator_promise_base& outer = self.promise();
            nest_.outer = self;
            promise_->root_ = outer.root_;
            promise_->nest_ = &nest_;
            promise_->outer_ = &outer;
            outer.element_ = nullptr;
            outer.root_->enter(nest_, *promise_);
        }
        void await_resume() {
            if (nest_.error) std::rethrow_exception(std::move(nest_.error));
        }

    private:
        generator_nest nest_;
        generator_promise_base* promise_;  // of the nested generator
    };
    // Awaited by co_yield of an l-value where elements are r-values: keeps a copy. It is made in
    // the frame, so that the element's place is known before the body suspends.
    class copied : immovable, public std::suspend_always {
    public:
        using value_type = std::remove_cvref_t<Yielded>;
        copied(generator_promise_base& promise, const value_type& element) : element_(element) {
            promise.give(element_);
        }

    private:
        value_type element_;
    };

private:
    void enter(generator_nest& nest, generator_promise_base& inner) noexcept {
        inner.element_ = nullptr;
        innermost_promise_ = &inner;
        nest.next = std::exchange(innermost_nest_, &nest);
        innermost_ = nest.inner;
    }
    void leave(generator_promise_base& outer) noexcept {
        innermost_promise_ = &outer;
        innermost_ = innermost_nest_->outer;
        innermost_nest_ = innermost_nest_->next;
    }

    generator_promise_base* root_ = this;
    generator_nest* nest_ = nullptr;           // where this generator is nested; null for the root
    generator_promise_base* outer_ = nullptr;  // whose co_yield that is; null for the root
    // Null before the first element, at the end, and while another body is the innermost.
    std::add_pointer_t<Yielded> element_ = nullptr;
    // Of the root alone.
    generator_promise_base* innermost_promise_ = this;
    std::coroutine_handle<> innermost_;
    generator_nest* innermost_nest_ = nullptr;
};

// Where the frame of a generator comes from: its Allocator; or, if that is void, the allocator
// among the coroutine's parameters, or the thread's pool. Source: [coro.generator.promise].
template <class Allocator>
class generator_frame : execution::internal::task_frame {
    using given = execution::internal::given_frame<Allocator>;

public:
    // Inlined, because g++ 12 takes the pair of a template and a function for a mistake.
    using task_frame::operator delete;
    [[gnu::always_inline]] static void* operator new(std::size_t bytes)
        requires std::default_initializable<Allocator>
    {
        return given::allocate(bytes, Allocator());
    }
    template <class Alloc, class... Args>
        requires std::convertible_to<const Alloc&, Allocator>
    [[gnu::always_inline]] static void* operator new(std::size_t bytes, std::allocator_arg_t,
                                                     const Alloc& alloc, const Args&...) {
        return given::allocate(bytes, static_cast<Allocator>(alloc));
    }
    template <class This, class Alloc, class... Args>
        requires std::convertible_to<const Alloc&, Allocator>
    [[gnu::always_inline]] static void* operator new(std::size_t bytes, const This&,
                                                     std::allocator_arg_t, const Alloc& alloc,
                                                     const Args&...) {
        return given::allocate(bytes, static_cast<Allocator>(alloc));
    }
};
template <>
class generator_frame<void> : public execution::internal::task_frame {};

template <class Generator, class Yielded, class Allocator>
class generator_promise final : public generator_frame<Allocator>,
                                public generator_promise_base<Yielded> {
    using base_type = generator_promise_base<Yielded>;
    using typename base_type::copied;
    using typename base_type::nested;
    template <class Range, class Alloc>
    using generator_for = generator<Yielded, std::ranges::range_value_t<Range>, Alloc>;

public:
    generator_promise() noexcept
        : base_type(std::coroutine_handle<generator_promise>::from_promise(*this)) {}
    Generator get_return_object() noexcept {
        return Generator(std::coroutine_handle<generator_promise>::from_promise(*this));
    }

    using base_type::yield_value;
    copied yield_value(const std::remove_reference_t<Yielded>& element)
        requires std::is_rvalue_reference_v<Yielded> &&
                 std::constructible_from<std::remove_cvref_t<Yielded>,
                                         const std::remove_reference_t<Yielded>&>
    {
        return copied(*this, element);
    }
    template <class R, class V, class A, class Unused>
        requires std::same_as<typename generator<R, V, A>::yielded, Yielded>
    nested yield_value(ranges::elements_of<generator<R, V, A>&&, Unused> all) noexcept {
        return enter(all.range);
    }
    template <class R, class V, class A, class Unused>
        requires std::same_as<typename generator<R, V, A>::yielded, Yielded>
    nested yield_value(ranges::elements_of<generator<R, V, A>&, Unused> all) noexcept {
        return enter(all.range);
    }
    template <std::ranges::input_range R, class Alloc>
        requires std::convertible_to<std::ranges::range_reference_t<R>, Yielded>
    nested yield_value(ranges::elements_of<R, Alloc> all) {
        generator_for<R, Alloc> each =
            each_of<R, Alloc>(std::allocator_arg, all.allocator, std::ranges::begin(all.range),
                              std::ranges::end(all.range));
        return enter(each);
    }

private:
    template <class Range, class Alloc>
    static generator_for<Range, Alloc> each_of(std::allocator_arg_t, Alloc,
                                               std::ranges::iterator_t<Range> i,
                                               std::ranges::sentinel_t<Range> end) {
        for (; i != end; ++i) co_yield static_cast<Yielded>(*i);
    }
    // Takes the coroutine out of `inner`.
    template <class Inner>
    static nested enter(Inner& inner) noexcept {
        COPPICE_CHECK(
            inner.coroutine_,
            "elements_of a generator that was moved from: use the generator that it was moved to");
        return nested(std::exchange(inner.coroutine_, {}));
    }
};

}  // namespace coppice::internal
