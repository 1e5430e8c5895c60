// COPPICE_COLD_CALL: for functions off the fast path; their callers need not save registers.
#pragma once
// Where the compiler supports it, the function saves every register that it uses. It must be
// noexcept: an exception that passes through it restores only the registers that every function
// saves, and its caller would continue with lost values. Source: ours.
//
// clang and g++ may both define the same inline function, and the linker keeps one definition for
// the callers of both. clang's definition has another name (abi_tag), so a caller always reaches a
// callee that saves what the caller expects. For the same reason the library itself defines no cold
// call, and each program or shared library calls its own, hidden one: the dynamic linker, which
// resolves a function at its first call, does not save r10. clang 16 is excluded: its functions
// would also restore the register of their own result, and lose the result.

#include <coppice/base/version.hpp>

#if defined(__clang__) && __clang_major__ >= 17
#define COPPICE_COLD_CALL \
    [[gnu::noinline, clang::preserve_most, gnu::abi_tag("cold"), gnu::visibility("hidden")]]
#else
#define COPPICE_COLD_CALL [[gnu::noinline]]
#endif
