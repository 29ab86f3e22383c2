# shellcheck shell=bash
# shellcheck disable=SC2154  # root is set by the caller
# Shared by ./pipelines/launch, ./pipelines/package and ./tests/run: find and install missing packages, configure, build. Sourced; bash.
#
# The caller sets `root` (the repository), may set `no_install=yes`, and calls in this order:
#   carousel_packages programs [films] [gstreamer] [hosts] [python] [packages] [images] [site] | tests [networks] | all-tests
#       ends the script with exit code 2 when something is missing and can't be installed
#   carousel_configure PRESET [--kept] [-Dkey=value ...]
#   carousel_build PRESET TARGET...
# A second start costs one dpkg-query, one comparison of a stamp file and a ninja run that finds nothing to do.
# Environment: CAROUSEL_JOBS (parallel jobs; default: all cores), CAROUSEL_SKIP_PACKAGES=1 (trust the machine, check nothing),
# CAROUSEL_CMAKE_OPTIONS (more -Dkey=value, separated by blanks).

# shellcheck source=pipelines/setup/packages.sh
. "$root/pipelines/setup/packages.sh"

no_install=${no_install:-no}
jobs=${CAROUSEL_JOBS:-$(nproc)}
case $jobs in
    '' | *[!0-9]* | 0*)
        echo "CAROUSEL_JOBS=$jobs: expected a number of parallel jobs, 1 or more" >&2
        exit 2
        ;;
esac

say() { printf '%s\n' "$*"; }
fail() {   # fail CODE MESSAGE...
    local code=$1
    shift
    printf '%s\n' "$@" >&2
    exit "$code"
}

