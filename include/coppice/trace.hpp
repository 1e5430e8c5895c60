// Umbrella of room trace/: counters, histograms and traces of a run.
#pragma once

#include <coppice/trace/chrome.hpp>
#include <coppice/trace/counter.hpp>
#include <coppice/trace/event_log.hpp>
#include <coppice/trace/histogram.hpp>
