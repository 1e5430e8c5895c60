// The version of coppice, for programs that support more than one; the build reads it here.
#pragma once
// Versions are semantic (docs/packaging.md). They are macros, because the preprocessor must compare
// them: COPPICE_VERSION is major * 10,000 + minor * 100 + patch.
//
// Every header of the library includes this one before it needs the language. A compiler that
// cannot compile it is rejected with one sentence.

#if __cplusplus < 202002L
#error "coppice needs C++20: compile with -std=c++20 or newer"
#elif defined(__clang__) && __clang_major__ < 16
#error "coppice needs clang 16 or newer"
#elif !defined(__clang__) && defined(__GNUC__) && __GNUC__ < 12
#error "coppice needs g++ 12 or newer"
#elif !defined(__cpp_exceptions)
#error "coppice needs exceptions: compile without -fno-exceptions"
#endif

#define COPPICE_VERSION_MAJOR 0
#define COPPICE_VERSION_MINOR 1
#define COPPICE_VERSION_PATCH 0
#define COPPICE_VERSION \
    (COPPICE_VERSION_MAJOR * 10'000 + COPPICE_VERSION_MINOR * 100 + COPPICE_VERSION_PATCH)

namespace coppice {

struct version {
    // The fields of a semantic version.
    int major_number;
    int minor_number;
    int patch_number;
};

// The version of the headers that a program is compiled with.
inline constexpr version header_version{COPPICE_VERSION_MAJOR, COPPICE_VERSION_MINOR,
                                        COPPICE_VERSION_PATCH};

// Returns the version of the library that a program is linked with. If it differs from that of the
// headers, the build is wrong. Threads: any. Blocks: never.
version library_version() noexcept;

}  // namespace coppice
