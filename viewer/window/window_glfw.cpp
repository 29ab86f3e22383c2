#include <epoxy/gl.h>
// Must follow epoxy, which replaces GL's own header.
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui.h>

#if __has_include(<backends/imgui_impl_glfw.h>)
#include <backends/imgui_impl_glfw.h>
#else
#include <imgui_impl_glfw.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "viewer/window/gl_paint.hpp"
#include "viewer/window/window.hpp"

namespace carousel::viewer {
namespace {

constexpr u64 frame_ns = ns_per_s / 60;
constexpr u64 figures_ns = 50 * ns_per_ms;  ///< if GL runs in software and the window is not in use,
                                            ///< everything except the picture is painted at this interval
constexpr u64 used_ns = 300 * ns_per_ms;    ///< the window is treated as in use for this time after each
                                            ///< input

std::string last_glfw_error() {
    const char* text = nullptr;
    const int code = glfwGetError(&text);
    return code == GLFW_NO_ERROR ? "no reason given"
                                 : fmt::format("{} (GLFW {:#x})", text != nullptr ? text : "?", code);
}

int key_of(int glfw) {
    switch (glfw) {
        case GLFW_KEY_ESCAPE:
            return key::escape;
        case GLFW_KEY_LEFT:
            return key::left;
        case GLFW_KEY_RIGHT:
            return key::right;
        case GLFW_KEY_UP:
            return key::up;
        case GLFW_KEY_DOWN:
            return key::down;
        case GLFW_KEY_KP_ADD:
            return '=';
        case GLFW_KEY_KP_SUBTRACT:
            return '-';
        default:
            break;
    }
    if (glfw >= GLFW_KEY_F1 && glfw <= GLFW_KEY_F12) return key::f1 + (glfw - GLFW_KEY_F1);
    return glfw >= 32 && glfw < 128 ? glfw : 0;  // GLFW's codes of printable keys are ASCII
}

class glfw_window final : public window {
public:
    explicit glfw_window(const window_options& o) {
        // The viewer never synchronises with a display (see glfwSwapInterval() below); NVIDIA's driver needs
        // this variable in addition.
        ::setenv("__GL_SYNC_TO_VBLANK", "0", 0);
        if (glfwInit() != GLFW_TRUE)
            throw device_error(fmt::format(
                "no window: {}; DISPLAY is {}. Without a display, use `carousel run` alone, or --offscreen "
                "--screenshot FILE",
                last_glfw_error(), std::getenv("DISPLAY") != nullptr ? std::getenv("DISPLAY") : "not set"));
        open(o);
        // On a software GL, painting uses cores that the pipeline needs. A single buffer is used, because it
        // keeps its pixels, so that only changes are painted.
        if (is_software_gl()) {
            glfwDestroyWindow(window_);
            if (try_open(o, false)) {
                GLboolean two = GL_TRUE;
                glGetBooleanv(GL_DOUBLEBUFFER, &two);
                single_ = two == GL_FALSE;
            } else {  // EGL does not offer a single buffer
                (void)last_glfw_error();
                open(o);
            }
        }
        paint_.emplace(single_);
        glfwShowWindow(window_);
        glfwSetWindowUserPointer(window_, this);
        glfwSetKeyCallback(window_, [](GLFWwindow* w, int key, int, int action, int mods) {
            auto* self = static_cast<glfw_window*>(glfwGetWindowUserPointer(w));
            const int known = key_of(key);
            if (known == 0 || action == GLFW_RELEASE) return;
            self->used_at_ns_ = now_ns();
            self->keys_.push_back({known, (mods & GLFW_MOD_CONTROL) != 0, (mods & GLFW_MOD_SHIFT) != 0});
        });
        glfwSetWindowRefreshCallback(window_, [](GLFWwindow* w) {
            static_cast<glfw_window*>(glfwGetWindowUserPointer(w))->paint_->forget();
        });
        glfwSetFramebufferSizeCallback(window_, [](GLFWwindow* w, int, int) {
            static_cast<glfw_window*>(glfwGetWindowUserPointer(w))->paint_->forget();
        });
        ImGui_ImplGlfw_InitForOpenGL(window_, true);  // calls our callbacks, too
        ImGui_ImplOpenGL3_Init("#version 330 core");
    }
    ~glfw_window() override {
        ImGui_ImplOpenGL3_Shutdown();
        ImGui_ImplGlfw_Shutdown();
        glfwDestroyWindow(window_);
        glfwTerminate();
    }
    bool begin_frame() override {
        glfwPollEvents();
        ImGui_ImplOpenGL3_NewFrame();
        ImGui_ImplGlfw_NewFrame();
        ImGuiIO& io = ImGui::GetIO();
        // If the window is resized to nothing, it is laid out for one pixel and not drawn.
        io.DisplaySize = ImVec2(std::max(io.DisplaySize.x, 1.0F), std::max(io.DisplaySize.y, 1.0F));
        io.DeltaTime = std::max(io.DeltaTime, 1e-4F);
        ImGui::NewFrame();
        // The wheel is checked here, because ImGui::Render() clears it.
        if (io.MouseWheel != 0 || io.MouseWheelH != 0) used_at_ns_ = now_ns();
        return glfwWindowShouldClose(window_) == GLFW_FALSE;
    }
    void end_frame(ImDrawData* data, u64 picture_version) override {
        int w = 0, h = 0;
        glfwGetFramebufferSize(window_, &w, &h);
        glBindFramebuffer(GL_FRAMEBUFFER, 0);
        const u64 now = now_ns();
        const ImGuiIO& io = ImGui::GetIO();
        if (io.MouseDelta.x != 0 || io.MouseDelta.y != 0 || ImGui::IsAnyMouseDown()) used_at_ns_ = now;
        const bool everything =
            read_wanted_ || now < used_at_ns_ + used_ns || now >= figures_at_ns_ + figures_ns;
        if (everything) figures_at_ns_ = now;
        const bool painted = paint_->paint(data, w, h, picture_version, everything);
        if (read_wanted_) {  // read before the swap, because after the swap the back buffer is undefined
            pixels_w_ = static_cast<u32>(w);
            pixels_h_ = static_cast<u32>(h);
            pixels_ = read_framebuffer(pixels_w_, pixels_h_);
            read_wanted_ = false;
        }
        if (!single_)
            glfwSwapBuffers(window_);
        else if (painted)
            glFlush();  // shows the frame
    }
    [[nodiscard]] std::vector<key_press> take_keys() override { return std::exchange(keys_, {}); }
    [[nodiscard]] bool has_gl() const noexcept override { return true; }
    [[nodiscard]] f32 scale() const noexcept override {
        float x = 1, y = 1;
        glfwGetWindowContentScale(window_, &x, &y);
        return std::clamp(std::max(x, y), 0.5F, 4.0F);
    }
    /// The first call returns an empty vector and requests the pixels of the next frame.
    [[nodiscard]] std::vector<u8> read_pixels(u32& width, u32& height) override {
        if (pixels_.empty()) {
            read_wanted_ = true;
            return {};
        }
        width = pixels_w_;
        height = pixels_h_;
        return std::exchange(pixels_, {});
    }
    [[nodiscard]] std::string description() const override {
        return fmt::format("GLFW, {}", reinterpret_cast<const char*>(glGetString(GL_RENDERER)));
    }
    void set_title(const std::string& title) override {
        if (title != title_) glfwSetWindowTitle(window_, title.c_str());
        title_ = title;
    }
    void size(i32& width, i32& height) const override { glfwGetWindowSize(window_, &width, &height); }
    [[nodiscard]] f64 painted_share() const noexcept override { return paint_->painted_share(); }
    [[nodiscard]] bool hidden() const noexcept override {
        return glfwGetWindowAttrib(window_, GLFW_ICONIFIED) != 0;
    }

