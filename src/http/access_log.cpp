// The thread of http/access_log.hpp.
#include <coppice/http/access_log.hpp>

#include <coppice/base/internal/file_name.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace coppice::http {

namespace {

std::uint64_t lines_of(std::string_view text) noexcept {
    return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

// Returns the file, or -1 with errno.
int open_log(const char* path) noexcept {
    return ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

// Returns false, and changes nothing, if there is no room for the lines.
bool append(std::string& waiting, std::string& lines) noexcept {
    if (waiting.size() + lines.size() > access_log::waiting_bytes_max) return false;
    if (waiting.empty()) {
        waiting.swap(lines);
        return true;
    }
    try {
        waiting += lines;
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

}  // namespace

access_log::access_log(const std::string& path)
    : path_(path), file_(open_log(internal::whole_name(path_))) {
    if (file_ < 0) throw std::system_error(errno, std::system_category(), path);
    scope_exit undo([this]() noexcept { ::close(file_); });
    thread_ = std::thread([this] { run(); });
    undo.dismiss();
}

access_log::access_log(int file) : file_(file) {
    thread_ = std::thread([this] { run(); });
}

access_log::~access_log() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    thread_.join();
    if (reopened_ >= 0) ::close(reopened_);
    if (!path_.empty()) ::close(file_);
}

void access_log::write(std::string& lines) noexcept {
    if (lines.empty()) return;
    {
        const std::lock_guard lock(mutex_);
        if (!append(waiting_, lines)) dropped_ += lines_of(lines);
    }
    changed_.notify_one();
    lines.clear();
}

std::error_code access_log::reopen() noexcept {
    if (path_.empty()) return std::make_error_code(std::errc::operation_not_supported);
    int opened = open_log(path_.c_str());
    if (opened < 0) return {errno, std::system_category()};
    {
        const std::lock_guard lock(mutex_);
        std::swap(opened, reopened_);
    }
    if (opened >= 0) ::close(opened);  // reopened earlier, and never written to
    changed_.notify_one();
    return {};
}

std::uint64_t access_log::dropped() const noexcept {
    const std::lock_guard lock(mutex_);
    return dropped_;
}

void access_log::run() noexcept {
    ::pthread_setname_np(::pthread_self(), "coppice-log");
    sigset_t all;  // handlers run on the program's threads; a broken pipe must not end the process
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::string batch;
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return ending_ || reopened_ >= 0 || !waiting_.empty(); });
            if (reopened_ >= 0) {
                ::close(file_);
                file_ = std::exchange(reopened_, -1);
            }
            if (waiting_.empty()) {
                if (ending_) return;
                continue;
            }
            batch.swap(waiting_);
        }
        std::string_view left = batch;
        while (!left.empty()) {
            const ssize_t n = ::write(file_, left.data(), left.size());
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) break;
            left.remove_prefix(static_cast<std::size_t>(n));
        }
        if (!left.empty()) {
            const std::lock_guard lock(mutex_);
            dropped_ += lines_of(left);
        }
        batch.clear();
    }
}

}  // namespace coppice::http
