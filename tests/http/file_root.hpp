// A directory to serve, with a secret next to it; and requests for its files without a server.
#pragma once

#include <coppice/http/files.hpp>
#include <coppice/http/parse.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace coppice::test {

// A directory that is removed at the end. Its name is unique, so that processes do not collide.
class file_root {
public:
    file_root() {
        std::string name =
            (std::filesystem::temp_directory_path() / "coppice-root-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        base = name;
        path = base / "public";
        std::filesystem::create_directories(path);
        write("../secret", "secret");
    }
    file_root(const file_root&) = delete;
    ~file_root() {
        std::error_code ignored;
        std::filesystem::remove_all(base, ignored);
    }

    void write(const std::string& name, std::string_view content) const {
        std::filesystem::create_directories((path / name).parent_path());
        std::ofstream(path / name) << content;
    }
    void set_modified(const std::string& name, std::int64_t seconds, long nanoseconds = 0) const {
        const timespec time{static_cast<time_t>(seconds), nanoseconds};
        const timespec times[2] = {time, time};
        ASSERT_EQ(::utimensat(AT_FDCWD, (path / name).c_str(), times, 0), 0) << name;
    }
    struct stat status(const std::string& name) const {
        struct stat s{};
        EXPECT_EQ(::stat((path / name).c_str(), &s), 0) << name;
        return s;
    }

    std::filesystem::path base;
    std::filesystem::path path;
};

// Returns what the files answer to "GET /static/" + `path` + `query`; 400 if that is not a request.
inline http::response ask(const http::files& files, std::string_view path,
                          std::string_view fields = "", std::string_view method = "GET") {
    constexpr std::string_view front = "/static/";
    const std::string text = std::string(method) + " " + std::string(front) + std::string(path) +
                             " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
    http::request_head head;
    http::limits wide;
    wide.header_bytes_max = wide.target_bytes_max = std::size_t{1} << 20;
    if (http::parse_head(text, head, wide).status != http::parse_status::complete) {
        return http::response(400);
    }
    http::path_parameters parameters;
    parameters.push_back({"path", head.path().substr(front.size())});
    return files(http::request(head, "", parameters));
}

inline std::string field_of(const http::response& answer, std::string_view name) {
    return std::string(answer.find(name).value_or(""));
}

}  // namespace coppice::test
