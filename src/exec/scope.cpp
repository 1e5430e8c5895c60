// The cold part of exec/scope.hpp: lists what a scope waits for.
#include <coppice/exec/scope.hpp>

#include <cstdio>

namespace coppice::execution {

void scope_base::print_outstanding() noexcept {
    std::fprintf(stderr, "coppice: a scope has %zu outstanding operations%s\n", outstanding(),
                 records() ? "" : "; make it with record_outstanding to see which");
    for_each_outstanding([](const std::source_location& where) {
        std::fprintf(stderr, "coppice:   spawned at %s:%u in %s\n", where.file_name(),
                     static_cast<unsigned>(where.line()), where.function_name());
    });
    std::fflush(stderr);
}

}  // namespace coppice::execution
