// expect: non-const lvalue reference (to|of) type
#include <coppice/http/router.hpp>

namespace http = coppice::http;

void wrong(http::router& routes) {
    auto& api = routes.group("/api").get("/a", [](http::request&) { return http::response(); });
    api.get("/b", [](http::request&) { return http::response(); });
}
