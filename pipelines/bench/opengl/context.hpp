#pragma once
// An OpenGL 3.3 core context without a display or a surface, current in the thread that made it and destroyed
// with this object. EGL and GL are loaded at run time (by libepoxy): a machine without them gets a
// device_error, not a failed start.

#include <epoxy/egl.h>
#include <epoxy/gl.h>

#include "bench/peer.hpp"

namespace carousel::bench {

class gl_context {
public:
    /// For a GPU, it uses EGL's device with that CUDA ordinal. For the CPU, it uses EGL's surfaceless
    /// platform and requests software rendering. Throws device_error.
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