# Prints the packages of the table on stdin that are not installed.
carousel_missing() {
    local -A installed=()
    local name="" probe="" status="" names=() probes=()
    while read -r name probe; do
        names+=("$name")
        probes+=("$probe")
    done
    if command -v dpkg-query >/dev/null; then
        while read -r status name; do
            [ "$status" = ii ] && installed[$name]=1
        done < <(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' "${names[@]}" 2>/dev/null)
    else
        local i
        for i in "${!names[@]}"; do
            carousel_probe "${probes[$i]}" && installed[${names[$i]}]=1
        done
    fi
    for name in "${names[@]}"; do
        [ -n "${installed[$name]:-}" ] || printf '%s\n' "$name"
    done
}

# Succeeds if there is such a command, or one of these headers (a:b) in an include folder. For systems without dpkg.
carousel_probe() {
    local header folder
    case $1 in
        *.h | *.hpp)
            for header in ${1//:/ }; do
                for folder in /usr/include /usr/local/include /usr/include/"$(uname -m)"-linux-gnu; do
                    [ -e "$folder/$header" ] && return 0
                done
            done
            return 1
            ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

carousel_packages() {
    [ "${CAROUSEL_SKIP_PACKAGES:-}" = 1 ] && return 0
    local missing=()
    carousel_distribution /etc/os-release
    mapfile -t missing < <({
        carousel_program_packages
        case " $* " in *' films '*) carousel_film_packages ;; esac
        case " $* " in *' gstreamer '*) carousel_gstreamer_packages ;; esac
        case " $* " in *' hosts '*) carousel_host_packages ;; esac
        case " $* " in *' python '*) carousel_python_packages ;; esac
        case " $* " in *' packages '*) carousel_package_packages ;; esac
        case " $* " in *' images '*) carousel_image_packages ;; esac
        case " $* " in *' site '*) carousel_docs_packages && carousel_site_packages ;; esac
        case $1 in *tests) carousel_test_packages ;; esac
        if [ "$1" = all-tests ]; then carousel_fuzz_packages && carousel_lint_packages && carousel_docs_packages && carousel_site_packages && carousel_package_packages; fi
        case " $* " in *' networks '*) carousel_network_packages ;; esac
    } | carousel_missing)
    [ ${#missing[@]} = 0 ] && return 0

    local list="${missing[*]}"
    if [ "$no_install" = yes ]; then
        fail 2 "Missing packages: $list" "Nothing was installed (--no-install). Install them with: apt-get install $list"
    fi
    if ! command -v apt-get >/dev/null; then
        fail 2 "Missing packages: $list" \
            "There is no apt-get here. These are the names in Debian 12 and Ubuntu 24.04: install what they hold, then start again." \
            "CAROUSEL_SKIP_PACKAGES=1 skips this check."
    fi
    local sudo=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail 2 "Missing packages: $list" \
            "Installing them takes root and there is no sudo. Run as root: apt-get install $list"
        sudo=(sudo)
    fi
    say "Missing packages: $list"
    [ "$distribution_known" = yes ] ||
        say "($distribution_name is not one of the tried systems, Debian 12 and Ubuntu 24.04; trying their package names.)"
    say "Installing them with apt (--no-install forbids it) ..."
    carousel_apt "${sudo[@]}" || fail 2 "Installing failed. Still missing: $list" \
        "apt's own message is above. Try: apt-get update && apt-get install $list"
}

# Installs the caller's `missing`; $@ = sudo or nothing. A fresh system has no package lists; old lists name versions that no longer
# exist.
carousel_apt() {
    local get=("$@" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0)
    local install=("${get[@]}" install -y --no-install-recommends "${missing[@]}")
    if compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null && "${install[@]}" </dev/null; then
        return 0
    fi
    "${get[@]}" update </dev/null && "${install[@]}" </dev/null
}

# Two concurrent starts would build in one folder. The lock is released before any program starts that outlives the build.
carousel_lock() {
    mkdir -p "$1" 2>/dev/null || fail 2 "Can't make the folder $1: is ${root} writable for $(id -un)?"
    exec 9>"$1/.lock" || fail 2 "Can't write in $1: is it writable for $(id -un)?"
    if ! flock -n 9; then
        say "Another start is building in ${1#"$root"/}; waiting for it ..."
        flock 9
    fi
}
carousel_unlock() { exec 9>&-; }

# Configures if there is no configuration yet or its inputs have changed; ninja detects changed CMake files itself. With --kept the
# options of an earlier configuration stay and the given ones are only for a first configuration: ./pipelines/launch must not
# require the tests' packages, nor undo the configuration of a user who also builds the tests here.
carousel_configure() {
    local preset=$1 build="$root/build/$1" stamp log key options
    shift
    stamp="$build/.configured"   # first line: the options; the rest: the other inputs
    log="$build/configure.log"
    carousel_lock "$build"
    if [ "${1:-}" = --kept ]; then
        shift
        if [ -e "$stamp" ]; then
            options=$(head -n 1 "$stamp")
        elif [ -e "$build/CMakeCache.txt" ]; then
            options=""
        else
            options="$*"
        fi
    else
        options="$*"
    fi
    # A toolkit, or what films, links or Python need, that is installed or removed later must be detected although no file of the
    # repository has changed.
    key="$options
$(cksum <"$root/CMakePresets.json") more=${CAROUSEL_CMAKE_OPTIONS:-} nvcc=$(carousel_nvcc) films=$(compgen -G '/usr/include/*/libavformat/avformat.h' || :)$(compgen -G '/usr/include/*/libavdevice/avdevice.h' || :) gstreamer=$(compgen -G '/usr/include/gstreamer-1.0/gst/video/video.h' || :) hosts=$(compgen -G '/usr/include/ucp/api/ucp.h' || :) python=$(compgen -G '/usr/include/pybind11/pybind11.h' || :)$(compgen -G '/usr/include/python3*/Python.h' || :) cxx=${CXX:-} flags=${CXXFLAGS:-}"
    if [ -e "$build/build.ninja" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$key" ]; then
        return 0
    fi
    say "Configuring ($preset) ..."
    rm -f "$stamp"
    # options contain no blanks
    if ! (cd "$root" && cmake --preset "$preset" $options ${CAROUSEL_CMAKE_OPTIONS:-}) >"$log" 2>&1 9>&-; then
        cat "$log" >&2
        fail 2 "Configuring failed; the message is above and in ${log#"$root"/}."
    fi
    # After a successful configuration prints only the decision about CUDA, and warnings.
    awk '/^-- /{w=0} /^-- CUDA/{print substr($0,4)} /^CMake .*Warning/{w=1} w' "$log"
    printf '%s' "$key" >"$stamp"
}

carousel_nvcc() {
    local nvcc
    for nvcc in "${CUDACXX:-}" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc /opt/cuda/bin/nvcc; do
        if [ -x "$nvcc" ]; then
            printf '%s %s' "$nvcc" "$(stat -L -c '%Y %s' "$nvcc")"
            return
        fi
    done
    printf none
}

# Builds the targets and releases the lock. Prints nothing if everything is up to date.
carousel_build() {
    local build="$root/build/$1" failed=0
    shift
    if ! (cd "$build" && ninja -n "$@" 2>/dev/null) | grep -q '^ninja: no work to do'; then
        say "Building in ${build#"$root"/} with $jobs jobs ..."
        (cd "$build" && NINJA_STATUS="[%f/%t] " ninja -j "$jobs" "$@") 9>&- || failed=1
    fi
    carousel_unlock
    [ $failed = 0 ] || fail 1 "Building failed; the first error is above."
}
