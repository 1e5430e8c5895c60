// File names with a NUL in them, wherever a program gives one.
#include <coppice/http/access_log.hpp>
#include <coppice/http/files.hpp>
#include <coppice/io/file.hpp>
#include <coppice/trace/chrome.hpp>

#include <gtest/gtest.h>

#include <unistd.h>
#include <string>
#include <system_error>

namespace {

using namespace coppice;

TEST(file_names, with_a_nul_are_errors_wherever_files_are_opened) {
    const std::string shown = testing::TempDir() + "coppice_nul_" + std::to_string(::getpid());
    io::context loop;
    const auto refuses = [&](auto open) {
        for (const std::string& name :
             {shown + '\0', shown + '\0' + ".txt", std::string(1, '\0') + shown}) {
            try {
                open(name);
                ADD_FAILURE() << "opened";
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::invalid_argument);
                EXPECT_NE(std::string(e.what()).find("NUL"), std::string::npos) << e.what();
            }
        }
        EXPECT_NE(::access(shown.c_str(), F_OK), 0);
    };
    for (const auto mode :
         {io::open_mode::read_only, io::open_mode::read_write, io::open_mode::create,
          io::open_mode::truncate, io::open_mode::create_only}) {
        refuses([&](const std::string& name) { io::file(loop, name, mode); });
    }
    refuses([](const std::string& name) { http::access_log l(name); });
    refuses([](const std::string& name) { trace::write_file(name, "x"); });
    refuses([](const std::string& name) { http::files f("/tmp" + std::string(1, '\0') + name); });
}

}  // namespace
