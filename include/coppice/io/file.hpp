// file: reads and writes a regular file at offsets without blocking the loop.
#pragma once
// On io_uring, the kernel's own threads perform what cannot be done at once. On epoll, a pool of
// eight worker threads that the whole process shares performs the calls (internal/workers.hpp). Any
// number of operations may be pending on one file. A stop ends an operation that has not begun.
// Once the kernel reads or writes the memory, a stop has no effect: the loop waits for the
// operation, which ends with its result.

#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/file_requests.hpp>
#include <coppice/io/open_file.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>

namespace coppice::io {

// How to open the file, and what to do if it exists or does not.
enum class open_mode {
    read_only,    // an existing file
    read_write,   // an existing file
    create,       // for reading and writing; made if it does not exist
    truncate,     // as create; existing contents are discarded
    create_only,  // for reading and writing; fails with file_exists if it exists
};

// Which part of a file to read.
struct read_options {
    std::uint64_t offset = 0;  // where to begin; beyond the end, the result is empty
    // In bytes. If the file has more from `offset` on, the error is file_too_large.
    std::size_t size_max = std::size_t{1} << 30;
};

// A regular file. Opening, size(), and resize() are done at once and may wait for the disk.
// Errors of the constructor: std::system_error, which names the path; also for a path that contains
// a NUL, and invalid_seek for a file without offsets (a pipe, a terminal). What operations throw
// names the path as it was given: "read_at /data/x: Input/output error".
class file : public open_file {
public:
    file(context& owner, const std::string& path, open_mode mode, unsigned permissions = 0644);

    // Reads from `offset`. The value is the number of bytes, 0 at the end of the file. Errors, also
    // of write_at(): the system's; invalid_argument if the offset is more than an int64_t holds.
    template <class Token = use_await_t>
    auto read_at(std::uint64_t offset, std::span<std::byte> bytes,
                 Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::file_transfer_request<opcode::read_at>>(
            {reference(), offset, bytes}, static_cast<Token&&>(token));
    }
    // Writes at `offset`. The value is the number of bytes.
    template <class Token = use_await_t>
    auto write_at(std::uint64_t offset, std::span<const std::byte> bytes,
                  Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::file_transfer_request<opcode::write_at>>(
            {reference(), offset, bytes}, static_cast<Token&&>(token));
    }
    // Reads until `bytes` is full. The value is the number of bytes, fewer only at the end of the
    // file. After a stop, part of the memory may be filled.
    // Errors: as read_at(). A callback also gets the number of bytes read before the error.
    template <class Token = use_await_t>
    auto read_all(std::uint64_t offset, std::span<std::byte> bytes,
                  Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::fill_request>({reference(), offset, bytes},
                                                static_cast<Token&&>(token));
    }
    // Reads to the end of the file, wherever the end is when the read gets there. This covers files
    // that grow or shrink meanwhile, and files in /proc, which report no size. The value is the
    // bytes, as a std::string or as the container named: file.read_all<std::vector<std::byte>>().
    // Errors: as read_at(); file_too_large for more than options.size_max; not_enough_memory. Cost:
    // allocates.
    template <class Bytes = std::string, class Token = use_await_t>
    auto read_all(const read_options& options, Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::read_all_request<Bytes>>(
            {reference(), options.offset, options.size_max}, static_cast<Token&&>(token));
    }
    template <class Bytes = std::string, class Token = use_await_t>
        requires(!std::convertible_to<Token, const read_options&>)
    auto read_all(Token&& token = {}) noexcept(nothrow_token<Token>) {
        return read_all<Bytes>(read_options(), static_cast<Token&&>(token));
    }
    // Writes all of `bytes`. After an error or a stop, some of them may be written.
    template <class Token = use_await_t>
    auto write_all(std::uint64_t offset, std::span<const std::byte> bytes,
                   Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::write_all_request>({reference(), offset, bytes},
                                                     static_cast<Token&&>(token));
    }
    // Waits until data and size are on the disk (fsync).
    template <class Token = use_await_t>
    auto sync(Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::file_sync_request>(
            internal::file_sync_request::arguments(reference()), static_cast<Token&&>(token));
    }
    // Returns the size in bytes. Blocks: perhaps for the disk. Errors: the system's.
    internal::result<std::uint64_t> size() const noexcept {
        return owner().system().file_size(native());
    }
    // Truncates the file, or extends it with zeros. Blocks, errors: as size().
    std::error_code resize(std::uint64_t size) noexcept {
        return owner().system().resize(native(), size);
    }
};

}  // namespace coppice::io
