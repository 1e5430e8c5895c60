// A simulation finds a race between coroutines: some seed shows it, and shows it again each time.
// [top]
#include <coppice/coppice.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

using namespace coppice;
namespace ex = coppice::execution;
// [/top]

namespace {

// [race]
// An account with a journal on disk. The first way to deposit has a fault that no sanitizer sees,
// because there is only one thread: it reads, awaits, and writes a value that is stale by then.
class account {
public:
    explicit account(io::context& loop) : journal_(loop, "journal", io::open_mode::create) {}

    task<> deposit(int amount) {
        const int before = balance_;
        co_await note(amount);
        balance_ = before + amount;
    }
    task<> deposit_rightly(int amount) {
        co_await note(amount);
        balance_ += amount;
    }
    int balance() const { return balance_; }

private:
    task<> note(int amount) {
        const std::array<std::byte, 1> entry{static_cast<std::byte>(amount)};
        std::size_t written = 0;
        while (written == 0) written = co_await journal_.write_at(entries_, entry);
        ++entries_;
    }

    io::file journal_;
    std::uint64_t entries_ = 0;
    int balance_ = 0;
};
// [/race]

using way = task<> (account::*)(int);

task<> customer(io::context& loop, account& to, way deposit, int amount,
                std::chrono::nanoseconds after) {
    io::timer timer(loop);
    co_await timer.wait_for(after);
    co_await (to.*deposit)(amount);
}

// [search]
// Returns true if no money is lost in this seed's world. Two customers come 1.8 ms apart, and the
// seed says how long the disk takes: they meet only if that is longer.
bool keeps_the_money(std::uint64_t seed, way deposit) {
    io::simulation world(seed);
    io::context loop(world);
    account shared(loop);
    ex::counting_scope scope;
    for (const auto after : {std::chrono::nanoseconds(0), std::chrono::nanoseconds(1'800'000)}) {
        ex::spawn(ex::starts_on(loop.get_scheduler(), customer(loop, shared, deposit, 10, after)),
                  scope.get_token(), [](auto&&) noexcept {});
    }
    loop.run();
    this_thread::sync_wait(scope.join());
    return shared.balance() == 20;
}

// Returns the first seed whose world shows the fault, or nothing if none of the first `most` does.
std::optional<std::uint64_t> failing_seed(way deposit, std::uint64_t most = 500) {
    for (std::uint64_t seed = 1; seed <= most; ++seed) {
        if (!keeps_the_money(seed, deposit)) return seed;
    }
    return std::nullopt;
}
// [/search]

}  // namespace

int main() {
    const std::optional<std::uint64_t> seed = failing_seed(&account::deposit);
    if (!seed) return 1;
    // [replay]
    // The seed is the bug report: it fails every time, also under a debugger, and passes once the
    // fault is fixed.
    for (int i = 0; i != 3; ++i) {
        std::puts(keeps_the_money(*seed, &account::deposit) ? "fine" : "money was lost");
    }
    std::puts(keeps_the_money(*seed, &account::deposit_rightly) ? "mended" : "not mended");
    std::puts(failing_seed(&account::deposit_rightly) ? "another fault" : "no seed of 500 fails");
    // [/replay]
}
