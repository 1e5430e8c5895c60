// COPPICE_COLD_CALL: for functions off the fast path, whose callers save no registers for them.
#pragma once
// Where the compiler can: the function itself saves what it uses. It must be noexcept: an exception
// that passes it brings back the registers that every function saves, but no others, and its caller
// goes on with lost values. Source: ours.
//
// clang and g++ may both define one inline function, and the linker keeps one definition for the
// callers of both. clang's has another name (abi_tag), so a caller reaches a callee that saves what
// the caller expects. For the same reason no cold call is defined in the library, and each program
// or shared library calls its own: the dynamic linker, which looks a function up at its first call,
// does not save r10. clang 16 goes without: there such a function saves the register of its own
// result, and loses the result.

#include <coppice/base/version.hpp>

#if defined(__clang__) && __clang_major__ >= 17
#define COPPICE_COLD_CALL \
    [[gnu::noinline, clang::preserve_most, gnu::abi_tag("cold"), gnu::visibility("hidden")]]
#else
#define COPPICE_COLD_CALL [[gnu::noinline]]
#endif
