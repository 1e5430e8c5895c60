// The rings that the tests of io run on, and what these tests share.
#pragma once

#include <coppice/io/context.hpp>

#include <gtest/gtest.h>

#include <dirent.h>
#include <span>
#include <string>
#include <string_view>

namespace coppice::test {

inline const auto all_rings =
    testing::Values(io::backend::epoll, io::backend::uring, io::backend::sim);
// The rings of the system, for what a simulation does not have.
inline const auto real_rings = testing::Values(io::backend::epoll, io::backend::uring);

inline std::string ring_name(const testing::TestParamInfo<io::backend>& instance) {
    switch (instance.param) {
        case io::backend::epoll:
            return "epoll";
        case io::backend::uring:
            return "uring";
        case io::backend::sim:
            return "sim";
        case io::backend::automatic:
            break;
    }
    return "automatic";
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline int open_files() {
    int count = 0;
    DIR* const directory = ::opendir("/proc/self/fd");
    while (::readdir(directory) != nullptr) ++count;
    ::closedir(directory);
    return count;
}

}  // namespace coppice::test
