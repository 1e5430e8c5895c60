// expect: nodiscard
#include <coppice/base/internal/result.hpp>

coppice::internal::result<int> attempt();
void careless() {
    attempt();
}
