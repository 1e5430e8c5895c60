// expect: an object type without const or volatile
// errors: 1
#include <coppice/task/task.hpp>

constexpr auto wrong = sizeof(coppice::task<const int>);
