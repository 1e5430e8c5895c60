// Operations that each process of a job repeats until another one has died, and how that one dies.
#pragma once

#include <coppice/execution.hpp>
#include <coppice/mpi/bulk.hpp>
#include <coppice/mpi/call.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/objects.hpp>
#include <coppice/mpi/remote.hpp>
#include <coppice/mpi/sort.hpp>
#include <coppice/mpi/varying.hpp>
#include <coppice/mpi/window.hpp>
#include <coppice/mpi/work_sharing.hpp>
#include <coppice/token.hpp>

#include <mpi.h>
#include <signal.h>
#include <unistd.h>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace mpi_test {

namespace mpi = coppice::mpi;
using coppice::block;

// How the victim dies: before its n-th operation, or by a thread at any moment.
enum class death { before_the_first, before_the_second, before_the_fourth, at_any_moment, by_exit };

[[noreturn]] inline void die() {
    ::kill(::getpid(), SIGKILL);
    std::abort();
}

// Every rank calls next() before each operation.
class steps {
public:
    steps(const mpi::communicator& world, death how)
        : is_victim_(world.rank() == world.size() - 1), how_(how) {}
    void next() {
        if (!is_victim_) return;
        const int n = count_++;
        if (how_ == death::before_the_first || (how_ == death::before_the_second && n == 1) ||
            (how_ == death::before_the_fourth && n == 3))
            die();
        if (how_ == death::by_exit) ::_exit(0);
        if (how_ == death::at_any_moment && n == 0)
            std::thread([] {
                for (int n = ::getpid() % 1000; n != 0; --n) std::this_thread::yield();
                die();
            }).detach();
    }

private:
    bool is_victim_;
    death how_;
    int count_ = 0;
};

// Each repeats an operation until it fails.
using operation = void (*)(const mpi::communicator& world, steps& s);

inline void barriers(const mpi::communicator& world, steps& s) {
    while (true) {
        s.next();
        mpi::barrier(world, block);
    }
}

inline void broadcasts(const mpi::communicator& world, steps& s) {
    std::vector<double> data(1 << 16);
    while (true) {
        s.next();
        mpi::broadcast(world, data, world.size() - 1, block);
    }
}

inline void all_reduces(const mpi::communicator& world, steps& s) {
    while (true) {
        std::vector<double> data(1 << 16, 1);  // freed after the failure
        s.next();
        mpi::all_reduce(world, data, data, mpi::reduction::sum, block);
        if (data.front() != world.size()) throw std::logic_error("the sum is wrong");
    }
}

inline void reduces(const mpi::communicator& world, steps& s) {
    while (true) {
        const std::vector<double> data(1 << 16, 1);
        std::vector<double> sums(data.size());
        s.next();
        mpi::reduce(world, data, sums, mpi::reduction::sum, 0, block);
    }
}

inline void scans(const mpi::communicator& world, steps& s) {
    while (true) {
        std::vector<int> data(1 << 14, 1), before(data.size());
        s.next();
        mpi::exclusive_scan(world, data, before, mpi::reduction::sum, block);
        mpi::scan(world, data, data, mpi::reduction::sum, block);
        if (data.back() != world.rank() + 1) throw std::logic_error("the sum is wrong");
    }
}

inline void gathers(const mpi::communicator& world, steps& s) {
    const std::size_t size = static_cast<std::size_t>(world.size());
    while (true) {
        const std::vector<int> mine(1 << 14, world.rank());
        std::vector<int> all(size << 14);
        s.next();
        mpi::gather(world, mine, all, 0, block);
        mpi::all_gather(world, mine, all, block);
        if (all.back() != world.size() - 1) throw std::logic_error("a part is wrong");
    }
}

inline void scatters(const mpi::communicator& world, steps& s) {
    const std::size_t size = static_cast<std::size_t>(world.size());
    while (true) {
        const std::vector<int> all(size << 14, 7);
        std::vector<int> mine(1 << 14);
        s.next();
        mpi::scatter(world, all, mine, world.size() - 1, block);
        if (mine.back() != 7) throw std::logic_error("a part is wrong");
    }
}

inline void all_to_alls(const mpi::communicator& world, steps& s) {
    const std::size_t size = static_cast<std::size_t>(world.size());
    while (true) {
        const std::vector<int> from(size << 14, world.rank());
        std::vector<int> into(size << 14);
        s.next();
        mpi::all_to_all(world, from, into, block);
        if (into.back() != world.size() - 1) throw std::logic_error("a part is wrong");
    }
}

inline void parts(const mpi::communicator& world, steps& s) {
    const std::vector<int> mine(static_cast<std::size_t>(world.rank() + 1) << 12, world.rank());
    while (true) {
        mpi::parted<int> all;
        s.next();
        mpi::all_gather_v(world, mine, all, block);
        if (all.part(world.size() - 1).back() != world.size() - 1)
            throw std::logic_error("a part is wrong");
    }
}

inline void varying(const mpi::communicator& world, steps& s) {
    const mpi::partition to = mpi::partition::even(1 << 14, world.size());
    while (true) {
        const std::vector<int> from(1 << 14, world.rank());
        mpi::parted<int> collected, own, exchanged;
        s.next();
        mpi::all_to_all_v(world, from, to, exchanged, block);
        mpi::gather_v(world, from, collected, 0, block);
        mpi::scatter_v(world, from, to, own, world.size() - 1, block);
        if (own.objects.back() != world.size() - 1) throw std::logic_error("a part is wrong");
    }
}

// A send of this size waits for its receiver.
inline void large_messages(const mpi::communicator& world, steps& s) {
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    while (true) {
        const std::vector<int> out(1 << 18, world.rank());
        std::vector<int> in(1 << 18);
        s.next();
        mpi::send_receive(world, out, {next}, in, {previous}, block);
        if (in.back() != previous) throw std::logic_error("the message is wrong");
    }
}

