// expect: a filter takes its next_handler by value
#include <coppice/http/router.hpp>

namespace http = coppice::http;

void wrong(http::router& routes) {
    routes.use([](http::request&, const http::next_handler& next) -> coppice::task<http::response> {
        co_return co_await next();
    });
}
