#!/usr/bin/env bash
# Makes .venv: Lapwing from this tree, MPI, and the tools that test it; installs the system packages these need.
#
#   scripts/setup.sh [EXTRA]     EXTRA: one more extra of pyproject.toml, such as bench
#   scripts/setup.sh --tests     also, as root on Debian, the packages that only tests need
#   scripts/setup.sh --remove    removes .venv
#
# Runs again only after pyproject.toml or this file changed. PYTHON=... names the Python to use.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
root=$PWD
extra=${1:-}
for_tests=no
[ "$extra" != --tests ] || { for_tests=yes && extra=; }
extras=mpich,examples,dev${extra:+,$extra}
stamp=.venv/.ready-${extras//,/-}

say() { printf 'set-up: %s\n' "$*"; }

# die WHAT [WHAT TO DO]...: one line each
die() {
    printf 'set-up: %s\n' "$@" >&2
    exit 1
}

# quietly COMMAND...: shows the output only if the command fails
quietly() {
    "$@" >"$work/log" 2>&1 && return
    local status=$?
    cat "$work/log" >&2
    printf 'set-up: failed (exit status %s): %s\n' "$status" "$*" >&2
    return "$status"
}

# Settings that say where packages come from are kept; those that say where they go, or how, would misplace them.
forget_other_environments() {
    unset PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV CONDA_PREFIX
    local name
    for name in ${!PIP_@}; do
        case ${name#PIP_} in
        INDEX_URL | EXTRA_INDEX_URL | NO_INDEX | FIND_LINKS | TRUSTED_HOST | CERT | CLIENT_CERT | PROXY) ;;
        KEYRING_PROVIDER | CONFIG_FILE | CONSTRAINT | TIMEOUT | DEFAULT_TIMEOUT | RETRIES | CACHE_DIR | NO_CACHE_DIR) ;;
        *) unset "$name" ;;
        esac
    done
    export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
}

fingerprint() {
    printf '%s\n' "$root"
    cat pyproject.toml scripts/setup.sh | cksum
}

is_ready() {
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint)" ] && [ -x .venv/bin/python ] &&
        { [ -z "${PYTHON:-}" ] || [ "$(base_python "$PYTHON")" = "$(base_python .venv/bin/python)" ]; }
}

# The interpreter behind a python on PATH, which may belong to an active virtual environment or be a version
# manager's shim; fails if it is older than 3.11.
base_python() {
    local ask='import os, sys; sys.version_info >= (3, 11) or sys.exit(1); print(os.path.realpath(sys._base_executable))'
    "$1" -c "$ask" 2>/dev/null
}

find_python() {
    local names=(python3 python3.14 python3.13 python3.12 python3.11) name
    [ -z "${PYTHON:-}" ] || names=("$PYTHON")
    for name in "${names[@]}"; do
        python=$(base_python "$name") && return
    done
    local found=none
    ! command -v "${names[0]}" >/dev/null || found=$("${names[0]}" --version 2>&1)
    die "no Python 3.11 or later: looked for ${names[*]}; found: $found" \
        "install one (Debian, Ubuntu: apt-get install python3.11 python3.11-venv), or name it: make setup PYTHON=/path/to/python"
}

# compiles LANGUAGE COMPILER STANDARD HEADER: includes the header and links a shared library, as Lapwing will
compiles() {
    printf '#include <%s>\nint one(void) { return 1; }\n' "$4" >"$work/probe.$1"
    "$2" "-std=$3" -shared -fPIC "$work/probe.$1" -o "$work/probe.so" >"$work/log" 2>&1
}

has_compilers() { compiles cpp c++ c++20 span && compiles c cc c17 math.h; }

can_make_venv() {
    "$python" -c 'import venv, ensurepip' || "$python" -m virtualenv --version || "$python" -m pip --version
} &>/dev/null

# apt_install PACKAGE...: as root, by $as_root where this user is not; quiet unless it fails
apt_install() {
    say "installing system packages with apt-get: $*"
    local bundle=/etc/ssl/certs/ca-certificates.crt status=0
    cp "$bundle" "$work/bundle" 2>/dev/null || true
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300)
    # A source that cannot be reached need not be the one that has these packages.
    "${apt[@]}" update &>"$work/update" || true
    "${apt[@]}" install --no-install-recommends "$@" &>"$work/log" || status=$?
    # The package ca-certificates, if it came along, has rewritten the bundle without what was added to it by hand.
    if [ -s "$work/bundle" ] && ! cmp -s "$bundle" "$work/bundle" && [ "${PIP_CERT:-$bundle}" = "$bundle" ]; then
        export PIP_CERT=$work/bundle
    fi
    return "$status"
}

