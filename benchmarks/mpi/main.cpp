// bench_mpi: messages and algorithms between processes, beside raw MPI. mpiexec starts this program
// again as the processes of each part.
#include "parts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace bench_mpi;

struct part {
    const char* name;
    std::size_t processes;
    int (*run)(const coppice::mpi::communicator& world, const bench::options& o);
};
constexpr part parts[] = {{"ping-pong", 2, &run_ping_pong},
                          {"halo", 4, &run_halo},
                          {"sort", 4, &run_sort},
                          {"search", 4, &run_search},
                          {"model", 4, &run_model}};

// Runs a part in this process, one of the job. Rank 0 prints what was measured.
int run_part(const part& p, const bench::options& o) {
    coppice::mpi::environment environment;
    bench::options mine = o;
    if (environment.world().rank() != 0) {
        if (std::freopen("/dev/null", "w", stdout) == nullptr) return 1;
        mine.json = nullptr;
    }
    return p.run(environment.world(), mine);
}

// Starts the processes of a part, and waits for them. Returns true if all have ended with 0. There
// are no more processes than processors, but at least two: all wait in loops, and those without a
// processor would delay the others by time slices.
bool start_part(const part& p, const std::vector<char*>& arguments) {
    const auto processors = static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN));
    const std::string processes =
        std::to_string(std::clamp(processors, std::size_t{2}, p.processes));
    std::vector<const char*> words{BENCH_ON_RANKS};
    words.insert(words.end(), {BENCH_MPIEXEC, processes.c_str(), arguments[0], "--part", p.name});
    words.insert(words.end(), arguments.begin() + 1, arguments.end());
    words.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        ::execv(words[0], const_cast<char**>(words.data()));
        ::_exit(127);
    }
    int status = 0;
    const bool waited = child > 0 && ::waitpid(child, &status, 0) == child;
    if (waited && WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    std::printf("part %s failed\n", p.name);
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    const part* mine = nullptr;
    std::vector<char*> arguments{argv[0]};
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--part") != 0 || i + 1 == argc) {
            arguments.push_back(argv[i]);
            continue;
        }
        ++i;
        for (const part& each : parts) {
            if (std::strcmp(argv[i], each.name) == 0) mine = &each;
        }
    }
    const bench::options o = bench::parse(static_cast<int>(arguments.size()), arguments.data());
    if (mine != nullptr) return run_part(*mine, o);
    int status = 0;
    for (const part& each : parts) status |= start_part(each, arguments) ? 0 : 1;
    return status;
}
