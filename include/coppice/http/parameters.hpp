// Parameters of routes, and status_error, which refuses malformed ones; used by requests.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace coppice::http {

// Thrown by a handler or a filter: the server answers the request with this status and text, as
// text/plain. It is an answer and not a fault, so on_exception is not called for it.
class status_error : public std::runtime_error {
public:
    // `text` is sent to the client. Errors: a status outside 200 to 599 stops the process.
    status_error(int status, const std::string& text);
    // Returns the status of the answer.
    int status() const noexcept { return status_; }

private:
    int status_;
};

// Makes a status_error with 400: `throw http::bad_request("the range is empty");`
status_error bad_request(const std::string& text);

// One `{name}` of a route, and the part of the path that it matched, not decoded.
struct path_parameter {
    std::string_view name;
    std::string_view raw;
};

// The parameters of a matched route: views into the route table and the path, in a fixed array.
// Cost: a copy copies only the parameters that are set, usually none.
class path_parameters {
public:
    static constexpr std::size_t capacity = 8;

    path_parameters() noexcept {}
    path_parameters(const path_parameters& other) noexcept { *this = other; }
    path_parameters& operator=(const path_parameters& other) noexcept {
        count_ = other.count_;
        if (count_ != 0) [[unlikely]]
            std::memcpy(items_, other.items_, count_ * sizeof items_[0]);
        return *this;
    }

    // Return the number of parameters that are set, and the range of them.
    std::size_t size() const noexcept { return count_; }
    const path_parameter* begin() const noexcept { return items_; }
    const path_parameter* end() const noexcept { return items_ + count_; }
    // Returns the part of the path that `name` matched, as sent.
    std::optional<std::string_view> find(std::string_view name) const noexcept;

    // Change the parameters; used by routers. push_back() stops the process if the array is full;
    // no route has more parameters (see router.hpp). pop_back() needs a parameter, and the index
    // must be less than size().
    void clear() noexcept { count_ = 0; }
    void push_back(path_parameter) noexcept;
    void pop_back() noexcept { --count_; }
    path_parameter& operator[](std::size_t index) noexcept { return items_[index]; }

private:
    std::size_t count_ = 0;
    union {
        path_parameter
            items_[capacity];  // only the first count_ are initialized; the type is trivial
    };
};

}  // namespace coppice::http
