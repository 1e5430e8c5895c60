// The driver of the models: explores interleavings, plants mutants, and counts survivors.
#pragma once
// A model is a relacy test suite over the library's own headers, built with COPPICE_MODEL. Its
// main:
//
//   model::report report("deque");
//   report.holds<owner_and_thief>("two sides take each item once");
//   report.dies_weakened<owner_and_thief>("include/coppice/pool/internal/deque.hpp",
//   "deque.publish"); report.dies_planted<owner_and_thief>("deque.skip_last_item_race"); return
//   report.finish();
//
// holds() must find no failure. dies_*() must find one; otherwise the model could not have found
// that fault in the code either. A mutant that cannot die is listed with survives(), which requires
// the reason in words and checks that the mutant does survive.

#include "checker.hpp"

#include <coppice/base/internal/asymmetric.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/futex.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace model {

// The limits of one exploration. The random scheduler visits `iterations` schedules. The full
// search ends by itself when it has visited all of them.
struct effort {
    unsigned iterations = 20'000;
    bool full_search = false;
};

// The base of a model: Threads simulated threads, a simulated futex table, and the fences' words.
template <class Derived, int Threads>
struct test : rl::test_suite<Derived, Threads> {
    coppice::internal::model_futexes futexes;
    coppice::internal::model_fences fences;
    test() {
        coppice::internal::model_futexes::current() = &futexes;
        coppice::internal::model_fences::current() = &fences;
    }
};

// Fails the running model. Every claim inside a model uses it.
inline void require(bool holds, const char* claim, coppice::internal::source_point at = {}) {
    if (!holds) rl::ctx().fail_test(claim, rl::test_result_user_assert_failed, at.info);
}

}  // namespace model

// A failed CHECK fails the running model; the failing thread is never resumed.
void coppice::internal::check_failed(const char*, const char* message, const char*, int) noexcept {
    rl::ctx().fail_test(message, rl::test_result_user_assert_failed, source_point().info);
    std::abort();
}

// Relacy replaces new and delete, but not their newer forms. The checker's delete would not know
// what the library's own forms allocate. Models need no unusual alignment.
void operator delete(void* memory, std::size_t) noexcept {
    operator delete(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    operator delete[](memory);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return operator new(size);
}
void* operator new(std::size_t size, std::align_val_t) {
    return operator new(size);
}
void* operator new[](std::size_t size, std::align_val_t) {
    return operator new[](size);
}
void* operator new[](std::size_t size, std::align_val_t, const std::nothrow_t&) noexcept {
    return operator new[](size);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    operator delete(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    operator delete(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    operator delete[](memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    operator delete[](memory);
}

namespace model {

// Receives the checker's output in a fixed buffer. Relacy replaces operator new in the program but
// not in the standard library, so a growing stream would free memory that the other one allocated.
class fixed_stream : std::streambuf, public std::ostream {
public:
    fixed_stream() : std::ostream(static_cast<std::streambuf*>(this)) {
        setp(text_, text_ + sizeof text_);
    }
    std::string_view said() const { return {pbase(), static_cast<std::size_t>(pptr() - pbase())}; }

private:
    int overflow(int c) override { return c == EOF ? 0 : c; }  // the rest is dropped
    char text_[1 << 16];
};

class report {
public:
    explicit report(const char* name) : name_(name) {
        if (const char* asked = std::getenv("COPPICE_MODEL_EFFORT")) scale_ = std::atof(asked);
    }

    template <class Test>
    void holds(const char* claim, effort most = {}) {
        std::string said;
        const bool held = explore<Test>(most, said);
        count(held, "holds", claim, held ? "" : said.c_str());
    }
    template <class Test>
    void dies_weakened(const char* file, const char* edge, effort most = {}) {
        weaken(file, edge);
        expect_death<Test>(edge, most);
    }
    template <class Test>
    void dies_planted(const char* name, effort most = {}) {
        mutation().planted = name;
        expect_death<Test>(name, most);
    }
    // Lists a mutant that no model can kill, and why. It must survive, and must have run.
    template <class Test>
    void survives_weakened(const char* file, const char* edge, const char* why, effort most = {}) {
        weaken(file, edge);
        std::string said;
        const bool lived = explore<Test>(most, said);
        count(lived && mutation().touched, "survives", edge, lived ? why : said.c_str());
        mutation() = {};
    }

    // Prints the closing lines. Returns the exit status of the model.
    int finish() const {
        std::printf("%s model: %d passed, %d failed\n", name_, passed_, failed_);
        return failed_ == 0 ? 0 : 1;
    }

private:
    static coppice::internal::model_mutation& mutation() {
        return coppice::internal::model_mutation::current();
    }

    template <class Test>
    bool explore(effort most, std::string& said, bool explains = true) {
        fixed_stream output;
        fixed_stream progress;
        rl::test_params params;
        params.iteration_count =
            static_cast<rl::iteration_t>(static_cast<double>(most.iterations) * scale_) + 1;
        params.output_stream = &output;
        params.progress_stream = &progress;
        params.search_type =
            most.full_search ? rl::fair_full_search_scheduler_type : rl::random_scheduler_type;
        params.execution_depth_limit = 4000;
        static constexpr erased_test erased = erase<Test>();
        const bool found_nothing = model::explore(erased, params, explains);
        said = output.said();
        return found_nothing;
    }

    template <class Test>
    void expect_death(const char* name, effort most) {
        std::string said;
        const bool lived = explore<Test>(most, said, false);
        if (!mutation().touched) {
            count(false, "dies", name, "the mutant was never reached: wrong file, edge or name");
        } else {
            count(!lived, "dies", name, "the mutant lived: this model cannot see that fault");
        }
        mutation() = {};
    }

    // Points the mutation at every operation on, or directly below, a line that names the edge.
    static void weaken(const char* file, const char* edge) {
        std::ifstream source(std::string(COPPICE_SOURCE_DIR) + "/" + file);
        const std::string mark = std::string("edge ") + edge + " (";
        std::string text;
        coppice::internal::model_mutation& m = mutation();
        m = {};
        for (unsigned number = 1; std::getline(source, text); ++number) {
            const std::size_t found = text.find(mark);
            if (found == std::string::npos || m.line_count + 2 > m.lines_max) continue;
            const std::size_t first = text.find_first_not_of(' ');
            const bool alone = text.compare(first, 2, "//") == 0;
            for (const unsigned line : {number, number + 1}) {
                if (line == number + 1 && !alone) continue;
                m.lines[m.line_count++] = {file, line};
            }
        }
    }

    void count(bool passed, const char* what, const char* name, const char* why) {
        ++(passed ? passed_ : failed_);
        std::printf("%s %s: %s %s\n", passed ? "ok    " : "FAILED", name_, name, what);
        if (*why != 0 && (!passed || what[0] == 's')) std::printf("       %s\n", why);
        std::fflush(stdout);
    }

    const char* name_;
    double scale_ = 1;
    int passed_ = 0;
    int failed_ = 0;
};

}  // namespace model
