// Umbrella of generators and shared tasks: coroutines of many elements, or of many waiters.
#pragma once

#include <coppice/task/generator.hpp>
#include <coppice/task/shared_task.hpp>
#include <coppice/token/async_generator.hpp>
