// Umbrella of room base/: lifetimes, intrusive lists, clocks, and saturating arithmetic.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/base/saturating_cast.hpp>
#include <coppice/base/version.hpp>
