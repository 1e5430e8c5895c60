// Every source of the benchmark behind one interface: a source, and a callback on one of its slots.
#pragma once

#include "paper_single.hpp"
#include "plain_list.hpp"
#include "published_inplace.hpp"

#include <coppice/stop_token.hpp>

#include <cstddef>
#include <stop_token>

namespace bench_stop {

// A family has: source, callback<Index, F>(const source&, F), request(source&).
struct ours_inplace {
    using source = coppice::inplace_stop_source;
    template <std::size_t, class F>
    struct callback : coppice::inplace_stop_callback<F> {
        callback(const source& from, F f)
            : coppice::inplace_stop_callback<F>(from.get_token(), f) {}
    };
    static void request(source& s) { s.request_stop(); }
};

template <std::size_t N, std::size_t Stride = sizeof(void*)>
struct ours_finite {
    using source = coppice::finite_inplace_stop_source<N, Stride>;
    template <std::size_t Index, class F>
    struct callback : coppice::finite_inplace_stop_callback<N, Index, F, Stride> {
        callback(const source& from, F f)
            : coppice::finite_inplace_stop_callback<N, Index, F, Stride>(
                  from.template get_token<Index>(), f) {}
    };
    static void request(source& s) { s.request_stop(); }
};

template <std::size_t N>
struct ours_asymmetric {
    using source = coppice::asymmetric_inplace_stop_source<N>;
    template <std::size_t Index, class F>
    struct callback : coppice::asymmetric_inplace_stop_callback<N, Index, F> {
        callback(const source& from, F f)
            : coppice::asymmetric_inplace_stop_callback<N, Index, F>(
                  from.template get_token<Index>(), f) {}
    };
    static void request(source& s) { s.request_stop(); }
};

// N single sources, `Stride` bytes apart: the paper's way to have N slots.
template <std::size_t N, std::size_t Stride = 8>
struct ours_singles {
    struct alignas(Stride) one {
        coppice::single_inplace_stop_source single;
    };
    struct source {
        one singles[N];
    };
    template <std::size_t Index, class F>
    struct callback : coppice::single_inplace_stop_callback<F> {
        callback(const source& from, F f)
            : coppice::single_inplace_stop_callback<F>(from.singles[Index].single.get_token(), f) {}
    };
    static void request(source& s) {
        for (one& each : s.singles) each.single.request_stop();
    }
};

template <std::size_t N, std::size_t Stride = 16>
struct paper_singles {
    struct alignas(Stride) one {
        paper::source single;
    };
    struct source {
        one singles[N];
    };
    template <std::size_t Index, class F>
    struct callback : paper::callback<F> {
        callback(const source& from, F f) : paper::callback<F>(from.singles[Index].single, f) {}
    };
    static void request(source& s) {
        for (one& each : s.singles) each.single.request_stop();
    }
};

struct published_inplace {
    using source = published::source;
    template <std::size_t, class F>
    using callback = published::callback<F>;
    static void request(source& s) { s.request_stop(); }
};

struct plain_shared {
    using source = plain_list::source;
    template <std::size_t, class F>
    using callback = plain_list::callback<F>;
    static void request(source& s) { s.request_stop(); }
};

// Sources that return tokens by value. The benchmark takes the token once and keeps it, as users
// do.
template <class Source, class Token, template <class> class Callback>
struct shared_family {
    struct source {
        Source stop;
        Token token = stop.get_token();
    };
    template <std::size_t, class F>
    struct callback : Callback<F> {
        callback(const source& from, F f) : Callback<F>(from.token, f) {}
    };
    static void request(source& s) { s.stop.request_stop(); }
};
using ours_shared =
    shared_family<coppice::stop_source, coppice::stop_token, coppice::stop_callback>;
using standard = shared_family<std::stop_source, std::stop_token, std::stop_callback>;

// Sources whose slots hold a subscription instead of a callback.
struct ours_subscribed : ours_shared {
    template <std::size_t, class F>
    struct callback {
        callback(const source& from, F f) : subscription(from.token.subscribe(f)) {}
        callback(const callback&) = delete;
        ~callback() { subscription.unsubscribe(); }
        coppice::stop_subscription subscription;
    };
};

// The floor of every lock-free registration: one compare-exchange each way.
struct bare_exchange {
    struct source {
        mutable coppice::internal::atomic<const void*> word{nullptr};
    };
    template <std::size_t, class F>
    struct callback {
        callback(const source& s, F f) : from(s), function(f) {
            const void* seen = nullptr;
            from.word.compare_exchange_strong(seen, this, coppice::internal::release,
                                              coppice::internal::acquire);
        }
        ~callback() {
            const void* seen = this;
            from.word.compare_exchange_strong(seen, nullptr, coppice::internal::relaxed,
                                              coppice::internal::acquire);
        }
        callback(const callback&) = delete;
        const source& from;
        F function;
    };
    static void request(source& s) {
        const void* const callback = s.word.exchange(nullptr, coppice::internal::acq_rel);
        // All callbacks of this benchmark are of one type; see counting.
        if (callback != nullptr) run(callback);
    }
    static void run(const void* callback);
};

// The floor of a registration with two locked instructions: two of the kind that is cheaper on this
// processor, and the callback's own fields. It registers nothing.
struct two_locked {
    struct source {
        mutable coppice::internal::atomic<std::uintptr_t> word{0};
    };
    template <std::size_t, class F>
    struct callback {
        callback(const source& s, F f) : from(s), function(f) {
            from.word.fetch_add(1, coppice::internal::relaxed);
        }
        ~callback() { from.word.fetch_sub(1, coppice::internal::relaxed); }
        callback(const callback&) = delete;
        const source& from;
        F function;
    };
};
// The floor of a registration without locked instructions: the fields, and one word written twice.
struct stores_alone {
    struct source {
        mutable coppice::internal::atomic<const void*> word{nullptr};
    };
    template <std::size_t, class F>
    struct callback {
        callback(const source& s, F f) : execute(&run), from(s), function(f) {
            from.word.store(this, coppice::internal::release);
        }
        ~callback() { from.word.store(nullptr, coppice::internal::release); }
        callback(const callback&) = delete;
        static void run(callback* self) { self->function(); }
        void (*execute)(callback*);
        const source& from;
        F function;
    };
};

// The function of all callbacks here.
struct counting {
    std::uint64_t* count;
    void operator()() const noexcept { ++*count; }
};

inline void bare_exchange::run(const void* callback) {
    static_cast<const bare_exchange::callback<0, counting>*>(callback)->function();
}

}  // namespace bench_stop
