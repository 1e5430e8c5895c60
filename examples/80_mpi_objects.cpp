// Objects of any type between processes: each counts the words of its part of a text, and all add
// the counts up.
// mpiexec -n 4 example_80_mpi_objects
#include <coppice/execution.hpp>
#include <coppice/mpi.hpp>
#include <coppice/task.hpp>

#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace mpi = coppice::mpi;
using coppice::task;

namespace {

// [type]
struct count {
    std::string longest;
    std::map<std::string, int> words;
};
// [/type]

}  // namespace

// [serializer]
template <>
struct coppice::mpi::serializer<count> {
    static void write(mpi::output_archive& to, const count& c) { to.write(c.longest, c.words); }
    static count read(mpi::input_archive& from) {
        return {from.read<std::string>(), from.read<std::map<std::string, int>>()};
    }
};
// [/serializer]

namespace {

count count_words(const std::string& text) {
    count made;
    std::istringstream words(text);
    for (std::string word; words >> word; ++made.words[word]) {
        if (word.size() > made.longest.size()) made.longest = word;
    }
    return made;
}

// [use]
count merged(count a, const count& b) {
    if (b.longest.size() > a.longest.size()) a.longest = b.longest;
    for (const auto& [word, times] : b.words) a.words[word] += times;
    return a;
}
task<count> count_together(const mpi::communicator& world, std::vector<std::string> texts) {
    std::string mine;
    co_await mpi::scatter_objects(world, texts, mine, 0);  // only process 0 has the texts
    count total = count_words(mine);
    co_await mpi::all_reduce_object(world, total, merged);
    co_return total;
}
// [/use]

}  // namespace

int main() {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    std::vector<std::string> texts;
    if (world.rank() == 0) {
        texts.resize(static_cast<std::size_t>(world.size()));
        texts.front() = "the end of the beginning";
        texts.back() += " is not the beginning of the end";
    }
    auto result = coppice::this_thread::sync_wait(count_together(world, texts));
    const count& total = std::get<0>(*result);
    if (world.rank() != world.size() - 1) return 0;
    std::printf("the longest word is %s\n", total.longest.c_str());
    for (const auto& [word, times] : total.words) std::printf("%d %s\n", times, word.c_str());
}
