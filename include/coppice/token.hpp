// Umbrella of room token/: ways to receive the outcome of an asynchronous operation.
#pragma once

#include <coppice/token/transform.hpp>
