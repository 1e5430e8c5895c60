// Sections 8.1 to 8.3 of the paper, and lists of callbacks, all on one thread.
#include "families.hpp"
#include "workloads.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace bench_stop {

namespace {

template <class Family, std::size_t Index = 0>
using callback_of = typename Family::template callback<Index, counting>;

// 8.1: a callback is registered and removed, again and again. The last one stays and runs.
template <class Family>
std::uint64_t register_unregister(std::size_t size) {
    std::uint64_t count = 0;
    typename Family::source source;
    for (std::size_t i = 0; i != size; ++i) {
        callback_of<Family> callback(source, counting{&count});
        bench::keep(&callback);
    }
    callback_of<Family> callback(source, counting{&count});
    Family::request(source);
    return bench::hash().add(size).add(count).value();
}

// The same work for a family that registers nothing: it counts what a stop would run.
template <class Family>
std::uint64_t register_nothing(std::size_t size) {
    std::uint64_t count = 0;
    typename Family::source source;
    for (std::size_t i = 0; i != size; ++i) {
        callback_of<Family> callback(source, counting{&count});
        bench::keep(&callback);
    }
    return bench::hash().add(size).add(count + 1).value();
}

// 8.2: a new source without callbacks is stopped.
template <class Family>
std::uint64_t request(std::size_t size) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i != size; ++i) {
        typename Family::source source;
        bench::keep(&source);
        Family::request(source);
        bench::keep(&source);
        ++count;
    }
    return bench::hash().add(size).add(count).value();
}

// 8.3: callbacks are registered on the first slots of a new source, run by the stop, and removed.
template <class Family, std::size_t... Index>
void stop_once(std::uint64_t& count, std::index_sequence<Index...>) {
    typename Family::source source;
    bench::keep(&source);
    std::tuple<std::optional<callback_of<Family, Index>>...> callbacks;
    (std::get<Index>(callbacks).emplace(source, counting{&count}), ...);
    Family::request(source);
    bench::keep(&callbacks);
}
template <class Family, std::size_t Callbacks>
std::uint64_t register_request_remove(std::size_t size) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i != size; ++i) {
        stop_once<Family>(count, std::make_index_sequence<Callbacks>());
    }
    return bench::hash().add(count).value();
}

// Registers that many callbacks, then removes them in the same order. Keeps their memory for the
// next repetition, so that no page faults are measured.
template <class Family, std::size_t Callbacks>
std::uint64_t fill_and_empty(std::size_t size) {
    static const auto callbacks = std::make_unique<std::optional<callback_of<Family>>[]>(Callbacks);
    std::uint64_t count = 0;
    typename Family::source source;
    for (std::size_t i = 0; i < size; i += Callbacks) {
        for (std::size_t c = 0; c != Callbacks; ++c) {
            callbacks[c].emplace(source, counting{&count});
        }
        for (std::size_t c = 0; c != Callbacks; ++c) callbacks[c].reset();
    }
    for (std::size_t c = 0; c != Callbacks; ++c) callbacks[c].emplace(source, counting{&count});
    Family::request(source);
    for (std::size_t c = 0; c != Callbacks; ++c) callbacks[c].reset();
    return bench::hash().add(count).value();
}

// The first registration on a new source and its end, including the source.
template <class Family>
std::uint64_t first_registration(std::size_t size) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i != size; ++i) {
        typename Family::source source;
        bench::keep(&source);
        callback_of<Family> callback(source, counting{&count});
        bench::keep(&callback);
    }
    return bench::hash().add(size).add(count).value();
}

template <std::size_t Slots>
void add_request(std::vector<bench::workload>& workloads) {
    const std::string n = std::to_string(Slots);
    workloads.push_back({"8.2 request_stop, nothing registered, " + n + " slots",
                         "request",
                         50'000,
                         100,
                         {{"inplace", request<ours_inplace>},
                          {"inplace, published design", request<published_inplace>},
                          {n + " x single", request<ours_singles<Slots>>},
                          {n + " x single, the paper's", request<paper_singles<Slots>>},
                          {"finite<" + n + ">", request<ours_finite<Slots>>}}});
}

