// What the client's tests share: requests, their errors, and the rings they run on.
#pragma once

#include <coppice/http/client.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/task/task.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace coppice::test {

inline std::string name_of_ring(const testing::TestParamInfo<io::backend>& instance) {
    return instance.param == io::backend::epoll ? "epoll" : "uring";
}

inline http::client_request asks(const io::endpoint& to, std::string_view target = "/",
                                 std::string_view method = "GET") {
    http::client_request r;
    r.to = to;
    r.target = target;
    r.method = method;
    return r;
}
inline http::client_request asks(std::string url, std::string_view method = "GET") {
    http::client_request r;
    r.url = std::move(url);
    r.method = method;
    return r;
}

// Returns the error that a request ends with, or none if it has an answer.
inline task<std::error_code> error_of(http::client& client, http::client_request r) {
    std::error_code error;
    try {
        (void)co_await client.send(std::move(r));
    } catch (const std::system_error& e) {
        error = e.code();
    }
    co_return error;
}

}  // namespace coppice::test
