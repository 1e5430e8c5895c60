#include <coppice/base/version.hpp>

namespace coppice {

version library_version() noexcept {
    return header_version;
}

}  // namespace coppice