install_system_packages() {
    local packages=() as_root=()
    has_compilers || packages+=(g++)
    can_make_venv || packages+=("$("$python" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')")
    [ ${#packages[@]} -gt 0 ] || return 0

    if [ "$(id -u)" != 0 ]; then
        as_root=(sudo)
        [ -t 0 ] || as_root+=(-n)
    fi
    if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true 2>/dev/null; then
        die "missing, and this user cannot install: ${packages[*]}" \
            "Debian, Ubuntu: as root, apt-get install ${packages[*]}" \
            "elsewhere: a C++20 compiler found as c++ (gcc 11, clang 14 or later) with cc beside it, and Python's venv module"
    fi
    apt_install "${packages[@]}" ||
        die "apt-get could not install ${packages[*]}:" "$(cat "$work/log")" "apt-get update said:" "$(cat "$work/update")"
    has_compilers || die "c++ or cc is installed but cannot build a C++20 or C17 library:" "$(cat "$work/log")"
}

# What is missing for want of rights, or cannot be had, some tests are skipped for: each says so. Tried once for what is
# missing, since apt-get takes its time to find that something cannot be had.
install_test_packages() {
    local packages as_root=() tried=$root/.venv/.tried-for-tests
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
    read -ra packages <<<"$(.venv/bin/python tests/needs.py)"
    [ ${#packages[@]} -gt 0 ] && [ "$(cat "$tried" 2>/dev/null)" != "${packages[*]}" ] || return 0
    say "tests need more than Lapwing does: ${packages[*]}"
    if ! apt_install "${packages[@]}"; then
        local package
        for package in "${packages[@]}"; do
            apt_install "$package" || say "apt-get could not install $package: $(grep -m 1 '^E:' "$work/log" || tail -n 1 "$work/log")"
        done
    fi
    .venv/bin/python tests/needs.py >"$tried"
}

# MPICH's compiler wrappers cannot live under a path with a space: there .venv is a link to a directory elsewhere.
venv_directory() {
    case $root in
    *[[:space:]]*) ;;
    *) printf '%s/.venv\n' "$root" && return ;;
    esac
    local name parent
    name=lapwing-venv-$(id -u)-$(printf '%s' "$root" | cksum | cut -d ' ' -f 1)
    for parent in "${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}" /var/tmp "${TMPDIR:-/tmp}"; do
        case $parent in *[[:space:]]*) continue ;; esac
        mkdir -p "$parent/$name" 2>/dev/null && [ -O "$parent/$name" ] && printf '%s\n' "$parent/$name" && return
    done
    die "no place for the virtual environment: $root has a space in it, and neither the cache directory nor /var/tmp can be written"
}

remove_venv() {
    case $(readlink .venv) in */lapwing-venv-*) rm -rf "$(readlink .venv)" ;; esac
    rm -rf .venv
}

# Whole, of this Python, and made where it now is: scripts in .venv/bin hold absolute paths.
venv_is_usable() {
    [ "$(base_python .venv/bin/python)" = "$python" ] && grep -qsF "$(venv_directory)" .venv/bin/activate &&
        .venv/bin/python -m pip --version
} &>/dev/null

make_venv() {
    remove_venv
    local directory
    directory=$(venv_directory)
    say "creating .venv with $("$python" --version)"
    if "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        quietly "$python" -m venv "$directory"
    elif "$python" -m virtualenv --version &>/dev/null; then
        quietly "$python" -m virtualenv "$directory"
    else
        quietly "$python" -m venv --without-pip "$directory"
        quietly "$python" -m pip --python "$directory/bin/python" install pip
    fi
    [ "$directory" = "$root/.venv" ] || ln -s "$directory" .venv
}

install_lapwing() {
    say "installing Lapwing and what it needs into .venv (a minute or two)"
    quietly "$(venv_directory)/bin/python" -m pip install --editable ".[$extras]"
}

forget_other_environments
if [ "$extra" = --remove ]; then
    remove_venv
    exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
finish() {
    [ "$for_tests" = no ] || install_test_packages
    exit
}
if is_ready; then finish; fi

# One set-up at a time; the one that waited finds it done.
if command -v flock >/dev/null; then
    exec 9<"$root/scripts/setup.sh"
    flock -n 9 || { say "waiting for another set-up of this tree" && flock 9; }
    if is_ready; then finish; fi
fi

find_python
install_system_packages
venv_is_usable || make_venv
install_lapwing
fingerprint >"$stamp"
say "done in $SECONDS s"
finish
