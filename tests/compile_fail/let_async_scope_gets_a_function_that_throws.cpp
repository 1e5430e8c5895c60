// expect: does not type-check
// errors: 1
// says: in_algorithm<.*let_async_scope_with_error_t<int>.*wanted<.*noexcept_function>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

void wrong() {
    coppice::this_thread::sync_wait(ex::just() | ex::let_async_scope_with_error<int>([](auto) {}));
}
