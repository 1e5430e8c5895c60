// A server behind nginx, which keeps connections to it and shares them among its clients. One
// request in ten is answered early, and every answer must belong to its request.
#include <coppice/http/body.hpp>
#include <coppice/http/server.hpp>

#include "../http/client.hpp"
#include "../http/running_server.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;
using namespace coppice;
using namespace coppice::internal;
using coppice::test::client;
using coppice::test::has_status;
using http::request;
using http::response;

// Returns the program, or "" if there is none.
std::string find_nginx() {
    std::FILE* const pipe = ::popen(COPPICE_FIND_NGINX " 2>/dev/null", "r");
    std::string path;
    for (int c; (c = std::fgetc(pipe)) != EOF && c != '\n';) path.push_back(static_cast<char>(c));
    ::pclose(pipe);
    return path;
}

// An nginx in its own process, with its own configuration and directory. It forwards requests to a
// server over kept connections. At one of its two ports it reads a whole request before it forwards
// it; at the other it forwards what has arrived.
class nginx {
public:
    nginx(const std::string& program, std::uint16_t server)
        : directory_(fs::temp_directory_path() / ("coppice-nginx-" + std::to_string(::getpid()))) {
        fs::create_directory(directory_);
        for (std::size_t i = 0; i != 2; ++i) ports_[i] = reserve(reserved_[i]);
        std::ofstream(directory_ / "conf") << configuration(server);
        process_ = ::fork();
        if (process_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            const std::string prefix = directory_.string() + "/";
            const std::string log = prefix + "log";
            ::execl(program.c_str(), "nginx", "-p", prefix.c_str(), "-c", "conf", "-e", log.c_str(),
                    nullptr);
            std::_Exit(127);
        }
        for (const std::uint16_t port : ports_) {
            while (!client(port).connected() && ::waitpid(process_, nullptr, WNOHANG) == 0) {
                std::this_thread::yield();
            }
        }
    }
    nginx(const nginx&) = delete;
    ~nginx() {
        ::kill(process_, SIGTERM);
        ::waitpid(process_, nullptr, 0);
        for (const int s : reserved_) ::close(s);
        fs::remove_all(directory_);
    }
    std::uint16_t port(bool reads_whole_requests) const { return ports_[!reads_whole_requests]; }
    // Returns what it has reported about errors.
    std::string log() const {
        std::ifstream in(directory_ / "log");
        return std::string(std::istreambuf_iterator<char>(in), {});
    }

private:
    // A port that a socket of the test reserves for nginx, which shares it (SO_REUSEPORT). The
    // socket does not listen, so it gets no connection.
    static std::uint16_t reserve(int& socket) {
        socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int on = 1;
        ::setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        const io::endpoint any = io::loopback(0);
        EXPECT_EQ(::bind(socket, any.data(), any.size()), 0);
        sockaddr_in at{};
        socklen_t size = sizeof at;
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size);
        return ntohs(at.sin_port);
    }
    std::string configuration(std::uint16_t server) const {
        std::string text =
            "daemon off; master_process off; pid pid;\n"
            "events { worker_connections 512; }\n"
            "http {\n    access_log off; client_max_body_size 0;\n";
        for (const char* const kind :
             {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {  // else in /var/lib
            text += std::string("    ") + kind + "_temp_path " + kind + ";\n";
        }
        text +=
            "    keepalive_requests 1000000; proxy_http_version 1.1;\n"
            "    proxy_set_header Connection \"\"; proxy_next_upstream off;\n"
            "    upstream coppice { server 127.0.0.1:" +
            std::to_string(server) + "; keepalive 4; keepalive_requests 1000000; }\n";
        for (const std::size_t i : {0u, 1u}) {
            text += "    server {\n        listen 127.0.0.1:" + std::to_string(ports_[i]) +
                    " reuseport;\n        proxy_request_buffering " + (i == 0 ? "on" : "off") +
                    ";\n        location / { proxy_pass http://coppice; }\n    }\n";
        }
        return text + "}\n";
    }

    const fs::path directory_;
    std::array<int, 2> reserved_{};
    std::array<std::uint16_t, 2> ports_{};
    pid_t process_ = -1;
};

// Refuses requests that ask for it, and marks every answer with its request's token.
class gate final : public http::filter {
public:
    std::optional<response> before(const request& r) const override {
        if (r.find("Refuse")) return response::status(401);
        return std::nullopt;
    }
    void after(const request& r, response& answer) const override {
        if (const auto token = r.find("Token")) answer.add("Token", std::string(*token));
    }
};

constexpr std::size_t body_bytes_max = 16 * 1024;

task<response> read_all(request& r) {
    std::size_t size = 0;
    for (;;) {
        const std::string_view piece = co_await r.incoming().read();
        if (piece.empty()) break;
        size += piece.size();
    }
    co_return response::text(std::to_string(size));
}
task<response> read_nothing(request&) {
    co_return response::text("unread");
}

http::router make_routes() {
    http::router routes;
    routes.use(std::make_shared<gate>());
    routes.get("/plain", [](request&) { return response::text("plain"); })
        .post("/whole", [](request& r) { return response::text(std::to_string(r.body().size())); })
        .post("/read", http::read_body(read_all))
        .post("/unread", http::read_body(read_nothing));
    return routes;
}

// A request, and what its answer must be.
struct exchange {
    std::string sent;
    int status;
    std::string body;  // "": any
};

// A body of 0 bytes, or of 60 or more, that looks like the beginning of a request. If the server
// took it for the next request, the request after it would complete it, and get an answer with the
// wrong token.
std::string hostile_body(std::size_t size) {
    if (size == 0) return "";
    const std::string begin = "GET /plain HTTP/1.1\r\nToken: smuggled\r\nPad: ";
    const std::string end = "\r\nSwallowed: ";
    return begin + std::string(size - begin.size() - end.size(), 'x') + end;
}
std::string with_body(const std::string& target, const std::string& fields, bool chunked,
                      const std::string& body) {
    std::string all = "POST " + target + " HTTP/1.1\r\nHost: a\r\n" + fields;
    if (!chunked) {
        return all + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    }
    all += "Transfer-Encoding: chunked\r\n\r\n";
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", body.size());
    if (!body.empty()) all += size + body + "\r\n";
    return all + "0\r\n\r\n";
}
// Returns the n-th request. One in ten is answered before its body has been read, in each way in
// turn.
exchange make_exchange(int n, const std::string& token) {
    const std::string fields = "Token: " + token + "\r\n";
    if (n % 10 != 0) {
        const std::string body = hostile_body(static_cast<std::size_t>(n % 7) * 300);
        switch (n % 3) {
            case 0:
                return {with_body("/whole", fields, n % 2 == 0, body), 200,
                        std::to_string(body.size())};
            case 1:
                return {with_body("/read", fields, n % 2 == 0, body), 200,
                        std::to_string(body.size())};
            default:
                return {"GET /plain HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n", 200, "plain"};
        }
    }
    const int way = n / 10;
    const bool chunked = way % 2 == 0;
    const std::string body = hostile_body(static_cast<std::size_t>(way % 5) * 2000 + 60);
    switch (way / 2 % 6) {
        case 0:
            return {with_body("/read", fields + "Refuse: 1\r\n", chunked, body), 401, ""};
        case 1:
            return {with_body("/whole", fields + "Refuse: 1\r\n", chunked, body), 401, ""};
        case 2:
            return {with_body("/nowhere", fields, chunked, body), 404, ""};
        case 3:
            return {with_body("/plain", fields, chunked, body), 405, ""};
        case 4:
            return {with_body("/unread", fields, chunked, body), 200, "unread"};
        default:
            return {with_body("/whole", fields, false, hostile_body(2 * body_bytes_max)), 413, ""};
    }
}

class proxied : public testing::TestWithParam<coppice::test::way> {
protected:
    static int requests_of_each_client() {
        const char* const asked = std::getenv("COPPICE_PROXIED_REQUESTS");  // in all
        const int all = asked != nullptr ? std::atoi(asked) : test::sanitized ? 1000 : 20'000;
        return all / (clients * ways);
    }
    static constexpr int clients = 6;
    static constexpr int ways = 4;
};
INSTANTIATE_TEST_SUITE_P(
    ways, proxied,
    testing::Values(coppice::test::way{io::backend::epoll, http::model::multi, 2},
                    coppice::test::way{io::backend::uring, http::model::multi, 2},
                    coppice::test::way{io::backend::epoll, http::model::worker, 2},
                    coppice::test::way{io::backend::uring, http::model::worker, 2}),
    coppice::test::name_of_way);

// Returns what was wrong with an answer; "" if nothing was.
std::string fault_of(const std::string& answer, const exchange& e, const std::string& token) {
    const bool right = has_status(answer, e.status) &&
                       (e.body.empty() || coppice::test::body_of(answer) == e.body);
    // The 413 of the server itself may come before any filter.
    const bool marked = answer.find("\r\nToken: " + token + "\r\n") != answer.npos;
    const bool unmarked = e.status == 413 && answer.find("\r\nToken: ") == answer.npos;
    if (right && (marked || unmarked)) return "";
    return "request:\n" + e.sent.substr(0, 200) + "\nanswer:\n" + answer.substr(0, 300);
}

TEST_P(proxied, every_answer_belongs_to_its_request_when_one_in_ten_is_answered_early) {
    const std::string program = find_nginx();
    if (program.empty()) GTEST_SKIP() << "no nginx is there (scripts/nginx.sh --fetch)";
    http::server_options o = coppice::test::options_of(GetParam());
    o.limits.body_bytes_max = o.streamed_body_bytes_max = body_bytes_max;
    coppice::test::running_server server(std::move(o), make_routes());
    const nginx proxy(program, server.port());
    const int requests = requests_of_each_client();
    std::array<std::string, clients> faults;
    std::vector<std::thread> threads;
    for (int t = 0; t != clients; ++t) {
        threads.emplace_back([&, t] {
            const std::uint16_t port = proxy.port(t % 2 == 0);
            auto connection = std::make_unique<client>(port);
            std::string& fault = faults[static_cast<std::size_t>(t)];
            for (int n = 0; n != requests && fault.empty(); ++n) {
                const std::string token = std::to_string(t) + "-" + std::to_string(n);
                const exchange e = make_exchange(n, token);
                connection->send(e.sent);  // may fail if it was answered before its end
                const std::string answer = connection->receive();
                fault = fault_of(answer, e, token);
                if (answer.find("\r\nConnection: close\r\n") != answer.npos) {
                    connection = std::make_unique<client>(port);
                }
            }
        });
    }
    for (std::thread& t : threads) t.join();
    for (const std::string& fault : faults) {
        EXPECT_EQ(fault, "") << "nginx says: " << proxy.log().substr(0, 2000);
    }
    // nginx did keep connections: there were far fewer than requests.
    EXPECT_LT(server->statistics().accepted, server->statistics().requests / 2);
}

}  // namespace
