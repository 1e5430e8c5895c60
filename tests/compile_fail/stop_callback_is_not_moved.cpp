// expect: deleted
#include <coppice/stop_token.hpp>

#include <utility>

using callback = coppice::single_inplace_stop_callback<void (*)()>;
callback moved(callback& from) {
    return callback(std::move(from));
}
