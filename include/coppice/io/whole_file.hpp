// whole_file: read_file and write_file read or write a whole file by its name in one operation.
#pragma once
// Writing replaces the file as a whole. The bytes go into a new file in the same folder, named
// ".coppice-" and sixteen digits, which is then renamed over the old one. A program that opens the
// name therefore finds the old bytes or the new ones, and never a mixture, even after an error, a
// stop, or a crash of the process. A crash may leave the new file behind. The new file replaces a
// symbolic link itself, not its target, and has the owner and permissions of a new file. Opening,
// renaming, and removing happen at once, on the loop, and may wait for the disk.

#include <coppice/io/context.hpp>
#include <coppice/io/file.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/whole_file_requests.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace coppice::io {

// How a file is written.
struct write_options {
    // Completes only when the bytes and the name are on the disk and survive a power failure.
    bool sync = false;
    // The permissions of the new file, without those that the process's umask removes.
    unsigned permissions = 0644;
};

// Reads a file. The value is its contents, as a std::string or as the container of bytes named:
// io::read_file<std::vector<std::byte>>(loop, path).
// Threads: any. Errors: those of opening and reading; invalid_seek for a pipe; file_too_large
// beyond options.size_max; not_enough_memory. Cost: allocates. Lifetime: the path must outlive the
// operation.
template <class Bytes = std::string, class Token = use_await_t>
auto read_file(context& loop, std::string_view path, const read_options& options,
               Token&& token = {}) noexcept(nothrow_token<Token>) {
    return initiate<internal::read_file_request<Bytes>>(
        {loop, path, options.offset, options.size_max}, static_cast<Token&&>(token));
}
template <class Bytes = std::string, class Token = use_await_t>
    requires(!std::convertible_to<Token, const read_options&>)
auto read_file(context& loop, std::string_view path,
               Token&& token = {}) noexcept(nothrow_token<Token>) {
    return read_file<Bytes>(loop, path, read_options(), static_cast<Token&&>(token));
}

// Replaces the contents of a file with `bytes`. After an error or a stop, the file is as it was.
// Once the file has been replaced, a stop comes too late. The one error that leaves the new
// contents in place is a failure of options.sync at the folder.
// Threads: any. Errors: the system's; invalid_argument if the path leads to something other than a
// file; not_enough_memory. Cost: allocates. Lifetime: path and bytes must outlive the operation.
template <class Token = use_await_t>
auto write_file(context& loop, std::string_view path, std::span<const std::byte> bytes,
                const write_options& options, Token&& token = {}) noexcept(nothrow_token<Token>) {
    return initiate<internal::write_file_request>(
        {loop, path, bytes, options.sync, options.permissions}, static_cast<Token&&>(token));
}
template <class Token = use_await_t>
    requires(!std::convertible_to<Token, const write_options&>)
auto write_file(context& loop, std::string_view path, std::span<const std::byte> bytes,
                Token&& token = {}) noexcept(nothrow_token<Token>) {
    return write_file(loop, path, bytes, write_options(), static_cast<Token&&>(token));
}

}  // namespace coppice::io
