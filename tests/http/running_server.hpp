// A server that serves during a test, in every model and on every ring.
#pragma once

#include <coppice/http/server.hpp>

#include <gtest/gtest.h>

#include <thread>

#include "client.hpp"

namespace coppice::test {

// A server that runs on its own thread until the test ends.
class running_server {
public:
    running_server(http::server_options options, http::router routes)
        : server_(std::move(options), std::move(routes)), thread_([this] { server_.run(); }) {}
    ~running_server() {
        server_.drain(std::chrono::seconds(1));
        thread_.join();
    }
    http::server& operator*() { return server_; }
    http::server* operator->() { return &server_; }
    std::uint16_t port() const { return server_.port(); }

private:
    http::server server_;
    std::thread thread_;
};

struct way {
    io::backend backend;
    http::model model;
    std::size_t threads;
};
inline constexpr way every_way[] = {
    {io::backend::epoll, http::model::single, 1}, {io::backend::uring, http::model::single, 1},
    {io::backend::epoll, http::model::multi, 2},  {io::backend::uring, http::model::multi, 2},
    {io::backend::epoll, http::model::worker, 2}, {io::backend::uring, http::model::worker, 2},
    {io::backend::epoll, http::model::async, 2},  {io::backend::uring, http::model::async, 2},
};
inline std::size_t loops_of(const way& w) {
    return w.model == http::model::worker ? 1 : w.threads;
}

inline std::string name_of_way(const testing::TestParamInfo<way>& instance) {
    static constexpr const char* models[] = {"single", "multi", "worker", "async"};
    return std::string(instance.param.backend == io::backend::epoll ? "epoll_" : "uring_") +
           models[static_cast<int>(instance.param.model)];
}

inline http::server_options options_of(const way& w) {
    http::server_options o;
    o.endpoint = io::loopback(0);
    o.backend = w.backend;
    o.model = w.model;
    o.threads = w.threads;
    return o;
}

inline bool has_status(std::string_view answer, int status) {
    return answer.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
}
inline std::string_view body_of(std::string_view answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == answer.npos ? "" : answer.substr(end + 4);
}

}  // namespace coppice::test