template <std::size_t Callbacks, std::size_t Slots>
void add_stop(std::vector<bench::workload>& workloads) {
    const std::string n = std::to_string(Slots);
    workloads.push_back(
        {"8.3 register " + std::to_string(Callbacks) + " of " + n + ", request, remove",
         "stop",
         10'000,
         100,
         {{"inplace", register_request_remove<ours_inplace, Callbacks>},
          {"inplace, published design", register_request_remove<published_inplace, Callbacks>},
          {n + " x single", register_request_remove<ours_singles<Slots>, Callbacks>},
          {n + " x single, the paper's", register_request_remove<paper_singles<Slots>, Callbacks>},
          {"finite<" + n + ">", register_request_remove<ours_finite<Slots>, Callbacks>}}});
}

template <std::size_t Callbacks>
void add_list(std::vector<bench::workload>& workloads) {
    workloads.push_back({"shared source, " + std::to_string(Callbacks) + " callbacks on one thread",
                         "registration",
                         std::max<std::size_t>(30'000, 10 * Callbacks),
                         3 * Callbacks,
                         {{"plain locked list", fill_and_empty<plain_shared, Callbacks>},
                          {"shared", fill_and_empty<ours_shared, Callbacks>},
                          {"shared, subscriptions", fill_and_empty<ours_subscribed, Callbacks>},
                          {"std::stop_source", fill_and_empty<standard, Callbacks>}}});
}

}  // namespace

void add_register_unregister(std::vector<bench::workload>& workloads) {
    workloads.push_back({"8.1 register and unregister, one thread",
                         "registration",
                         50'000,
                         1000,
                         {{"inplace", register_unregister<ours_inplace>},
                          {"inplace, published design", register_unregister<published_inplace>},
                          {"single", register_unregister<ours_singles<1>>},
                          {"single, the paper's", register_unregister<paper_singles<1>>},
                          {"finite<1>", register_unregister<ours_finite<1>>},
                          {"asymmetric", register_unregister<ours_asymmetric<1>>},
                          {"two bare compare-exchanges", register_unregister<bare_exchange>},
                          {"floor: two locked instructions", register_nothing<two_locked>},
                          {"floor: stores alone", register_nothing<stores_alone>},
                          {"shared", register_unregister<ours_shared>},
                          {"shared, subscription", register_unregister<ours_subscribed>},
                          {"plain locked list", register_unregister<plain_shared>},
                          {"std::stop_source", register_unregister<standard>}}});
    workloads.push_back({"first registration, with its source",
                         "source",
                         10'000,
                         100,
                         {{"std::stop_source", first_registration<standard>},
                          {"shared", first_registration<ours_shared>},
                          {"shared, subscription", first_registration<ours_subscribed>},
                          {"plain locked list", first_registration<plain_shared>},
                          {"inplace", first_registration<ours_inplace>},
                          {"single", first_registration<ours_singles<1>>}}});
}

void add_request_without_callbacks(std::vector<bench::workload>& workloads) {
    add_request<1>(workloads);
    add_request<2>(workloads);
    add_request<3>(workloads);
    add_request<10>(workloads);
    workloads.push_back({"request_stop of long-lived sources, nothing registered",
                         "request",
                         500,
                         100,
                         {{"inplace", request<ours_inplace>},
                          {"asymmetric", request<ours_asymmetric<1>>},
                          {"shared", request<ours_shared>},
                          {"std::stop_source", request<standard>}}});
}

void add_register_request_remove(std::vector<bench::workload>& workloads) {
    add_stop<1, 1>(workloads);
    add_stop<1, 2>(workloads);
    add_stop<1, 3>(workloads);
    add_stop<2, 2>(workloads);
    add_stop<3, 3>(workloads);
    add_stop<10, 10>(workloads);
}

void add_many_callbacks(std::vector<bench::workload>& workloads) {
    add_list<1>(workloads);
    add_list<3>(workloads);
    add_list<10>(workloads);
    add_list<100>(workloads);
    add_list<10'000>(workloads);
}

}  // namespace bench_stop
