// Bytes per source and per registration, by allocation and by size; and the papers' tables.
#include "families.hpp"
#include "workloads.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>

namespace {

// Written by the thread that prints. No other thread of this program allocates meanwhile.
std::size_t allocated_bytes = 0;
std::size_t allocations = 0;

}  // namespace

void* operator new(std::size_t size) {
    allocated_bytes += size;
    ++allocations;
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace bench_stop {

namespace {

constexpr std::size_t further = 100;

// Prints the bytes of a source and its registrations, on the heap and in the user's own objects.
template <class Family>
void print_bytes(const char* name, const bench::options& options) {
    using callback = typename Family::template callback<0, counting>;
    std::uint64_t count = 0;
    const auto callbacks = std::make_unique<std::optional<callback>[]>(further + 1);
    const std::size_t before = allocated_bytes;
    typename Family::source source;
    const std::size_t with_source = allocated_bytes;
    callbacks[0].emplace(source, counting{&count});
    const std::size_t with_first = allocated_bytes;
    for (std::size_t i = 1; i <= further; ++i) callbacks[i].emplace(source, counting{&count});
    const std::size_t with_all = allocated_bytes;
    for (std::size_t i = 0; i <= further; ++i) callbacks[i].reset();
    const std::size_t allocated_before = allocations;
    for (std::size_t i = 0; i != 10 * further; ++i) {
        callbacks[i % further].emplace(source, counting{&count});
        callbacks[i % further].reset();
    }
    std::printf(
        "  %-26s heap: source %3zu, first %3zu, each further %5.1f; object: %2zu; "
        "allocations of 1000 more: %zu\n",
        name, with_source - before, with_first - with_source,
        static_cast<double>(with_all - with_first) / further, sizeof(callback),
        allocations - allocated_before);
    const auto write = [&](const char* what, const char* unit, double value) {
        bench::write(options, {what, name, unit, value, value, value});
    };
    write("memory of a source", "bytes", static_cast<double>(with_source - before));
    write("memory of its first registration", "bytes",
          static_cast<double>(with_first - with_source));
    write("memory of each further registration", "bytes",
          static_cast<double>(with_all - with_first) / further);
    write("registrations that are made anew", "allocations in 1000",
          static_cast<double>(allocations - allocated_before));
}

}  // namespace

void print_memory(const bench::options& options) {
    std::printf("bytes: a source, its first registration, each further one (a function of 8)\n");
    print_bytes<standard>("std::stop_source", options);
    print_bytes<ours_shared>("shared", options);
    print_bytes<ours_subscribed>("shared, subscription", options);
    print_bytes<plain_shared>("plain locked list", options);
    std::printf(
        "  .NET before and after its pull request: source 64 and 64, first 272 and 218, "
        "each further 56 and 80\n");
    std::printf(
        "  in place, source and callback: inplace %zu, %zu (published %zu, %zu); "
        "single %zu, %zu (paper %zu, %zu); finite<10> %zu; asymmetric %zu\n",
        sizeof(coppice::inplace_stop_source), sizeof(coppice::inplace_stop_callback<counting>),
        sizeof(published::source), sizeof(published::callback<counting>),
        sizeof(coppice::single_inplace_stop_source),
        sizeof(coppice::single_inplace_stop_callback<counting>), sizeof(paper::source),
        sizeof(paper::callback<counting>), sizeof(coppice::finite_inplace_stop_source<10>),
        sizeof(coppice::asymmetric_inplace_stop_source<>));
}

}  // namespace bench_stop
