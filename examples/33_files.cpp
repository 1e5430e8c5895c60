// Files at offsets, several operations at once, without blocking the loop.
#include <coppice/coppice.hpp>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

using namespace coppice;

namespace {

// [files]
task<> write_and_read(io::context& loop, const std::string& path) {
    io::file file(loop, path, io::open_mode::truncate);
    constexpr std::string_view first = "hello ", second = "world";
    co_await execution::when_all(  // both at once
        file.write_at(0, std::as_bytes(std::span(first))),
        file.write_at(first.size(), std::as_bytes(std::span(second))));
    co_await file.sync();  // on the disk now

    std::string text(64, ' ');
    const std::size_t n = co_await file.read_at(0, std::as_writable_bytes(std::span(text)));
    text.resize(n);
    std::printf("%s, %zu bytes\n", text.c_str(), n);
}
// [/files]

// [whole]
task<> keep_settings(io::context& loop, const std::string& path) {
    constexpr std::string_view settings = "color = green\n";
    co_await io::write_file(loop, path, std::as_bytes(std::span(settings)), {.sync = true});
    std::printf("%s", (co_await io::read_file(loop, path)).c_str());
    try {
        co_await io::read_file(loop, "/nowhere/settings");
    } catch (const std::system_error& error) {
        std::printf("%s\n", error.what());
    }
}
// [/whole]

}  // namespace

int main() {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / "coppice_example_33_files";
    io::context loop;
    std::optional<io::context::work_guard> guard(loop);
    std::thread runner([&loop] { loop.run(); });
    this_thread::sync_wait(
        execution::starts_on(loop.get_scheduler(), write_and_read(loop, path.string())));
    this_thread::sync_wait(
        execution::starts_on(loop.get_scheduler(), keep_settings(loop, path.string())));
    guard.reset();
    runner.join();
    std::filesystem::remove(path);
}
