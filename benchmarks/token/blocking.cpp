// Waiting on one thread for operations that another thread completes.
#include "rivals.hpp"
#include "system.hpp"

#include "../harness.hpp"

#include <coppice/token.hpp>

namespace bench_token {

namespace {

class initiation : os_context {
public:
    initiation(os_thread& system, int p) noexcept : system_(&system) { parameter = p; }
    void operator()(coppice::completion<int> done) noexcept {
        done_ = done;
        callback = [](int result, os_context* context) {
            std::move(static_cast<initiation*>(context)->done_)(std::error_code(), result);
        };
        system_->start(parameter, this);
    }

private:
    os_thread* system_;
    coppice::completion<int> done_;
};

template <class Token>
auto start(os_thread& system, std::size_t left, Token token) {
    return coppice::completion_token_transform<void(std::error_code, int)>(
        token, initiation(system, static_cast<int>(left & 7)));
}

}  // namespace

std::uint64_t other_thread_block(std::size_t size) {
    os_thread system;
    std::uint64_t sum = 0;
    for (std::size_t left = size; left != 0; --left) {
        sum += static_cast<std::uint64_t>(start(system, left, coppice::block));
    }
    return bench::hash().add(sum).value();
}
std::uint64_t other_thread_future(std::size_t size) {
    os_thread system;
    std::uint64_t sum = 0;
    for (std::size_t left = size; left != 0; --left) {
        sum += static_cast<std::uint64_t>(start(system, left, coppice::use_future).get());
    }
    return bench::hash().add(sum).value();
}

}  // namespace bench_token
