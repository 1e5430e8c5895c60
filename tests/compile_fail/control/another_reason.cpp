// expect: a message that no compiler writes
#include <coppice/base/lifetime.hpp>

coppice::immovable original;
coppice::immovable copy = original;  // a message that no compiler writes
