// GL without a display: Tries EGL on an NVIDIA GPU, then EGL's surfaceless platform (Mesa), then EGL's first
// device; draws into a framebuffer object.
#include <epoxy/egl.h>
#include <epoxy/gl.h>
#include <fmt/format.h>
#include <imgui.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/errors.hpp"
#include "viewer/window/gl_paint.hpp"
#include "viewer/window/window.hpp"

namespace carousel::viewer {
namespace {

// Opens an NVIDIA GPU, which supports CUDA-GL interop, unless the user requests drawing on the CPU.
EGLDisplay open_gpu() {
    const char* software = std::getenv("LIBGL_ALWAYS_SOFTWARE");
    if (software != nullptr && *software != '\0' && *software != '0') return EGL_NO_DISPLAY;
    if (!epoxy_has_egl_extension(EGL_NO_DISPLAY, "EGL_EXT_platform_device") ||
        !epoxy_has_egl_extension(EGL_NO_DISPLAY, "EGL_EXT_device_query"))
        return EGL_NO_DISPLAY;
    EGLDeviceEXT devices[16];
    EGLint count = 0;
    if (eglQueryDevicesEXT(16, devices, &count) != EGL_TRUE) return EGL_NO_DISPLAY;
    for (EGLint k = 0; k < count; ++k) {
        const char* can = eglQueryDeviceStringEXT(devices[k], EGL_EXTENSIONS);
        if (can == nullptr || std::strstr(can, "EGL_NV_device_cuda") == nullptr) continue;
        const EGLDisplay d = eglGetPlatformDisplayEXT(EGL_PLATFORM_DEVICE_EXT, devices[k], nullptr);
        if (d != EGL_NO_DISPLAY && eglInitialize(d, nullptr, nullptr) == EGL_TRUE) return d;
    }
    return EGL_NO_DISPLAY;
}

EGLDisplay open_display() {
    if (const EGLDisplay d = open_gpu(); d != EGL_NO_DISPLAY) return d;
    const bool surfaceless = epoxy_has_egl_extension(EGL_NO_DISPLAY, "EGL_MESA_platform_surfaceless");
    if (epoxy_has_egl_extension(EGL_NO_DISPLAY, "EGL_EXT_platform_base") && surfaceless) {
        const EGLDisplay d =
            eglGetPlatformDisplayEXT(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
        if (d != EGL_NO_DISPLAY && eglInitialize(d, nullptr, nullptr) == EGL_TRUE) return d;
    }
    if (epoxy_has_egl_extension(EGL_NO_DISPLAY, "EGL_EXT_platform_device") &&
        epoxy_has_egl_extension(EGL_NO_DISPLAY, "EGL_EXT_device_enumeration")) {
        EGLDeviceEXT devices[16];
        EGLint count = 0;
        if (eglQueryDevicesEXT(16, devices, &count) == EGL_TRUE) {
            for (EGLint k = 0; k < count; ++k) {
                const EGLDisplay d = eglGetPlatformDisplayEXT(EGL_PLATFORM_DEVICE_EXT, devices[k], nullptr);
                if (d != EGL_NO_DISPLAY && eglInitialize(d, nullptr, nullptr) == EGL_TRUE) return d;
            }
        }
    }
    throw device_error(
        "--offscreen: EGL offers neither a surfaceless platform nor a device here: install libegl1 and "
        "libgl1-mesa-dri, or use --null");
}

class offscreen_window final : public window {
public:
    explicit offscreen_window(const window_options& o) : width_(o.width), height_(o.height) {
        display_ = open_display();
        make_context();
        if (epoxy_gl_version() < 33) {
            const int version = epoxy_gl_version();
            close();
            throw device_error(
                fmt::format("--offscreen: this GL is version {}.{}, the viewer needs 3.3: update the driver",
                            version / 10, version % 10));
        }
        glGenTextures(1, &color_);
        glBindTexture(GL_TEXTURE_2D, color_);
        glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width_, height_, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
        glGenFramebuffers(1, &target_);
        glBindFramebuffer(GL_FRAMEBUFFER, target_);
        glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, color_, 0);
        glBindTexture(GL_TEXTURE_2D, 0);
        ImGui_ImplOpenGL3_Init("#version 330 core");
        paint_.emplace(is_software_gl());
    }
    ~offscreen_window() override {
        ImGui_ImplOpenGL3_Shutdown();
        glDeleteFramebuffers(1, &target_);
        glDeleteTextures(1, &color_);
        close();
    }
    bool begin_frame() override {
        ImGui_ImplOpenGL3_NewFrame();
        ImGuiIO& io = ImGui::GetIO();
        io.DisplaySize = ImVec2(static_cast<float>(width_), static_cast<float>(height_));
        io.DeltaTime = 1.0F / 60.0F;
        ImGui::NewFrame();
        return true;
    }
    void end_frame(ImDrawData* data, u64 picture_version) override {
        glBindFramebuffer(GL_FRAMEBUFFER, target_);
        paint_->paint(data, width_, height_, picture_version, true);
        glFinish();
    }
    [[nodiscard]] std::vector<key_press> take_keys() override { return {}; }
    [[nodiscard]] bool has_gl() const noexcept override { return true; }
    [[nodiscard]] f32 scale() const noexcept override { return 1; }
    [[nodiscard]] std::vector<u8> read_pixels(u32& width, u32& height) override {
        glBindFramebuffer(GL_FRAMEBUFFER, target_);
        width = static_cast<u32>(width_);
        height = static_cast<u32>(height_);
        return read_framebuffer(width, height);
    }
    [[nodiscard]] std::string description() const override {
        return fmt::format("offscreen, {}", reinterpret_cast<const char*>(glGetString(GL_RENDERER)));
    }
    void size(i32& width, i32& height) const override {
        width = width_;
        height = height_;
    }
    [[nodiscard]] f64 painted_share() const noexcept override { return paint_->painted_share(); }

private:
    void make_context() {
        eglBindAPI(EGL_OPENGL_API);
        const EGLint wanted[] = {EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_SURFACE_TYPE, 0, EGL_NONE};
        EGLConfig config = nullptr;
        EGLint count = 0;
        const bool chosen = eglChooseConfig(display_, wanted, &config, 1, &count) == EGL_TRUE && count > 0;
        const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION,
                                  3,
                                  EGL_CONTEXT_MINOR_VERSION,
                                  3,
                                  EGL_CONTEXT_OPENGL_PROFILE_MASK,
                                  EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                                  EGL_NONE};
        if (chosen) context_ = eglCreateContext(display_, config, EGL_NO_CONTEXT, version);
        if (context_ == EGL_NO_CONTEXT ||
            eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_) != EGL_TRUE) {
            const EGLint why = eglGetError();
            close();
            throw device_error(
                fmt::format("--offscreen: no GL 3.3 without a window here (EGL error {:#x}): install "
                            "libgl1-mesa-dri, or use --null",
                            why));
        }
    }
    void close() noexcept {
        eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
        if (context_ != EGL_NO_CONTEXT) eglDestroyContext(display_, context_);
        eglTerminate(display_);
        context_ = EGL_NO_CONTEXT;
    }
    i32 width_, height_;
    EGLDisplay display_ = EGL_NO_DISPLAY;
    EGLContext context_ = EGL_NO_CONTEXT;
    GLuint color_ = 0, target_ = 0;
    std::optional<gl_paint> paint_;
};

}  // namespace

std::unique_ptr<window> make_offscreen_window(const window_options& options) {
    return std::make_unique<offscreen_window>(options);
}

}  // namespace carousel::viewer
