// expect: await it or connect it: it has not begun
#include <coppice/token.hpp>

void wrong() {
    coppice::completion_token_transform<void(std::error_code)>(
        coppice::use_await,
        [](coppice::completion<> done) noexcept { std::move(done)(coppice::no_error); });
}
