// A server program in a process of its own, as its users run it.
#pragma once

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../http/client.hpp"

namespace coppice::test {

// The destructor kills it if it still runs. The kernel kills it if the test dies first.
class served {
public:
    served(const char* program, std::vector<std::string> arguments, rlim_t files = 0) {
        int out[2], err[2];
        if (::pipe(out) != 0 || ::pipe(err) != 0) std::abort();
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::dup2(out[1], STDOUT_FILENO);
            ::dup2(err[1], STDERR_FILENO);
            for (const int fd : {out[0], out[1], err[0], err[1]}) ::close(fd);
            if (files != 0) {
                const rlimit limit{files, files};
                ::setrlimit(RLIMIT_NOFILE, &limit);
            }
            std::vector<char*> argv{const_cast<char*>(program)};
            for (std::string& a : arguments) argv.push_back(a.data());
            argv.push_back(nullptr);
            ::execv(program, argv.data());
            std::_Exit(127);
        }
        ::close(out[1]);
        ::close(err[1]);
        out_ = ::fdopen(out[0], "r");
        err_ = ::fdopen(err[0], "r");
    }
    served(const served&) = delete;
    ~served() {
        if (!ended_) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
        std::fclose(out_);
        std::fclose(err_);
    }
    // Returns the port of the listening line, or 0 if there is none.
    std::uint16_t port() {
        if (port_ == 0) {
            unsigned port = 0;
            const int got = std::fscanf(out_, "listening on http://127.0.0.1:%u", &port);
            if (std::fgetc(out_) != '\n') return 0;
            port_ = static_cast<std::uint16_t>(got == 1 ? port : 0);
        }
        return port_;
    }
    // Returns the port of the line about TLS, which follows, or 0 if there is none.
    std::uint16_t secure_port() {
        unsigned port = 0;
        const int got = std::fscanf(out_, "listening on https://127.0.0.1:%u", &port);
        if (std::fgetc(out_) != '\n') return 0;
        return static_cast<std::uint16_t>(got == 1 ? port : 0);
    }
    // Returns the next line of stdout, without its end.
    std::string line() { return line_of(out_); }
    pid_t pid() const { return pid_; }
    void signal(int number) const { ::kill(pid_, number); }
    int exit_status() {
        int status = 0;
        ::waitpid(pid_, &status, 0);
        ended_ = true;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    std::string out() { return rest(out_); }
    std::string err() { return rest(err_); }
    // Returns the next line of stderr, without its end. Blocks until there is one, or stderr is
    // closed.
    std::string err_line() { return line_of(err_); }

    std::string ask(const std::string& method, const std::string& target,
                    const std::string& body = "") {
        client c(port());
        c.send(method + " " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" +
               (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") +
               "\r\n" + body);
        return c.receive();
    }
    std::string get(const std::string& target, const std::string& method = "GET") {
        return ask(method, target);
    }

private:
    static std::string line_of(std::FILE* file) {
        std::string text;
        for (int c; (c = std::fgetc(file)) != EOF && c != '\n';) {
            text.push_back(static_cast<char>(c));
        }
        return text;
    }
    static std::string rest(std::FILE* file) {
        std::string text;
        for (int c; (c = std::fgetc(file)) != EOF;) text.push_back(static_cast<char>(c));
        return text;
    }
    pid_t pid_ = -1;
    std::FILE* out_ = nullptr;
    std::FILE* err_ = nullptr;
    std::uint16_t port_ = 0;
    bool ended_ = false;
};

}  // namespace coppice::test
