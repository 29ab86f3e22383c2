#include <imgui.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/clock.hpp"
#include "viewer/window/window.hpp"

namespace carousel::viewer {
namespace {

class null_window final : public window {
public:
    explicit null_window(const window_options& o) : width_(o.width), height_(o.height) {}
    bool begin_frame() override {
        ImGuiIO& io = ImGui::GetIO();
        if (!io.Fonts->IsBuilt()) {
            unsigned char* pixels = nullptr;
            int w = 0, h = 0;
            io.Fonts->GetTexDataAsRGBA32(&pixels, &w, &h);
        }
        io.DisplaySize = ImVec2(static_cast<float>(width_), static_cast<float>(height_));
        io.DeltaTime = 1.0F / 60.0F;
        io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;  // avoids 32-bit indices
        ImGui::NewFrame();
        return true;
    }
    void end_frame(ImDrawData*, u64) override {}
    [[nodiscard]] std::vector<key_press> take_keys() override { return {}; }
    [[nodiscard]] bool has_gl() const noexcept override { return false; }
    [[nodiscard]] f32 scale() const noexcept override { return 1; }
    [[nodiscard]] std::vector<u8> read_pixels(u32&, u32&) override { return {}; }
    [[nodiscard]] std::string description() const override { return "no window (--null)"; }
    void size(i32& width, i32& height) const override {
        width = width_;
        height = height_;
    }

private:
    i32 width_, height_;
};

}  // namespace

void window::pace(u64 every_ns) {
    const u64 now = now_ns();
    if (now < next_ns_) std::this_thread::sleep_for(std::chrono::nanoseconds(next_ns_ - now));
    next_ns_ = std::max(next_ns_ + every_ns, now);
}

std::unique_ptr<window> make_null_window(const window_options& options) {
    return std::make_unique<null_window>(options);
}

}  // namespace carousel::viewer
