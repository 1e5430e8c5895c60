// A request head parsed in every way, as the tests of http/parse.hpp write it.
#pragma once

#include <coppice/http/parse.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "delivery.hpp"

namespace coppice::test::heads {

inline guarded_bytes& memory() {
    static guarded_bytes bytes(1 << 17);
    return bytes;
}

inline std::string every_way(std::string_view bytes, const http::limits& limit = {},
                             std::size_t step = 1) {
    return parse_every_way(bytes, limit, memory(), step, [&](const std::string& complaint) {
        ADD_FAILURE() << complaint << "\nfor: " << testing::PrintToString(std::string(bytes));
    });
}

// The error code of a refusal, 0 for complete, -1 for partial.
inline int code(std::string_view bytes, const http::limits& limit = {}, std::size_t step = 1) {
    const std::string answer = every_way(bytes, limit, step);
    if (answer.starts_with("complete")) return 0;
    return answer == "partial" ? -1 : std::stoi(answer);
}

// A head that must be complete; the bytes stay in the object.
struct parsed {
    explicit parsed(std::string text) : bytes(std::move(text)) {
        EXPECT_EQ(code(bytes), 0) << bytes;
        result = http::parse_head(bytes, head, {});
    }
    std::string bytes;
    http::request_head head;
    http::parse_result result;
};

inline std::string request(std::string_view fields) {
    return "GET / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}
inline std::string line(std::string_view request_line) {
    return std::string(request_line) + "\r\nHost: a\r\n\r\n";
}

}  // namespace coppice::test::heads