    // A software GL does not wait for a screen, so without this wait the viewer would occupy a core that the
    // pipeline needs.
    void pace(u64 every_ns) override {
        if (hidden()) every_ns = std::max(every_ns, 6 * frame_ns);
        if (every_ns <= 2 * frame_ns) return window::pace(every_ns);
        const u64 now = now_ns();  // nothing changes before next_ns_, so the viewer sleeps until that time,
                                   // and only input wakes it earlier
        if (now < next_ns_) glfwWaitEventsTimeout(static_cast<f64>(next_ns_ - now) / 1e9);
        next_ns_ = std::max(now_ns(), std::min(next_ns_, now + every_ns)) + every_ns;
    }

private:
    void open(const window_options& o) {
        if (try_open(o, true)) return;
        const std::string why = last_glfw_error();
        glfwTerminate();
        throw device_error(
            fmt::format("no window with OpenGL 3.3: {}; LIBGL_ALWAYS_SOFTWARE=1 draws on the CPU", why));
    }
    /// The window is hidden at first, because it may have to be opened a second time.
    bool try_open(const window_options& o, bool two_buffers) {
        glfwDefaultWindowHints();
        glfwWindowHint(GLFW_VISIBLE, GLFW_FALSE);
        glfwWindowHint(GLFW_DOUBLEBUFFER, two_buffers ? GLFW_TRUE : GLFW_FALSE);
        glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
        glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
        glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
        glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
        int width = o.width, height = o.height;
        if (GLFWmonitor* m = glfwGetPrimaryMonitor(); m != nullptr) {  // limited to the size of the screen
            int x = 0, y = 0, w = 0, h = 0;
            glfwGetMonitorWorkarea(m, &x, &y, &w, &h);
            if (w > 0 && h > 0) {
                width = std::min(width, w);
                height = std::min(height, h);
            }
        }
        window_ = glfwCreateWindow(width, height, o.title.c_str(), nullptr, nullptr);
        if (window_ == nullptr) return false;
        glfwMakeContextCurrent(window_);
        // The viewer never synchronises with a display, because a driver may make the GPU itself wait for the
        // display (seen on an H200 with a virtual display: one second per frame, during which no other
        // process could use that GPU). app.cpp limits the frame rate.
        glfwSwapInterval(0);
        return true;
    }

    GLFWwindow* window_ = nullptr;
    std::optional<gl_paint> paint_;
    bool single_ = false;
    u64 used_at_ns_ = 0, figures_at_ns_ = 0;
    std::vector<key_press> keys_;
    std::vector<u8> pixels_;
    u32 pixels_w_ = 0, pixels_h_ = 0;
    bool read_wanted_ = false;
    std::string title_;
};

}  // namespace

std::unique_ptr<window> make_glfw_window(const window_options& options) {
    return std::make_unique<glfw_window>(options);
}

}  // namespace carousel::viewer
