// expect: the signature of an operation is void.std::error_code, Results....
// errors: 1
#include <coppice/token.hpp>

void wrong() {
    coppice::completion_token_transform<void(int)>(
        coppice::use_future,
        [](coppice::completion<int> done) noexcept { std::move(done)(coppice::no_error, 1); });
}
