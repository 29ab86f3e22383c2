#pragma once
// An OpenGL 3.3 core context without a display or a surface, current in the thread that made it; gone with
// the object. EGL and GL are loaded at run time (libepoxy does): a machine without them gets a device_error,
// not a failed start.

#include <epoxy/egl.h>
#include <epoxy/gl.h>

#include "bench/peer.hpp"

namespace carousel::bench {

class gl_context {
public:
    /// A GPU: EGL's device with that CUDA ordinal. The CPU: EGL's surfaceless platform with software
    /// rendering asked for.
    explicit gl_context(const peer_options& options);
    ~gl_context();
    gl_context(const gl_context&) = delete;
    gl_context& operator=(const gl_context&) = delete;

private:
    void close() noexcept;
    EGLDisplay display_ = EGL_NO_DISPLAY;
    EGLContext context_ = EGL_NO_CONTEXT;
};

}  // namespace carousel::bench
