// bench_pipeline: the cost of an item in a pipeline, compared with oneTBB's parallel_pipeline.
#include "rivals.hpp"

#include "../harness.hpp"

#include <string>
#include <vector>

namespace {

using namespace bench_pipeline;

struct kind {
    const char* name;
    unsigned steps;
    std::size_t size;
};

}  // namespace

int main(int argc, char** argv) {
    const bench::options o = bench::parse(argc, argv);
    std::vector<bench::workload> all;
    for (const std::size_t threads : {1, 2}) {
        for (const kind& each :
             {kind{"empty", 0, 200'000}, kind{"short", 300, 50'000}, kind{"long", 10'000, 4'000}}) {
            for (const bool in_order : {false, true}) {
                const work w{threads, 16, each.steps, in_order};
                all.push_back({std::string("pipeline, ") + each.name + " items, " +
                                   (in_order ? "in order, " : "serial, ") +
                                   std::to_string(threads) + " threads",
                               "item",
                               each.size,
                               100,
                               {{"oneTBB parallel_pipeline",
                                 [w](std::size_t size) { return run_tbb(w, size); }},
                                {"coppice pipeline",
                                 [w](std::size_t size) { return run_coppice(w, size); }}}});
            }
        }
    }
    std::vector<bench::figure> figures;
    const int result = bench::run(all, o, figures);
    if (o.tiny) return result;
    for (std::size_t i = 0; i + 1 < figures.size(); i += 2) {
        bench::judge_no_worse(o, figures[i].workload,
                              bench::ratios(figures[i + 1].samples, figures[i].samples));
    }
    return result;
}
