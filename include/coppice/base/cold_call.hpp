// COPPICE_COLD_CALL: for functions off the fast path, whose callers save no registers for them.
#pragma once
// Where the compiler can: the function itself saves what it uses. Source: ours.

#if defined(__clang__)
#define COPPICE_COLD_CALL [[gnu::noinline, clang::preserve_most]]
#else
#define COPPICE_COLD_CALL [[gnu::noinline]]
#endif
