# Builds the checkout that this port stands in:
#   vcpkg install coppice --overlay-ports=packaging/vcpkg --editable
# vcpkg knows a build by its port's files, and the library's are not among them: without --editable
# it brings back from its binary cache what it built from an older state of the checkout.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)
if(NOT EXISTS "${SOURCE_PATH}/include/coppice/version.hpp")
    message(FATAL_ERROR "This port builds the checkout of coppice that it stands in, and "
        "${SOURCE_PATH} is none: name its place in one with --overlay-ports")
endif()
vcpkg_check_linkage(ONLY_STATIC_LIBRARY)
vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -DCOPPICE_APPS=OFF
        -DCOPPICE_TESTS=OFF
        -DCOPPICE_EXAMPLES=OFF
        -DCOPPICE_HTTP=ON
        -DCOPPICE_TLS=OFF
        -DCOPPICE_WARNINGS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/coppice)
vcpkg_fixup_pkgconfig()
# The license goes where vcpkg wants it, and only there.
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
    "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
