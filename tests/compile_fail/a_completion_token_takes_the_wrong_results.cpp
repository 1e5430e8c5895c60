// expect: a completion token is use_await, use_future, block, a callable void
// errors: 1
#include <coppice/token.hpp>

// The operation completes with an int, but the callable takes a pointer.
void wrong() {
    coppice::completion_token_transform<void(std::error_code, int)>(
        [](std::error_code, int*) {},
        [](coppice::completion<int> done) noexcept { std::move(done)(coppice::no_error, 1); });
}
