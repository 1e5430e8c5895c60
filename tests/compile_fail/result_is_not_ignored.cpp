// expect: nodiscard
#include <coppice/base/result.hpp>

coppice::internal::result<int> attempt();
void careless() { attempt(); }
