// Shows that the component is found and linked: a server without a certificate is refused.
#include <coppice/coppice.hpp>

#include <cstdio>
#include <stdexcept>

int main() {
    try {
        const coppice::tls::server_context context{coppice::tls::server_options()};
    } catch (const std::invalid_argument&) {
        std::puts("refused");
    }
}
