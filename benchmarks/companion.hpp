// A rival in a program of its own, which gets requests through pipes and is halted between turns.
#pragma once
// OpenMP's idle threads spin for up to a fifth of a second. Signals halt them while another runtime
// is measured.

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace bench {

class companion {
public:
    // Starts `program`; the process ends if that is impossible.
    explicit companion(const char* program) {
        int to[2], from[2];
        // Other companions must not hold these pipes open, because this one ends when its pipe
        // closes.
        if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) fail("pipe2");
        child_ = ::fork();
        if (child_ < 0) fail("fork");
        if (child_ == 0) {
            ::dup2(to[0], 0);
            ::dup2(from[1], 1);
            ::execl(program, program, nullptr);
            ::_exit(127);
        }
        ::close(to[0]);
        ::close(from[1]);
        ask_ = ::fdopen(to[1], "w");
        answer_ = ::fdopen(from[0], "r");
        ::kill(child_, SIGSTOP);
    }
    companion(const companion&) = delete;
    companion& operator=(const companion&) = delete;
    ~companion() {
        ::kill(child_, SIGCONT);
        std::fclose(ask_);
        std::fclose(answer_);
        ::waitpid(child_, nullptr, 0);
    }
    struct answer {
        std::uint64_t result;
        double ns;  // measured by the rival: without the two context switches that a request costs
    };
    answer run(const char* workload, std::size_t threads, std::size_t size) {
        ::kill(child_, SIGCONT);
        std::fprintf(ask_, "%s %zu %zu\n", workload, threads, size);
        std::fflush(ask_);
        unsigned long long result = 0;
        double ns = 0;
        if (std::fscanf(answer_, "%llu %lf", &result, &ns) != 2) fail("a rival has gone");
        ::kill(child_, SIGSTOP);
        return {result, ns};
    }

private:
    [[noreturn]] static void fail(const char* what) {
        std::perror(what);
        std::exit(1);
    }
    pid_t child_ = -1;
    std::FILE* ask_ = nullptr;
    std::FILE* answer_ = nullptr;
};

}  // namespace bench
