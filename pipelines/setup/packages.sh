# shellcheck shell=bash
# shellcheck disable=SC2034  # setup.sh reads what this file sets
# Which packages Carousel needs, by distribution. Sourced by setup.sh; bash.
#
# A line of the tables: the package, and a file whose presence stands for it where dpkg-query is absent (a command's name, or a
# header below one of the include folders). Names that differ between Debian 12 and Ubuntu 24.04 are chosen in
# carousel_distribution().

# Reads the os-release file given; sets distribution_name (as the system calls itself), distribution_known (yes | no),
# boost_package, viewer_packages, fuzz_packages and lint_packages.
carousel_distribution() {
    local PRETTY_NAME="this system" VERSION_CODENAME="" UBUNTU_CODENAME=""
    # shellcheck disable=SC1090,SC1091
    if [ -r "$1" ]; then . "$1"; fi
    distribution_name=$PRETTY_NAME
    distribution_known=yes
    # The viewer, with the Dear ImGui that it was tried with (1.86 and 1.90). Elsewhere it is built where these are installed already.
    local imgui_and_glfw=$'libimgui-dev imgui.h:imgui/imgui.h\nlibglfw3-dev GLFW/glfw3.h\n'
    viewer_packages=""
    fuzz_packages=""
    lint_packages=""
    case "${UBUNTU_CODENAME:-$VERSION_CODENAME}" in   # derived systems name what they are derived from
        bookworm)   # Debian 12; its libboost-dev is 1.74
            boost_package=libboost1.81-dev
            viewer_packages=$imgui_and_glfw
            fuzz_packages=$'clang clang++\nlibclang-rt-14-dev clang++\n'
            lint_packages=$'clang-format clang-format\nclang-tidy clang-tidy\npyflakes3 pyflakes3\n'
            ;;
        noble)   # Ubuntu 24.04
            boost_package=libboost1.83-dev
            viewer_packages=$imgui_and_glfw
            fuzz_packages=$'clang clang++\nlibclang-rt-18-dev clang++\n'
            lint_packages=$'clang-format-14 clang-format-14\nclang-tidy clang-tidy\npyflakes3 pyflakes3\n'
            ;;
        *)
            distribution_known=no
            boost_package=libboost-dev
            ;;
    esac
}

# What ./tests/run --all takes on top of the tests: libFuzzer.
carousel_fuzz_packages() { printf '%s' "$fuzz_packages"; }

# Its look at the sources: the formatter in the version that has formatted the tree, clang-tidy, and pyflakes for Python.
carousel_lint_packages() { printf '%s' "$lint_packages"; }

# What it takes on top of that for the API reference.
carousel_docs_packages() { printf 'doxygen doxygen\n'; }

# What the campaign of hosts takes on top of that: network namespaces, as two hosts on one machine, and the rules by which one
# falls silent. The tests of --all are skipped where these are missing. Neither package starts anything. The test of ssh takes
# openssh-server, which is left out: installing it starts a daemon that listens to the network.
carousel_network_packages() { printf '%s\n' 'iproute2 ip' 'nftables nft'; }

# Packages that building the programs takes. The last two are for `carousel bench --peer opengl` and the viewer; libegl-dev brings Mesa's
# software renderer along.
carousel_program_packages() {
    cat <<EOF
g++ c++
cmake cmake
ninja-build ninja
pkg-config pkg-config
$boost_package boost/interprocess/mapped_region.hpp
libfmt-dev fmt/format.h
nlohmann-json3-dev nlohmann/json.hpp
libcli11-dev CLI/CLI.hpp
libtomlplusplus-dev toml++/toml.h
libspng-dev spng.h
libisal-dev isa-l/igzip_lib.h
libzstd-dev zstd.h
liblz4-dev lz4frame.h
libtinyobjloader-dev tiny_obj_loader.h
libxxhash-dev xxhash.h
libturbojpeg0-dev turbojpeg.h
libepoxy-dev epoxy/gl.h
libegl-dev EGL/egl.h
EOF
    printf '%s' "$viewer_packages"
}

# What films (`--out x.mp4`) take on top. ffmpeg's libraries are big: ./pipelines/launch installs them for the first film, not before.
carousel_film_packages() {
    cat <<EOF
libavcodec-dev libavcodec/avcodec.h
libavformat-dev libavformat/avformat.h
libavutil-dev libavutil/avutil.h
libswscale-dev libswscale/swscale.h
EOF
}

# What a link to another host takes on top: UCX, and libcrypto for its token.
carousel_host_packages() {
    cat <<EOF
libucx-dev ucp/api/ucp.h
libssl-dev openssl/hmac.h
EOF
}

# What stages in Python take on top: for pipelines and tests that have some.
carousel_python_packages() {
    printf '%s\n' 'python3-dev python3-config' 'pybind11-dev pybind11/pybind11.h' 'python3-numpy python3'
}

# What the tests take on top.
carousel_test_packages() {
    carousel_film_packages
    carousel_host_packages
    carousel_python_packages
    cat <<EOF
catch2 catch2/catch.hpp:catch2/catch_all.hpp
python3 python3
ffmpeg ffmpeg
EOF
    # A real window, driven by a real mouse, where the viewer is built.
    if [ -n "$viewer_packages" ]; then printf 'xvfb Xvfb\nxdotool xdotool\n'; fi
}
