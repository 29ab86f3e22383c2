// The OpenGL peer.

#include <dlfcn.h>
#include <epoxy/egl.h>
#include <epoxy/gl.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "bench/opengl/shaders.hpp"
#include "bench/peer.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "kernels/body/matrix.hpp"

namespace carousel::bench {

// An OpenGL 3.3 core context without a display or a surface, current in the thread that made it and destroyed
// with this object. EGL and GL are loaded at run time (by libepoxy): a machine without them gets a
// device_error, not a failed start.

class gl_context {
public:
    /// For a GPU, uses EGL's device with the CUDA ordinal of `options`. For the CPU, uses EGL's surfaceless
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

namespace {

constexpr EGLint cuda_device_attribute = 0x323A;  // EGL_CUDA_DEVICE_NV

/// Checks for a library first, because libepoxy exits the process if the library is missing.
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

// The OpenGL peer: draws the scene as a plain OpenGL 3.3 program would.

namespace {

namespace body = kernels::body;
enum attachment : u32 { color_target, depth_target, id_target, target_count };

GLuint compile(GLenum kind, const char* source) {
    const GLuint shader = glCreateShader(kind);
    glShaderSource(shader, 1, &source, nullptr);
    glCompileShader(shader);
    GLint fine = 0;
    glGetShaderiv(shader, GL_COMPILE_STATUS, &fine);
    if (fine != 0) return shader;
    char log[1024] = "";
    glGetShaderInfoLog(shader, sizeof log, nullptr, log);
    throw device_error(fmt::format("--peer opengl: the driver refuses a shader: {}", log));
}

GLuint link(const char* vertex, const char* fragment) {
    const GLuint program = glCreateProgram();
    for (const GLuint shader : {compile(GL_VERTEX_SHADER, vertex), compile(GL_FRAGMENT_SHADER, fragment)}) {
        glAttachShader(program, shader);
        glDeleteShader(shader);  // deleted with the program
    }
    glLinkProgram(program);
    GLint fine = 0;
    glGetProgramiv(program, GL_LINK_STATUS, &fine);
    if (fine == 0) throw device_error("--peer opengl: the driver can't link the shaders");
    return program;
}

/// All GL objects are destroyed with the context.
class opengl_peer final : public peer {
public:
    explicit opengl_peer(const peer_options& options) : context_(options), same_filter_(options.same_filter) {
        lit_ = link(shaders::vertex, same_filter_ ? shaders::lit_same_filter : shaders::lit);
        ids_ = link(shaders::vertex, shaders::ids);
        glGenVertexArrays(1, &arrays_);
        glGenBuffers(2, buffers_);
        glGenTextures(1, &texture_);
        glGenFramebuffers(2, framebuffers_);
        glGenRenderbuffers(target_count, targets_);
        glGenQueries(2, queries_);
        glEnable(GL_CULL_FACE);
        glEnable(GL_DEPTH_TEST);
        if (!same_filter_) glEnable(GL_FRAMEBUFFER_SRGB);
    }

    [[nodiscard]] std::string renderer() const override {
        return reinterpret_cast<const char*>(glGetString(GL_RENDERER));
    }
    [[nodiscard]] std::string version() const override {
        return reinterpret_cast<const char*>(glGetString(GL_VERSION));
    }
    [[nodiscard]] std::string timing() const override { return on_cpu() ? "wall" : "device"; }

    void load(const kernels::mesh_layout& layout, std::span<const std::byte> block) override {
        counts_ = layout.counts;
        glBindVertexArray(arrays_);
        glBindBuffer(GL_ARRAY_BUFFER, buffers_[0]);
        glBufferData(GL_ARRAY_BUFFER, static_cast<GLsizeiptr>(layout.indices - layout.vertices),
                     block.data() + layout.vertices, GL_STATIC_DRAW);
        glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, buffers_[1]);
        glBufferData(GL_ELEMENT_ARRAY_BUFFER, GLsizeiptr{counts_.triangle_count} * 12,
                     block.data() + layout.indices, GL_STATIC_DRAW);
        using kernels::shaded_vertex;
        const std::array<std::pair<u64, GLint>, 3> attributes{{{offsetof(shaded_vertex, position), 3},
                                                               {offsetof(shaded_vertex, normal), 3},
                                                               {offsetof(shaded_vertex, texture), 2}}};
        for (GLuint k = 0; k < attributes.size(); ++k) {
            glEnableVertexAttribArray(k);
            glVertexAttribPointer(k, attributes[k].second, GL_FLOAT, GL_FALSE, sizeof(shaded_vertex),
                                  reinterpret_cast<const void*>(attributes[k].first));
        }
        glBindTexture(GL_TEXTURE_2D, texture_);
        glTexImage2D(GL_TEXTURE_2D, 0, same_filter_ ? GL_RGBA8 : GL_SRGB8_ALPHA8,
                     static_cast<GLsizei>(counts_.texture_width),
                     static_cast<GLsizei>(counts_.texture_height), 0, GL_RGBA, GL_UNSIGNED_BYTE,
                     block.data() + layout.texture);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
        check("uploading the mesh");
    }

    void resize(u32 width, u32 height) override {
        width_ = width, height_ = height;
        const std::array<GLenum, target_count> formats{
            same_filter_ ? GLenum{GL_RGBA8} : GLenum{GL_SRGB8_ALPHA8}, GL_DEPTH_COMPONENT24, GL_R32UI};
        for (u32 k = 0; k < target_count; ++k) {
            glBindRenderbuffer(GL_RENDERBUFFER, targets_[k]);
            glRenderbufferStorage(GL_RENDERBUFFER, formats[k], static_cast<GLsizei>(width),
                                  static_cast<GLsizei>(height));
        }
        for (const auto& [framebuffer, color] :
             {std::pair{framebuffers_[0], color_target}, {framebuffers_[1], id_target}}) {
            glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
            glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, targets_[color]);
            glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_RENDERBUFFER,
                                      targets_[depth_target]);
            if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE)
                throw device_error(fmt::format("--peer opengl: no targets of {}x{} pixels from {}", width,
                                               height, renderer()));
        }
        glViewport(0, 0, static_cast<GLsizei>(width), static_cast<GLsizei>(height));
        check("making the targets");
    }

