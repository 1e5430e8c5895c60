// COPPICE_COLD_CALL: for functions off the fast path, whose callers save no registers for them.
#pragma once
// Where the compiler can: the function itself saves what it uses. It must be noexcept: an exception
// that passes it brings back the registers that every function saves, but no others, and its caller
// goes on with lost values. Source: ours.

#if defined(__clang__)
#define COPPICE_COLD_CALL [[gnu::noinline, clang::preserve_most]]
#else
#define COPPICE_COLD_CALL [[gnu::noinline]]
#endif
