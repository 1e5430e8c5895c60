// Asio's tokens on the same operations, the handler's memory from Asio's recycling allocator.
#include "rivals.hpp"
#include "system.hpp"

#include "../harness.hpp"

#include <asio.hpp>
#include <asio/experimental/deferred.hpp>
#include <asio/recycling_allocator.hpp>

#include <memory>

namespace bench_token {

namespace {

template <class Handler>
struct operation : os_context {
    explicit operation(Handler&& h) : handler(std::move(h)) { callback = &complete; }

    using allocator = asio::associated_allocator_t<Handler, asio::recycling_allocator<void>>;
    using traits = typename std::allocator_traits<allocator>::template rebind_traits<operation>;
    static typename traits::allocator_type allocator_of(const Handler& h) {
        return typename traits::allocator_type(
            asio::get_associated_allocator(h, asio::recycling_allocator<void>()));
    }
    static operation* make(Handler&& h) {
        auto a = allocator_of(h);
        operation* const memory = traits::allocate(a, 1);
        return ::new (static_cast<void*>(memory)) operation(std::move(h));
    }
    static void complete(int result, os_context* context) {
        operation* const self = static_cast<operation*>(context);
        auto a = allocator_of(self->handler);
        Handler h(std::move(self->handler));
        self->~operation();
        traits::deallocate(a, self, 1);
        std::move(h)(std::error_code(), result);
    }
    Handler handler;
};

template <class Token>
auto async_xyz(int parameter, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code, int)>(
        [parameter](auto handler) {
            using op = operation<decltype(handler)>;
            os_xyz(parameter, op::make(std::move(handler)));
        },
        token);
}
template <class Token>
auto async_on(os_thread& system, int parameter, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code, int)>(
        [&system, parameter](auto handler) {
            using op = operation<decltype(handler)>;
            system.start(parameter, op::make(std::move(handler)));
        },
        token);
}

int parameter_of(std::size_t left) {
    return static_cast<int>(left & 7);
}

template <bool Deferred>
struct callbacks {
    std::size_t left;
    std::uint64_t sum = 0;
    void next() {
        auto handler = [this](std::error_code, int result) {
            sum += static_cast<std::uint64_t>(result);
            if (--left != 0) next();
        };
        if constexpr (Deferred) {
            async_xyz(parameter_of(left), asio::experimental::deferred)(handler);
        } else {
            async_xyz(parameter_of(left), handler);
        }
    }
};
template <bool Deferred>
std::uint64_t run_callbacks(std::size_t size) {
    callbacks<Deferred> c{size};
    c.next();
    os_run();
    return bench::hash().add(c.sum).value();
}

asio::awaitable<void> awaits(std::size_t left, std::uint64_t& sum) {
    for (; left != 0; --left) {
        sum +=
            static_cast<std::uint64_t>(co_await async_xyz(parameter_of(left), asio::use_awaitable));
    }
}

}  // namespace

std::uint64_t callback_asio(std::size_t size) {
    return run_callbacks<false>(size);
}
std::uint64_t deferred_asio(std::size_t size) {
    return run_callbacks<true>(size);
}

std::uint64_t awaitable_asio(std::size_t size) {
    asio::io_context context(1);
    std::uint64_t sum = 0;
    asio::co_spawn(context, awaits(size, sum), asio::detached);
    context.poll();
    os_run();
    context.poll();
    return bench::hash().add(sum).value();
}

std::uint64_t future_asio(std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t left = size; left != 0; --left) {
        std::future<int> result = async_xyz(parameter_of(left), asio::use_future);
        os_run_one();
        sum += static_cast<std::uint64_t>(result.get());
    }
    return bench::hash().add(sum).value();
}

std::uint64_t other_thread_future_asio(std::size_t size) {
    os_thread system;
    std::uint64_t sum = 0;
    for (std::size_t left = size; left != 0; --left) {
        sum += static_cast<std::uint64_t>(
            async_on(system, parameter_of(left), asio::use_future).get());
    }
    return bench::hash().add(sum).value();
}

}  // namespace bench_token