    peer_time draw(const kernels::scene_state& scene, std::span<const f32> models) override {
        glBindFramebuffer(GL_FRAMEBUFFER, framebuffers_[0]);
        glFinish();
        const u64 cpu_begin = process_cpu_ns(), begin = now_ns();
        if (!on_cpu()) glQueryCounter(queries_[0], GL_TIMESTAMP);
        glClearColor(0.02F, 0.03F, 0.05F, 1);
        glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
        glUseProgram(lit_);
        glUniform3fv(glGetUniformLocation(lit_, "light"), 1, scene.light);
        glUniform2f(glGetUniformLocation(lit_, "strength"), scene.ambient, scene.exposure);
        draw_instances(lit_, scene, models);
        if (!on_cpu()) glQueryCounter(queries_[1], GL_TIMESTAMP);
        glFinish();
        const f64 wall_ms = static_cast<f64>(now_ns() - begin) / ns_per_ms,
                  cpu_ms = static_cast<f64>(process_cpu_ns() - cpu_begin) / ns_per_ms;
        check("drawing");
        if (on_cpu()) return {wall_ms, cpu_ms};
        GLuint64 from = 0, to = 0;
        glGetQueryObjectui64v(queries_[0], GL_QUERY_RESULT, &from);
        glGetQueryObjectui64v(queries_[1], GL_QUERY_RESULT, &to);
        return {static_cast<f64>(to - from) / ns_per_ms, cpu_ms};
    }

    [[nodiscard]] std::vector<u32> picture() override {
        glBindFramebuffer(GL_FRAMEBUFFER, framebuffers_[0]);
        return read(GL_RGBA, GL_UNSIGNED_BYTE);
    }

    [[nodiscard]] std::vector<u32> ids(const kernels::scene_state& scene,
                                       std::span<const f32> models) override {
        glBindFramebuffer(GL_FRAMEBUFFER, framebuffers_[1]);
        const GLuint none[4] = {~0U, 0, 0, 0};
        const GLfloat far = 1;
        glClearBufferuiv(GL_COLOR, 0, none);
        glClearBufferfv(GL_DEPTH, 0, &far);
        glUseProgram(ids_);
        draw_instances(ids_, scene, models);
        check("drawing ids");
        return read(GL_RED_INTEGER, GL_UNSIGNED_INT);
    }

private:
    [[nodiscard]] bool on_cpu() const { return software_; }

    void draw_instances(GLuint program, const kernels::scene_state& scene, std::span<const f32> models) {
        const body::matrix34 projection = body::view_projection(scene.camera, width_, height_);
        const f32 near = scene.camera.near, far = scene.camera.far, a = (far + near) / (far - near);
        glUniform2f(glGetUniformLocation(program, "depth"), a, -2 * far * near / (far - near));
        const GLint clip_at = glGetUniformLocation(program, "clip"),
                    model_at = glGetUniformLocation(program, "model"),
                    first_at = glGetUniformLocation(program, "first_id");
        glBindVertexArray(arrays_);
        for (u32 i = 0; i < models.size() / 16; ++i) {
            const f32* const model = models.data() + u64{i} * 16;
            f32 clip[12];
            for (u32 k = 0; k < 12; ++k) clip[k] = body::product_element(projection, model, k);
            glUniform4fv(clip_at, 3, clip);
            glUniform4fv(model_at, 3, model);
            if (first_at >= 0) glUniform1ui(first_at, i * counts_.triangle_count);
            glDrawElements(GL_TRIANGLES, static_cast<GLsizei>(counts_.triangle_count * 3), GL_UNSIGNED_INT,
                           nullptr);
        }
    }

    std::vector<u32> read(GLenum format, GLenum type) {
        std::vector<u32> bottom_first(u64{width_} * height_), out(bottom_first.size());
        glReadPixels(0, 0, static_cast<GLsizei>(width_), static_cast<GLsizei>(height_), format, type,
                     bottom_first.data());
        for (u32 y = 0; y < height_; ++y)
            std::memcpy(out.data() + u64{y} * width_, bottom_first.data() + u64{height_ - 1 - y} * width_,
                        u64{width_} * 4);
        check("reading the picture");
        return out;
    }

    void check(const char* what) const {
        const GLenum error = glGetError();
        if (error != GL_NO_ERROR)
            throw device_error(fmt::format(
                "--peer opengl: {} with {}: GL error {:#x}{}", what, renderer(), error,
                error == GL_OUT_OF_MEMORY ? " (out of memory: use fewer triangles or a smaller size)" : ""));
    }

    gl_context context_;
    bool same_filter_;
    bool software_ =
        renderer().find("llvmpipe") != std::string::npos || renderer().find("softpipe") != std::string::npos;
    kernels::mesh_counts counts_;
    u32 width_ = 0, height_ = 0;
    GLuint lit_ = 0, ids_ = 0, arrays_ = 0, buffers_[2] = {}, texture_ = 0, framebuffers_[2] = {},
           targets_[target_count] = {}, queries_[2] = {};
};

}  // namespace

std::unique_ptr<peer> open_opengl(const peer_options& options) {
    return std::make_unique<opengl_peer>(options);
}

}  // namespace carousel::bench
