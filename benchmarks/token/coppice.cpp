// The tokens of coppice, on operations that complete from the calling thread's queue.
#include "operation.hpp"
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include <memory>

namespace bench_token {

namespace {

int parameter_of(std::size_t left) {
    return static_cast<int>(left & 7);
}

template <class Initiation>
detached awaits(std::size_t left, std::uint64_t& sum) {
    for (; left != 0; --left) {
        sum += static_cast<std::uint64_t>(co_await async_xyz<Initiation>(parameter_of(left)));
    }
}
detached awaits_at_once(std::size_t left, std::uint64_t& sum) {
    for (; left != 0; --left) {
        sum += static_cast<std::uint64_t>(co_await at_once(parameter_of(left)));
    }
}
coppice::task<> awaits_as_task(std::size_t left, std::uint64_t& sum) {
    for (; left != 0; --left) {
        sum += static_cast<std::uint64_t>(co_await async_xyz(parameter_of(left)));
    }
}
detached run(coppice::task<> t) {
    co_await std::move(t);
}

// Makes the callback of each operation with `bind`, which may add an environment.
template <class Bind>
struct callbacks {
    Bind bind;
    std::size_t left;
    std::uint64_t sum = 0;
    void next() {
        async_xyz(parameter_of(left), bind([this](std::error_code, int result) {
                      sum += static_cast<std::uint64_t>(result);
                      if (--left != 0) next();
                  }));
    }
};
template <class Bind>
std::uint64_t run_callbacks(std::size_t size, Bind bind) {
    callbacks<Bind> c{bind, size};
    c.next();
    os_run();
    return bench::hash().add(c.sum).value();
}

// One block of memory, given out again and again: the paper's arena.
struct arena {
    alignas(16) std::byte block[256];
};
template <class T>
struct arena_allocator {
    using value_type = T;
    explicit arena_allocator(arena& a) noexcept : of(&a) {}
    template <class U>
    arena_allocator(const arena_allocator<U>& other) noexcept : of(other.of) {}
    T* allocate(std::size_t) noexcept {
        static_assert(sizeof(T) <= sizeof(arena));
        return reinterpret_cast<T*>(of->block);
    }
    void deallocate(T*, std::size_t) noexcept {}
    bool operator==(const arena_allocator&) const = default;
    arena* of;
};

template <class Allocator>
auto with_allocator(Allocator allocator) {
    return [allocator](auto callable) {
        return coppice::bind_env(coppice::execution::prop(coppice::get_allocator, allocator),
                                 callable);
    };
}

}  // namespace

std::uint64_t await_coppice(std::size_t size) {
    std::uint64_t sum = 0;
    awaits<xyz_direct_initiation>(size, sum);
    os_run();
    return bench::hash().add(sum).value();
}
std::uint64_t await_any(std::size_t size) {
    std::uint64_t sum = 0;
    awaits<xyz_later_initiation>(size, sum);
    os_run();
    return bench::hash().add(sum).value();
}
std::uint64_t await_looking(std::size_t size) {
    std::uint64_t sum = 0;
    awaits<xyz_initiation>(size, sum);
    os_run();
    return bench::hash().add(sum).value();
}
std::uint64_t await_in_task(std::size_t size) {
    std::uint64_t sum = 0;
    run(awaits_as_task(size, sum));
    os_run();
    return bench::hash().add(sum).value();
}
std::uint64_t inline_await(std::size_t size) {
    std::uint64_t sum = 0;
    awaits_at_once(size, sum);
    return bench::hash().add(sum).value();
}

std::uint64_t callback_default(std::size_t size) {
    return run_callbacks(size, [](auto callable) { return callable; });
}
std::uint64_t callback_arena(std::size_t size) {
    arena memory;
    return run_callbacks(size, with_allocator(arena_allocator<std::byte>(memory)));
}
std::uint64_t callback_malloc(std::size_t size) {
    return run_callbacks(size, with_allocator(std::allocator<std::byte>()));
}
std::uint64_t inline_callback(std::size_t size) {
    struct loop {
        std::size_t left;
        std::uint64_t sum = 0;
        void next() {
            at_once(parameter_of(left), [this](std::error_code, int result) {
                sum += static_cast<std::uint64_t>(result);
                if (--left != 0) next();
            });
        }
    } l{size};
    l.next();
    return bench::hash().add(l.sum).value();
}

std::uint64_t future_coppice(std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t left = size; left != 0; --left) {
        std::future<int> result = async_xyz(parameter_of(left), coppice::use_future);
        os_run_one();
        sum += static_cast<std::uint64_t>(result.get());
    }
    return bench::hash().add(sum).value();
}
std::uint64_t block_coppice(std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t left = size; left != 0; --left) {
        sum += static_cast<std::uint64_t>(async_xyz(parameter_of(left), coppice::block));
    }
    return bench::hash().add(sum).value();
}

}  // namespace bench_token
