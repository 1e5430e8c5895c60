// A domain of your own: an execution resource that has a better way to run an algorithm. Here a
// device runs all indices of a bulk in one call, as a vector unit or an accelerator would.
#include <coppice/execution.hpp>

#include <cstdio>
#include <tuple>
#include <utility>
#include <vector>

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

// The device: one call runs a kernel for all indices.
struct device {
    int launches = 0;
    template <class Kernel>
    void launch(int count, Kernel&& kernel) {
        ++launches;
        for (int i = 0; i != count; ++i) kernel(i);
    }
};

// ---- What bulk becomes on the device: a sender like any other. ----------------------------------

template <class Child, class F>
struct launch_sender {
    using sender_concept = ex::sender_tag;

    Child child;
    device* dev;
    int count;
    F f;

    auto get_env() const noexcept { return ex::get_env(child); }  // it completes where child does

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() {
        return ex::get_completion_signatures<Child, Env...>();
    }
    template <class Rcvr>
    struct receiver {
        using receiver_concept = ex::receiver_tag;
        device* dev;
        int count;
        F f;
        Rcvr rcvr;

        template <class... Values>
        void set_value(Values&&... values) && noexcept {
            dev->launch(count, [&](int i) { f(i, i + 1, values...); });
            ex::set_value(std::move(rcvr), std::forward<Values>(values)...);
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            ex::set_error(std::move(rcvr), std::forward<Error>(error));
        }
        void set_stopped() && noexcept { ex::set_stopped(std::move(rcvr)); }
        auto get_env() const noexcept { return ex::get_env(rcvr); }
    };
    template <ex::receiver Rcvr>
    auto connect(Rcvr rcvr) && {
        return ex::connect(std::move(child),
                           receiver<Rcvr>{dev, count, std::move(f), std::move(rcvr)});
    }
};

// ---- The domain chooses that sender, and the device's scheduler names the domain. ---------------

class device_scheduler;

// [domain]
struct device_domain {
    // Called for each bulk_chunked that completes on the device, and so for each bulk: where no
    // domain customizes bulk, it becomes bulk_chunked.
    template <class Sndr, class Env>
        requires std::same_as<ex::tag_of_t<Sndr>, ex::bulk_chunked_t>
    static auto transform_sender(ex::set_value_t, Sndr&& sndr, const Env& env);
};
// [/domain]

class device_scheduler {
public:
    using scheduler_concept = ex::scheduler_tag;
    explicit device_scheduler(device& d) noexcept : dev(&d) {}

    struct sender {
        using sender_concept = ex::sender_tag;
        device* dev;

        struct attrs {
            device* dev;
            device_scheduler query(ex::get_completion_scheduler_t<ex::set_value_t>) const noexcept {
                return device_scheduler(*dev);
            }
        };
        attrs get_env() const noexcept { return {dev}; }
        template <class Self, class... Env>
        static consteval auto get_completion_signatures() {
            return ex::completion_signatures<ex::set_value_t()>();
        }
        template <class Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return ex::connect(ex::just(), std::move(rcvr));  // the device is not far away
        }
    };
    sender schedule() const noexcept { return {dev}; }
    device_domain query(ex::get_completion_domain_t<ex::set_value_t>) const noexcept { return {}; }
    device_domain query(ex::get_domain_t) const noexcept { return {}; }
    bool operator==(const device_scheduler&) const noexcept = default;

    device* dev;
};

template <class Sndr, class Env>
    requires std::same_as<ex::tag_of_t<Sndr>, ex::bulk_chunked_t>
auto device_domain::transform_sender(ex::set_value_t, Sndr&& sndr, const Env& env) {
    auto&& [tag, data, child] = std::forward<Sndr>(sndr);
    auto&& [policy, shape, f] = data;
    const device_scheduler sch =
        ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(child), env);
    using Child = std::decay_t<decltype(child)>;
    using F = std::decay_t<decltype(f)>;
    return launch_sender<Child, F>{std::move(child), sch.dev, int(shape), std::move(f)};
}

int main() {
    device dev;
    const auto doubled = [](auto sndr) {
        return std::move(sndr) |
               ex::bulk(ex::par, 4, [](int i, std::vector<int>& all) { all[std::size_t(i)] *= 2; });
    };
    const std::vector<int> numbers{1, 2, 3, 4};

    auto [here] = *sync_wait(doubled(ex::just(numbers)));
    std::printf("without a device: %d, launches: %d\n", here[3], dev.launches);

    auto [there] = *sync_wait(doubled(ex::just(numbers) | ex::continues_on(device_scheduler(dev))));
    std::printf("on the device: %d, launches: %d\n", there[3], dev.launches);
}
