// The version of coppice, for programs that serve more than one of them; the build reads it here.
#pragma once
// Versions are semantic (docs/packaging.md). Macros, because a preprocessor must compare them:
// COPPICE_VERSION is major * 10,000 + minor * 100 + patch.

#define COPPICE_VERSION_MAJOR 0
#define COPPICE_VERSION_MINOR 1
#define COPPICE_VERSION_PATCH 0
#define COPPICE_VERSION \
    (COPPICE_VERSION_MAJOR * 10'000 + COPPICE_VERSION_MINOR * 100 + COPPICE_VERSION_PATCH)

namespace coppice {

struct version {
    // As in semantic versioning.
    int major_number;
    int minor_number;
    int patch_number;
};

// Of the headers a program is compiled with.
inline constexpr version header_version{COPPICE_VERSION_MAJOR, COPPICE_VERSION_MINOR,
                                        COPPICE_VERSION_PATCH};

// Of the library a program is linked with; another one than the headers' is a mistake of the build.
// Threads: any. Blocks: never.
version library_version() noexcept;

}  // namespace coppice
