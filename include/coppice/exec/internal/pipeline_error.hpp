// pipeline_error: stands for the signatures of a pipeline that does not type-check.
#pragma once
// An algorithm that cannot compute its signatures returns one. It passes up the pipeline as if it
// were a set of signatures. The first user that needs a real set reports it, by one static_assert.
// The names of this file are the words of the compiler's message. Source: ours; C++20 cannot throw
// at compile time.

#include <coppice/exec/internal/meta.hpp>

namespace coppice::execution::internal {

template <class Algorithm, class Got, class Wanted>
struct pipeline_error {};
// The words of pipeline errors. Each appears in a compiler's message.
template <class Algorithm>
struct in_algorithm {};
template <class... Ts>
struct got {};
template <class... Ts>
struct wanted {};
template <class... Args>
struct callable_with_arguments {};
template <class... Args>
struct callable_returning_a_sender_with_arguments {};
struct one_value_completion {};
struct at_most_one_value_completion {};
struct decay_copyable_results {};
struct completion_signatures_in_this_environment {};
struct value_of_this_query_in_the_environment {};
struct start_scheduler_in_the_environment {};
struct infallible_start_scheduler {};
struct known_completion_scheduler {};
struct only_value_and_stopped_completions {};

template <class T>
inline constexpr bool is_pipeline_error = false;
template <class Algorithm, class Got, class Wanted>
inline constexpr bool is_pipeline_error<pipeline_error<Algorithm, Got, Wanted>> = true;

// Reports an error. Each error is reported once per translation unit.
template <class Error>
struct diagnosis {
    static_assert(always_false<Error>,
                  "coppice: this pipeline does not type-check; the pipeline_error in this message "
                  "names the algorithm, what it got and what it wanted");
    static constexpr bool reported = true;
};

}  // namespace coppice::execution::internal
