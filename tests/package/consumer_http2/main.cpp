// Shows that the component is found and linked.
#include <coppice/coppice.hpp>

#include <cstdio>
#include <string>

int main() {
    std::puts(std::string(coppice::http2::for_server()->protocol()).c_str());
}
