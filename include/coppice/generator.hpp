// Umbrella of generators: coroutines that give a sequence of values.
#pragma once

#include <coppice/task/generator.hpp>
#include <coppice/token/async_generator.hpp>
