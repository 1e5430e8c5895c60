// file_tree: opens only files beneath one directory; for http/files.hpp.
#pragma once
// The kernel resolves a path beneath the directory (openat2 with RESOLVE_BENEATH), so no spelling
// and no link leads out of it, even while links change. Kernels before 5.6 lack that call, and
// sandboxes forbid it. In that case the tree walks: it opens one directory after the other, each in
// the one before, and follows no link. Since it never goes up, it cannot leave the directory
// either.

#include <coppice/base/lifetime.hpp>

#include <unistd.h>
#include <string>
#include <string_view>

namespace coppice::http {

// An open file, closed with the object; -1: none.
class owned_file : immovable {
public:
    explicit owned_file(int fd) noexcept : fd_(fd) {}
    ~owned_file() {
        if (fd_ >= 0) ::close(fd_);
    }
    int get() const noexcept { return fd_; }

private:
    const int fd_;
};

// Threads: any. Blocks: for the disk.
class file_tree : immovable {
public:
    // Opens the directory. Errors: std::system_error if it cannot be opened or searched.
    explicit file_tree(const std::string& root);

    // Opens a file for reading. Returns -1 with errno on failure. The result may be something other
    // than a regular file. Refuses a path that starts with '/', or has ".." or NUL in it (EXDEV),
    // also if it stays beneath the root.
    int open(const std::string& path) const noexcept;
    // Returns true if links that stay beneath the root are followed; otherwise each link is an
    // error (ELOOP).
    bool follows_links() const noexcept { return asks_kernel_; }

private:
    int ask_kernel(const char* path, std::uint64_t flags) const noexcept;
    int walk(std::string_view path) const noexcept;
    bool probe() const;

    const owned_file root_;
    const bool asks_kernel_;
};

// Returns true if a path has a component that starts with '.', other than ".well-known" (RFC 8615).
bool names_hidden_file(std::string_view path) noexcept;

}  // namespace coppice::http
