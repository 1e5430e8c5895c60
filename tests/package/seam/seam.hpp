// The interface of each part of seam_test.sh's program, for main.cpp and part.cpp.
#pragma once
// Each compiler makes one part, and main.cpp lets each part use the other's objects.

#include <coppice/contract.hpp>
#include <coppice/execution.hpp>
#include <coppice/io.hpp>
#include <coppice/pool.hpp>
#include <coppice/stop_token.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace seam {

using coppice::task;
namespace ex = coppice::execution;

// Tasks of numbers must not cross compilers (docs/packaging.md). This task may.
struct number {
    long value;
};
using text_sender = ex::any_sender<ex::completion_signatures<
    ex::set_value_t(std::string), ex::set_error_t(std::exception_ptr), ex::set_stopped_t()>>;

struct part {
    const char* compiler;
    task<std::string> (*says)(std::string words);
    task<std::string> (*quotes)(task<std::string> inner);
    task<std::string> (*quotes_sender)(text_sender inner);
    text_sender (*sends)(std::string words);
    task<number> (*sums)(task<number> one, task<number> other);
    task<number> (*counts_down)(long from, const part& other, const part& self);
    task<number> (*forks)(long n, const part& other, const part& self);
    task<> (*fails)(std::string words);
    task<std::string> (*catches)(task<> failing);
    task<> (*stops)();
    task<bool> (*sees_stop)(task<> stopping);
    task<std::string> (*receives)(coppice::io::tcp::socket& from, std::size_t bytes);
    task<> (*sends_to)(coppice::io::tcp::socket& to, std::string words);
    task<std::string> (*times_out)(task<> endless);
    task<> (*waits_for_stop)(coppice::io::context& loop);
    long (*forks_plain)(long n, const part& other);
    coppice::work_contract (*contract)(coppice::work_contract_group& group, long& runs);
    void (*runs_contracts)(coppice::work_contract_group& group);
    bool (*hears_stop)(coppice::inplace_stop_token token, void (*request)(void*), void* source);
    std::vector<std::size_t> (*layouts)();
};

const part& clang_part();
const part& gcc_part();

}  // namespace seam
