// static_files: answers /static/ with the files of one directory; whole files, not streamed.
#pragma once

#include <coppice/http/message.hpp>

#include <string>

namespace serve {

// Serves regular files beneath one directory. Links and dots that lead out of it, and anything that
// is not a regular file, do not exist for it: the kernel resolves every path beneath the directory.
// Threads: any.
class static_files {
public:
    static constexpr std::size_t file_bytes_max = 16u << 20;  // larger: 503

    // Errors: std::system_error if the directory cannot be opened.
    explicit static_files(const std::string& root);
    static_files(static_files&& other) noexcept;
    ~static_files();

    // `path` is relative and decoded.
    coppice::http::response answer(const std::string& path) const;

private:
    int root_;
};

}  // namespace serve
