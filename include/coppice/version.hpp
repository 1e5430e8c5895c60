// The version, as macros and as values.
#pragma once

#include <coppice/base/version.hpp>
