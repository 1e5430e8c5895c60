// work_contract_token: what a running contract is given to schedule or release itself.
#pragma once

#include <coppice/base/lifetime.hpp>

namespace coppice {

namespace internal {

class contract_core;

}  // namespace internal

// Lets a running contract schedule or release itself. Takes effect when the run ends. Threads: the
// thread that runs the contract, during that run.
class work_contract_token : immovable {
public:
    // Makes the contract run once more.
    void schedule() noexcept { again_ = true; }
    // Ends the contract: its release callable runs next, and nothing else of it runs after that.
    void release() noexcept { released_ = true; }

private:
    friend class internal::contract_core;
    bool again_ = false;
    bool released_ = false;
};

}  // namespace coppice
