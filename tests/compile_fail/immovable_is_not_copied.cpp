// expect: deleted
#include <coppice/base/lifetime.hpp>

struct operation : coppice::immovable {};
operation original;
operation copy = original;