// The others send to the victim, which receives nothing.
inline void sends(const mpi::communicator& world, steps& s) {
    const int victim = world.size() - 1;
    std::vector<int> data(1 << 18);
    for (int n = 0; n != 4; ++n) s.next();
    if (world.rank() != victim) mpi::send(world, data, {victim}, block);
    mpi::receive(world, data, {victim, 1}, block);
}

inline void receives(const mpi::communicator& world, steps& s) {
    std::vector<int> data(1 << 18);
    for (int n = 0; n != 4; ++n) s.next();
    mpi::receive(world, data, {world.size() - 1}, block);
}

inline void calls(const mpi::communicator& world, steps& s) {
    while (true) {
        s.next();
        mpi::call(
            world,
            [over = world.native_handle()](MPI_Request* r) noexcept {
                return MPI_Ibarrier(over, r);
            },
            block);
    }
}

inline void probes(const mpi::communicator& world, steps& s) {
    for (int n = 0; n != 4; ++n) s.next();
    mpi::probe<int>(world, {mpi::any_source, mpi::any_tag}, block);
    std::vector<int> data;
    mpi::receive_all(world, data, {mpi::any_source}, block);
}

// A flush holds the environment's thread until the other process answers.
inline void fences(const mpi::communicator& world, steps& s) {
    constexpr std::size_t last = 1 << 12;
    mpi::window<int> window(world, last + 1);
    const std::vector<int> data(last, world.rank());
    std::vector<int> before(1 << 12);
    const int next = (world.rank() + 1) % world.size();
    while (true) {
        s.next();
        mpi::put(window, data, next, 0, block);
        mpi::accumulate(window, data, next, 0, mpi::reduction::sum, block);
        mpi::fetch_accumulate(window, data, before, next, 0, mpi::reduction::sum, block);
        (void)mpi::compare_exchange(window, 0, world.rank(), next, last, block);
        mpi::flush(window, next, block);
        mpi::fence(window, block);
    }
}

inline int add_one(int i) {
    return i + 1;
}

inline void remote_calls(const mpi::communicator& world, steps& s) {
    mpi::remote_functions<&add_one> calls(world);
    while (true) {
        s.next();
        const auto got = coppice::this_thread::sync_wait(
            mpi::remote<&add_one>(calls, (world.rank() + 1) % world.size(), 1));
        if (std::get<0>(got.value()) != 2) throw std::logic_error("the result is wrong");
    }
}

inline void shared_work(const mpi::communicator& world, steps& s) {
    mpi::work_sharing<int> work(world);
    while (true) {
        if (world.rank() == 0) work.add(12);
        s.next();
        coppice::this_thread::sync_wait(work.run([&s](int depth, mpi::work_found<int>& found) {
            s.next();
            for (int i = 0; depth != 0 && i != 2; ++i) found.add(depth - 1);
        }));
    }
}

// No process runs out of items, so the worker must look for the failure itself.
inline void endless_work(const mpi::communicator& world, steps& s) {
    mpi::work_sharing<int> work(world);
    work.add(1);
    coppice::this_thread::sync_wait(work.run([&s](int item, mpi::work_found<int>& found) {
        s.next();
        found.add(item);
    }));
}

inline void sorts(const mpi::communicator& world, steps& s) {
    while (true) {
        std::vector<int> numbers(1 << 12, -world.rank());
        s.next();
        coppice::this_thread::sync_wait(mpi::sort(world, numbers));
    }
}

inline void loops(const mpi::communicator& world, steps& s) {
    while (true) {
        s.next();
        coppice::this_thread::sync_wait(mpi::bulk(world, 100, [](std::size_t) {}));
        coppice::this_thread::sync_wait(
            mpi::map_reduce(world, 100, 0, [](std::size_t) { return 1; }, std::plus<>()));
    }
}

inline void object_reductions(const mpi::communicator& world, steps& s) {
    while (true) {
        std::string text(1 << 14, 'x');
        s.next();
        coppice::this_thread::sync_wait(mpi::all_reduce_object(
            world, text, [](const std::string& a, const std::string& b) { return a + b; }));
        if (text.size() != static_cast<std::size_t>(world.size()) << 14)
            throw std::logic_error("the text is wrong");
    }
}

// The environment's thread waits in MPI for the victim.
inline void duplicates(const mpi::communicator& world, steps& s) {
    while (true) {
        s.next();
        const mpi::communicator made = world.duplicate();
        const mpi::communicator all = made.split(0);
    }
}

struct named_operation {
    const char* name;
    operation run;
};
inline constexpr named_operation operations[] = {{"barriers", &barriers},
                                                 {"broadcasts", &broadcasts},
                                                 {"all_reduces", &all_reduces},
                                                 {"reduces", &reduces},
                                                 {"scans", &scans},
                                                 {"gathers", &gathers},
                                                 {"scatters", &scatters},
                                                 {"all_to_alls", &all_to_alls},
                                                 {"parts", &parts},
                                                 {"varying", &varying},
                                                 {"large_messages", &large_messages},
                                                 {"sends", &sends},
                                                 {"receives", &receives},
                                                 {"calls", &calls},
                                                 {"probes", &probes},
                                                 {"fences", &fences},
                                                 {"remote_calls", &remote_calls},
                                                 {"shared_work", &shared_work},
                                                 {"endless_work", &endless_work},
                                                 {"sorts", &sorts},
                                                 {"loops", &loops},
                                                 {"object_reductions", &object_reductions},
                                                 {"duplicates", &duplicates}};
inline constexpr const char* deaths[] = {"first", "second", "fourth", "any", "exit"};

}  // namespace mpi_test
