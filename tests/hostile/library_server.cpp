// A program that uses only the library: signals as the system sets them, and no limits of its own.
// The tests in this folder attack it.
//
//   hostile_server RING MODEL ROOT [BYTES]     BYTES: the address space that it may use
#include <coppice/http/files.hpp>
#include <coppice/http/server.hpp>

#include <sys/resource.h>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

int main(int argc, char** argv) {
    using namespace coppice;
    if (argc < 4) return 2;
    if (argc == 5) {
        const rlim_t most = std::strtoull(argv[4], nullptr, 10);
        const rlimit limit{most, most};
        ::setrlimit(RLIMIT_AS, &limit);
    }
    try {
        http::server_options o;
        o.endpoint = io::loopback(0);
        o.backend = argv[1] == std::string_view("uring") ? io::backend::uring : io::backend::epoll;
        o.model = argv[2] == std::string_view("worker") ? http::model::worker : http::model::multi;
        o.threads = 2;
        http::router routes;
        routes.get("/files/{path...}", http::files(argv[3]))
            .get("/plain", [](http::request&) { return http::response::text("plain"); })
            .post("/size", [](http::request& r) {
                return http::response::text(std::to_string(r.body().size()));
            });
        http::server server(std::move(o), std::move(routes));
        std::printf("listening on http://%s\n", server.local().to_string().c_str());
        std::fflush(stdout);
        server.run();
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
