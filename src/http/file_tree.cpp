// The two ways to resolve a path of file_tree.hpp.
#include "file_tree.hpp"

#include <coppice/base/internal/file_name.hpp>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

namespace coppice::http {

namespace {

// Nonblocking: a FIFO must not block the loop. No controlling terminal: opening a terminal must not
// make it the process's.
constexpr int file_flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr int directory_flags = O_PATH | O_DIRECTORY | O_CLOEXEC;

// Removes and returns the first component of a path, without the slashes around it.
std::string_view take_component(std::string_view& path) noexcept {
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    const std::string_view component = path.substr(0, path.find('/'));
    path.remove_prefix(component.size());
    return component;
}

bool may_lead_out(std::string_view path) noexcept {
    if (path.starts_with('/') || path.find('\0') != path.npos) return true;
    while (!path.empty()) {
        if (take_component(path) == "..") return true;
    }
    return false;
}

bool is_missing(int error) noexcept {
    return error == ENOSYS || error == EPERM;
}

}  // namespace

file_tree::file_tree(const std::string& root)
    : root_(::open(internal::whole_name(root), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      asks_kernel_([&] {
          if (root_.get() < 0 || ::faccessat(root_.get(), ".", R_OK | X_OK, AT_EACCESS) != 0) {
              throw std::system_error(errno, std::system_category(), root);
          }
          return probe();
      }()) {}

// Returns true if the kernel has the call and permits this process to make it.
bool file_tree::probe() const {
    const owned_file probe(ask_kernel(".", directory_flags));
    if (probe.get() >= 0) return true;
    const int error = errno;
    if (error == EMFILE || error == ENFILE || error == ENOMEM) {
        throw std::system_error(error, std::system_category(), "openat2");
    }
    return false;
}

int file_tree::open(const std::string& path) const noexcept {
    if (may_lead_out(path)) {
        errno = EXDEV;
        return -1;
    }
    if (!asks_kernel_) return walk(path);
    const int fd = ask_kernel(path.c_str(), file_flags);
    // A sandbox may have been entered since the construction.
    return fd < 0 && is_missing(errno) ? walk(path) : fd;
}

int file_tree::ask_kernel(const char* path, std::uint64_t flags) const noexcept {
    open_how how{};
    how.flags = flags;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    int fd = -1;
    // EAGAIN: a rename happened while the kernel resolved the path.
    for (int tries = 0; tries != 16; ++tries) {
        fd = static_cast<int>(::syscall(SYS_openat2, root_.get(), path, &how, sizeof how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) break;
    }
    return fd;
}

// Walks downward only: a component must not be a link or "..", and is looked up in the directory
// that the previous component has opened.
int file_tree::walk(std::string_view path) const noexcept {
    if (path.empty() || path.size() >= PATH_MAX) {
        errno = path.empty() ? ENOENT : ENAMETOOLONG;
        return -1;
    }
    int directory = root_.get();
    int opened = -1;
    char name[NAME_MAX + 1];
    do {
        std::string_view component = take_component(path);
        if (component.empty()) component = ".";  // after the last slash
        if (component.size() > NAME_MAX) {
            errno = ENAMETOOLONG;
            opened = -1;
        } else {
            name[component.copy(name, NAME_MAX)] = '\0';
            const int flags = path.empty() ? file_flags : directory_flags;
            do {
                opened = ::openat(directory, name, flags | O_NOFOLLOW);
            } while (opened < 0 && errno == EINTR);
        }
        const int error = errno;
        if (directory != root_.get()) ::close(directory);
        errno = error;
        directory = opened;
    } while (opened >= 0 && !path.empty());
    return opened;
}

bool names_hidden_file(std::string_view path) noexcept {
    while (!path.empty()) {
        const std::string_view component = take_component(path);
        if (component.starts_with('.') && component != ".well-known") return true;
    }
    return false;
}

}  // namespace coppice::http
