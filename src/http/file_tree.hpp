// file_tree: opens the files beneath one directory, and nothing else; behind http/files.hpp.
#pragma once
// The kernel resolves a path beneath the directory (openat2 with RESOLVE_BENEATH), so that no
// spelling and no link leads out of it, also while links change. Kernels before 5.6 do not have
// that call, and sandboxes forbid it. There the tree walks: it opens one directory after the other,
// each in the one before, and follows no link. Since it never goes up, it cannot get out either.

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
    // Errors: std::system_error if the directory cannot be opened or searched.
    explicit file_tree(const std::string& root);

    // Opens for reading; -1 with errno. What is opened may be no regular file. A path that starts
    // with '/', or has ".." or NUL in it, is refused (EXDEV), also where it stays beneath the root.
    int open(const std::string& path) const noexcept;
    // Whether links that stay beneath the root are followed; else each of them is an error (ELOOP).
    bool follows_links() const noexcept { return asks_kernel_; }

private:
    int ask_kernel(const char* path, std::uint64_t flags) const noexcept;
    int walk(std::string_view path) const noexcept;
    bool probe() const;

    const owned_file root_;
    const bool asks_kernel_;
};

// Whether a path has a component that starts with '.', other than ".well-known" (RFC 8615).
bool names_hidden_file(std::string_view path) noexcept;

}  // namespace coppice::http
