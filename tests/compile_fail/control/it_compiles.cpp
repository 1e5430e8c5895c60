// expect: error
#include <coppice/base/lifetime.hpp>

coppice::immovable lawful;
