// whole_file: read_file and write_file read or write a whole file by its name in one operation.
#pragma once
// Writing replaces the file as a whole. The bytes go into a new file in the same folder, named
// ".coppice-" and sixteen digits, which is then renamed over the old one. A program that opens the
// name therefore finds the old bytes or the new ones, and never a mixture, even after an error, a
// stop, or a crash of the process. A crash may leave the new file behind. The new file replaces a
// symbolic link itself, not its target, and has the owner and permissions of a new file. Opening,
// renaming, and removing happen at once, on the loop, and may wait for the disk.

#include <coppice/io/event_loop.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/file_transfer.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace coppice::io {

namespace internal {

// Opens a file and hands it to the loop; `flags` are those of open(2). Errors: invalid_argument for
// a NUL in the name; invalid_seek for a file without offsets (a pipe, a terminal).
result<descriptor*> open_by_name(context& owner, std::string_view path, int flags,
                                 unsigned permissions) noexcept;
result<descriptor*> open_to_read(context& owner, std::string_view path) noexcept;

}  // namespace internal

// Opens a file, reads to its end, and closes it.
template <class Bytes>
class read_file_request : public read_all_request<Bytes> {
    using base = read_all_request<Bytes>;

public:
    static constexpr const char* name = "read_file";
    struct arguments {
        arguments(context& c, std::string_view p, const read_options& o) noexcept
            : owner(&c), path(p), options(o) {}
        context* owner;
        std::string_view path;
        read_options options;
    };
    explicit read_file_request(const arguments& a) noexcept
        : base(typename base::arguments(descriptor_reference(*a.owner), a.options)),
          path_(a.path) {}
    std::string subject() const { return std::string(path_); }

protected:
    ~read_file_request() {
        if (opened_ != nullptr) this->owner().close(*opened_);
    }

private:
    bool submit() noexcept final {
        const coppice::internal::result<internal::descriptor*> opened =
            internal::open_to_read(this->owner(), path_);
        if (!opened) {
            this->set_outcome(-opened.error().value());
            return true;
        }
        opened_ = opened.value();
        this->refer_to(*opened_);
        return base::submit();
    }

    const std::string_view path_;
    internal::descriptor* opened_ = nullptr;
};

// How a file is written.
struct write_options {
    // Completes only when the bytes and the name are on the disk and survive a power failure.
    bool sync = false;
    // The permissions of the new file, less those that the process's umask removes.
    unsigned permissions = 0644;
};

// Writes a new file, then renames it.
class write_file_request : public write_all_request {
public:
    static constexpr const char* name = "write_file";
    struct arguments {
        arguments(context& c, std::string_view p, std::span<const std::byte> b,
                  const write_options& o) noexcept
            : owner(&c), path(p), bytes(b), options(o) {}
        context* owner;
        std::string_view path;
        std::span<const std::byte> bytes;
        write_options options;
    };
    explicit write_file_request(const arguments& a) noexcept
        : write_all_request({descriptor_reference(*a.owner), 0, a.bytes}),
          path_(a.path),
          options_(a.options) {}
    std::string subject() const { return std::string(path_); }

protected:
    // Removes the new file, unless it has been renamed.
    ~write_file_request();

private:
    enum class stage { writing, syncing, renamed };
    bool submit() noexcept final;
    void interrupt() noexcept final;
    int judge(int returned) noexcept final;
    int written() noexcept final;
    int rename() noexcept;
    int sync_folder() noexcept;
    std::string_view folder() const noexcept;
    void name_new_file(unsigned attempt);
    void use(internal::descriptor& d) noexcept;

    const std::string_view path_;
    const write_options options_;
    internal::descriptor* opened_ = nullptr;  // the new file; at the end, its folder
    std::string new_file_;                    // its name, while it exists
    stage stage_ = stage::writing;
};

// Reads a file. The value is its contents, as a std::string or as the container of bytes named:
// io::read_file<std::vector<std::byte>>(loop, path).
// Threads: any. Errors: those of opening and reading; invalid_seek for a pipe; file_too_large
// beyond options.size_max; not_enough_memory. Cost: allocates. Lifetime: the path must outlive the
// operation.
template <class Bytes = std::string, class Token = use_await_t>
auto read_file(context& loop, std::string_view path, const read_options& options,
               Token&& token = {}) noexcept(nothrow_token<Token>) {
    return initiate<read_file_request<Bytes>>({loop, path, options}, static_cast<Token&&>(token));
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
    return initiate<write_file_request>({loop, path, bytes, options}, static_cast<Token&&>(token));
}
template <class Token = use_await_t>
    requires(!std::convertible_to<Token, const write_options&>)
auto write_file(context& loop, std::string_view path, std::span<const std::byte> bytes,
                Token&& token = {}) noexcept(nothrow_token<Token>) {
    return write_file(loop, path, bytes, write_options(), static_cast<Token&&>(token));
}

}  // namespace coppice::io
