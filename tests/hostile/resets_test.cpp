// Clients that reset their connections, against a program that links only the library.
#include "sanitizers.hpp"
#include "served.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

namespace fs = std::filesystem;
using coppice::test::client;
using coppice::test::served;

struct way {
    const char* ring;
    const char* model;
};
class resets : public testing::TestWithParam<way> {
protected:
    resets() {
        fs::create_directory(root);
        std::ofstream(root / "large") << "x";
        fs::resize_file(root / "large", 4u << 20);  // more than the sockets' buffers hold
    }
    ~resets() override { fs::remove_all(root); }
    const fs::path root =
        fs::temp_directory_path() / ("coppice-resets-" + std::to_string(::getpid()));
};
INSTANTIATE_TEST_SUITE_P(ways, resets,
                         testing::Values(way{"epoll", "multi"}, way{"uring", "multi"},
                                         way{"epoll", "worker"}, way{"uring", "worker"}),
                         [](const auto& instance) {
                             return std::string(instance.param.ring) + "_" + instance.param.model;
                         });

TEST_P(resets, of_ten_thousand_clients_do_not_end_a_program_that_serves_files) {
    constexpr int clients = coppice::test::sanitized ? 500 : 5000;  // twice: for each model
    served s(COPPICE_HOSTILE_SERVER, {GetParam().ring, GetParam().model, root.string()});
    ASSERT_NE(s.port(), 0);
    const std::string file = "GET /files/large HTTP/1.1\r\nHost: a\r\n\r\n";
    const std::string plain = "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n";
    std::array<char, 65536> bytes;
    for (int i = 0; i != clients; ++i) {
        client c(s.port());
        ASSERT_TRUE(c.connected()) << "after " << i << " clients";
        c.send(i % 3 == 0 ? file : i % 3 == 1 ? file + file + plain : plain + file);
        if (i % 4 != 0) {
            // The answer is in flight; the rest of the file waits for the socket.
            ASSERT_GT(::recv(c.fd(), bytes.data(), i % 4 == 1 ? 1 : bytes.size(), 0), 0)
                << "after " << i << " clients";
        }
        c.reset();
    }
    EXPECT_NE(s.get("/plain").find("\r\n\r\nplain"), std::string::npos);
}

}  // namespace
