#include "bench/opengl/context.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "core/errors.hpp"

namespace carousel::bench {
namespace {

constexpr EGLint cuda_device_attribute = 0x323A;  // EGL_CUDA_DEVICE_NV

/// Checks for the library first, because libepoxy exits the process if one is missing.
void require_library(const char* name, const char* package) {
    if (void* const found = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {
        ::dlclose(found);
        return;
    }
    throw device_error(fmt::format("--peer opengl: {} can't be loaded ({}); install it (apt-get install {})",
                                   name, ::dlerror(), package));
}

bool extension(const char* name) { return epoxy_has_egl_extension(EGL_NO_DISPLAY, name); }

EGLDisplay open_gpu(int ordinal) {
    // EGL_EXT_device_base combines the two other extensions
    const bool lists = extension("EGL_EXT_device_base") ||
                       (extension("EGL_EXT_device_query") && extension("EGL_EXT_device_enumeration"));
    if (!extension("EGL_EXT_platform_device") || !lists) {
        const char* const has = eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
        throw device_error(
            fmt::format("--peer opengl: this machine's EGL can't list GPUs (EGL_EXT_platform_device, "
                        "EGL_EXT_device_base; it has: {}); "
                        "install the NVIDIA driver's GL libraries, and libegl1",
                        has == nullptr ? "nothing" : has));
    }
    EGLDeviceEXT devices[32];
    EGLint count = 0;
    if (eglQueryDevicesEXT(32, devices, &count) != EGL_TRUE) count = 0;
    for (EGLint k = 0; k < count; ++k) {
        const char* can = eglQueryDeviceStringEXT(devices[k], EGL_EXTENSIONS);
        EGLAttrib is = -1;
        if (can == nullptr || std::strstr(can, "EGL_NV_device_cuda") == nullptr) continue;
        if (eglQueryDeviceAttribEXT(devices[k], cuda_device_attribute, &is) != EGL_TRUE || is != ordinal)
            continue;
        const EGLDisplay d = eglGetPlatformDisplayEXT(EGL_PLATFORM_DEVICE_EXT, devices[k], nullptr);
        if (d != EGL_NO_DISPLAY && eglInitialize(d, nullptr, nullptr) == EGL_TRUE) return d;
    }
    throw device_error(
        fmt::format("--peer opengl: none of EGL's {} devices is the GPU cuda:{}; check that the NVIDIA "
                    "driver's EGL libraries are installed (libEGL_nvidia.so.0 and its file in egl_vendor.d)",
                    count, ordinal));
}

EGLDisplay open_software(u32 threads) {
    ::setenv("LIBGL_ALWAYS_SOFTWARE", "1", 1);
    if (threads != 0) ::setenv("LP_NUM_THREADS", std::to_string(threads).c_str(), 1);
    if (extension("EGL_MESA_platform_surfaceless")) {
        const EGLDisplay d =
            eglGetPlatformDisplayEXT(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
        if (d != EGL_NO_DISPLAY && eglInitialize(d, nullptr, nullptr) == EGL_TRUE) return d;
    }
    throw device_error(
        "--peer opengl: EGL has no surfaceless software renderer here; install libegl1, libgl1 and "
        "libgl1-mesa-dri");
}

}  // namespace

gl_context::gl_context(const peer_options& options) {
    require_library("libEGL.so.1", "libegl1");
    require_library("libGL.so.1", "libgl1");
    display_ = options.gpu ? open_gpu(options.ordinal) : open_software(options.threads);
    eglBindAPI(EGL_OPENGL_API);
    const EGLint wanted[] = {EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_SURFACE_TYPE, 0, EGL_NONE};
    const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION,
                              3,
                              EGL_CONTEXT_MINOR_VERSION,
                              3,
                              EGL_CONTEXT_OPENGL_PROFILE_MASK,
                              EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                              EGL_NONE};
    EGLConfig config = nullptr;
    EGLint count = 0;
    if (eglChooseConfig(display_, wanted, &config, 1, &count) == EGL_TRUE && count > 0)
        context_ = eglCreateContext(display_, config, EGL_NO_CONTEXT, version);
    if (context_ == EGL_NO_CONTEXT ||
        eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_) != EGL_TRUE) {
        const EGLint why = eglGetError();
        close();
        throw device_error(
            fmt::format("--peer opengl: no OpenGL 3.3 without a window here (EGL error {:#x}); install "
                        "libgl1-mesa-dri, or "
                        "the driver's GL libraries",
                        why));
    }
}

gl_context::~gl_context() { close(); }

void gl_context::close() noexcept {
    if (display_ == EGL_NO_DISPLAY) return;
    eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    if (context_ != EGL_NO_CONTEXT) eglDestroyContext(display_, context_);
    eglTerminate(display_);
    display_ = EGL_NO_DISPLAY;
    context_ = EGL_NO_CONTEXT;
}

}  // namespace carousel::bench
