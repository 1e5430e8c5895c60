// The whole of room stop: sources, tokens and callbacks of every family.
#pragma once

#include <coppice/stop/asymmetric.hpp>
#include <coppice/stop/cause.hpp>
#include <coppice/stop/concepts.hpp>
#include <coppice/stop/finite.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/stop/never.hpp>
#include <coppice/stop/shared.hpp>
#include <coppice/stop/single.hpp>
#include <coppice/stop/subscription.hpp>
