// The whole of room stop: sources, tokens and callbacks of every family.
#pragma once

#include <coppice/stop/concepts.hpp>
#include <coppice/stop/finite.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/stop/never.hpp>
#include <coppice/stop/single.hpp>
