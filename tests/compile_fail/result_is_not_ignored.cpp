// expect: nodiscard
#include <coppice/base/result.hpp>

coppice::result<int> attempt();
void careless() { attempt(); }
