# shellcheck shell=bash
# shellcheck disable=SC2034  # setup.sh reads what this file sets
# Packages that Carousel needs, by distribution. Sourced by setup.sh; bash.
#
# A line of the tables: the package, and a file whose presence implies the package where dpkg-query is absent (a command's name, or
# a header below one of the include folders). carousel_distribution() chooses the names that differ between Debian 12 and Ubuntu
# 24.04.

# Reads the given os-release file; sets distribution_name (the system's own name), distribution_known (yes | no), boost_package,
# viewer_packages, fuzz_packages and lint_packages.
carousel_distribution() {
    local PRETTY_NAME="this system" VERSION_CODENAME="" UBUNTU_CODENAME=""
    # shellcheck disable=SC1090,SC1091
    if [ -r "$1" ]; then . "$1"; fi
    distribution_name=$PRETTY_NAME
    distribution_known=yes
    # The viewer, with the Dear ImGui versions that were tested (1.86 and 1.90). Elsewhere it is built if these are already
    # installed.
    local imgui_and_glfw=$'libimgui-dev imgui.h:imgui/imgui.h\nlibglfw3-dev GLFW/glfw3.h\n'
    viewer_packages=""
    fuzz_packages=""
    lint_packages=""
    case "${UBUNTU_CODENAME:-$VERSION_CODENAME}" in   # derived systems name their base
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

# What ./tests/run --all needs in addition to the tests: libFuzzer.
carousel_fuzz_packages() { printf '%s' "$fuzz_packages"; }

# For the source checks of ./tests/run --all: the formatter in the version that has formatted the tree, clang-tidy, and pyflakes for Python.
carousel_lint_packages() { printf '%s' "$lint_packages"; }

# Needed in addition for the API reference.
carousel_docs_packages() { printf 'doxygen doxygen\n'; }

# ... and for the documents as a site.
carousel_site_packages() { printf '%s\n' 'mkdocs mkdocs' 'mkdocs-material mkdocs'; }

# Needed in addition by the campaign of hosts: network namespaces, as two hosts on one machine, and the rules that make one of them
# unreachable. The tests of --all are skipped where these are missing. Neither package starts a process. The test of ssh needs
# openssh-server, which is left out: installing it starts a daemon that listens on the network.
carousel_network_packages() { printf '%s\n' 'iproute2 ip' 'nftables nft'; }

# Needed in addition by ./pipelines/package: dpkg-shlibdeps, and setuptools for the wheel.
carousel_package_packages() {
    printf '%s\n' 'dpkg-dev dpkg-shlibdeps' 'python3-setuptools python3' 'python3-wheel python3'
}

# ... and by its images.
carousel_image_packages() { printf 'podman podman\n'; }

# Packages for building the programs. The last two are for `carousel bench --peer opengl` and the viewer; libegl-dev includes Mesa's
# software renderer.
carousel_program_packages() {
    cat <<EOF
g++ c++
cmake cmake
ninja-build ninja
pkg-config pkg-config
$boost_package boost/describe.hpp
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

# Needed in addition for films (`--out x.mp4`) and for carousel-video. FFmpeg's libraries are large: ./pipelines/launch installs them
# only for the first film or video.
carousel_film_packages() {
    cat <<EOF
libavcodec-dev libavcodec/avcodec.h
libavdevice-dev libavdevice/avdevice.h
libavformat-dev libavformat/avformat.h
libavutil-dev libavutil/avutil.h
libswscale-dev libswscale/swscale.h
EOF
}

# Needed in addition for the GStreamer plugin.
carousel_gstreamer_packages() {
    cat <<EOF
libgstreamer1.0-dev gstreamer-1.0/gst/gst.h
libgstreamer-plugins-base1.0-dev gstreamer-1.0/gst/video/video.h
EOF
}

# Needed in addition for a link to another host: UCX, and libcrypto for its token.
carousel_host_packages() {
    cat <<EOF
libucx-dev ucp/api/ucp.h
libssl-dev openssl/hmac.h
EOF
}

# Needed in addition for stages in Python: for pipelines and tests that have some.
carousel_python_packages() {
    printf '%s\n' 'python3-dev python3-config' 'pybind11-dev pybind11/pybind11.h' 'python3-numpy python3'
}

# Needed in addition by the tests.
carousel_test_packages() {
    carousel_film_packages
    carousel_gstreamer_packages
    carousel_host_packages
    carousel_python_packages
    cat <<EOF
gstreamer1.0-tools gst-launch-1.0
gstreamer1.0-plugins-base gst-launch-1.0
catch2 catch2/catch.hpp:catch2/catch_all.hpp
python3 python3
ffmpeg ffmpeg
EOF
    # A real window, driven by a real mouse, where the viewer is built.
    if [ -n "$viewer_packages" ]; then printf 'xvfb Xvfb\nxdotool xdotool\n'; fi
}
