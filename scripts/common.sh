# Shared by ./run, ./test and ./bench; sourced, never run. Sets `root`, the checkout, and `jobs`.
# shellcheck shell=bash disable=SC2034
root=$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")
jobs=$(nproc)

# Messages go to stderr: only a command's result goes to stdout.
say() { printf 'coppice: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}

# need_packages SET...: installs the missing packages of these sets.
need_packages() {
    "$root/scripts/packages.sh" "$@" || die "packages are missing, see above"
}

# Creates the build folder. If this user cannot write to it, says what to do and ends the script.
need_build_folder() {
    if ! mkdir -p "$root/build" 2>/dev/null || [ ! -w "$root/build" ]; then
        say "cannot write $root/build as user $(id -un)."
        die "Make the checkout yours (sudo chown -R $(id -un) '$root') or use a copy of it."
    fi
}

# configure PRESET [CMAKE ARGUMENTS]: configures build/PRESET. Starts from scratch if the folder is
# left over from a failed attempt, or from a checkout that has since been moved.
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
