// expect: static assertion failed
#include <coppice/stop_token.hpp>

void f(coppice::inplace_stop_token token) {
    coppice::inplace_stop_callback callback(token, [](int) {});
}
