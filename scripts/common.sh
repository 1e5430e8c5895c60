# Shared by ./run, ./test and ./bench; sourced, never run. Sets `root`, the checkout, and `jobs`.
# shellcheck shell=bash disable=SC2034
root=$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")
jobs=$(nproc)

# Everything but a command's own result goes to stderr.
say() { printf 'coppice: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}

# Installs the package sets named that are not complete.
need_packages() {
    "$root/scripts/packages.sh" "$@" || die "packages are missing, see above"
}

# The build folder must be ours to write; says what to do if it is not.
need_build_folder() {
    if ! mkdir -p "$root/build" 2>/dev/null || [ ! -w "$root/build" ]; then
        say "cannot write $root/build as user $(id -un)."
        die "Make the checkout yours (sudo chown -R $(id -un) '$root') or use a copy of it."
    fi
}

# configure PRESET [CMAKE ARGUMENTS]: into build/PRESET, from the start if that folder is left over
# from an attempt that failed or from another place of the checkout.
configure() {
    local preset=$1
    shift
    local folder=$root/build/$preset fresh=()
    if [ -e "$folder/CMakeCache.txt" ]; then
        if [ ! -e "$folder/build.ninja" ] ||
            ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
            fresh=(--fresh)
        fi
    fi
    (cd -- "$root" && cmake --preset "$preset" "${fresh[@]}" "$@") </dev/null
}
