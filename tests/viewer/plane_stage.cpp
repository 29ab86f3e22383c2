// A stage for tests of pictures: by its inputs and its setting `sink` it is a source with a plane of each
// kind, a middle that makes a picture of another size from its input, or a sink. The value in the upper left
// corner of the float planes is the frame's number. Settings: sink [false]; slope, whether a source makes
// what a middle makes, as its second output [false]; hold_ms, how long a sink or a middle keeps a frame [4].
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include <carousel/cpu.hpp>
#include <carousel/stage.hpp>

namespace carousel::test {

class plane_stage : public carousel::stage {
public:
    carousel::description configure(const carousel::configuration& with) override {
        width_ = with.width;
        height_ = with.height;
        source_ = with.inputs.empty();
        hold_ms_ = with.settings->integer("hold_ms", 4, 0, 60'000);
        sink_ = with.settings->flag("sink", false);
        slope_ = with.settings->flag("slope", false);
        carousel::description d;
        d.device = carousel::runs_on::cpu;
        if (source_)
            d.outputs.emplace_back("scene", frame_format{"test.scene",
                                                         {{"color", element::u8_, {height_, width_, 4}},
                                                          {"depth", element::f32_, {height_, width_}},
                                                          {"raw", element::u16_, {height_, width_}},
                                                          {"nv12", element::u8_, {height_ * 3 / 2, width_}},
                                                          {"radiance", element::f32_, {height_, width_, 3}},
                                                          {"list", element::f32_, {100}}},
                                                         {}});
        if (source_ ? slope_ : !sink_)
            d.outputs.emplace_back(
                "slope",
                frame_format{"test.slope", {{"slope", element::f32_, {height_ / 2, width_ / 2}}}, {}});
        return d;
    }

    void process(carousel::frame& f) override {
        if (source_) {
            make(f);
            if (slope_) slope_of(f, f.output().plane<f32>("depth"), f.output("slope").plane<f32>("slope"));
            return;
        }
        if (!sink_) slope_of(f, f.input().plane<const f32>("depth"), f.output().plane<f32>("slope"));
        cpu::enqueue(
            f, [ms = hold_ms_](cpu::pool&) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); });
    }

private:
    /// A ball before a slanted wall, which has a hole (infinitely far) and a blind spot (NaN).
    void make(carousel::frame& f) {
        f.metadata().set("exposure_ms", 3.5);
        f.metadata().set("camera", "left");
        const auto color = f.output().plane<u8>("color"), nv12 = f.output().plane<u8>("nv12");
        const auto depth = f.output().plane<f32>("depth"), radiance = f.output().plane<f32>("radiance");
        const auto raw = f.output().plane<u16>("raw");
        const u64 width = width_, height = height_, number = f.frame_number();
        cpu::for_each_row(f, height, [=](u64 y) {
            const f64 turn = static_cast<f64>(number % 240) / 240 * 6.283185307179586;
            const f64 side = static_cast<f64>(height),
                      middle_x = static_cast<f64>(width) * (0.5 + 0.25 * std::cos(turn)),
                      middle_y = side * (0.5 + 0.2 * std::sin(turn)), radius = side * 0.25;
            for (u64 x = 0; x < width; ++x) {
                const f64 px = static_cast<f64>(x), py = static_cast<f64>(y);
                const f64 dx = (px - middle_x) / radius, dy = (py - middle_y) / radius,
                          off = dx * dx + dy * dy;
                const bool ball = off < 1;
                f64 far = 4 + 3 * px / static_cast<f64>(width) + py / side;
                if (ball) far = 3 - std::sqrt(1 - off);
                const f64 light = ball ? 0.3 + 0.7 * std::sqrt(1 - off)
                                       : 0.25 + 0.15 * static_cast<f64>((x / 16 + y / 16) % 2);
                color(y, x, 0) = static_cast<u8>(255 * light * (ball ? 0.95 : 0.8));
                color(y, x, 1) = static_cast<u8>(255 * light * (ball ? 0.55 : 0.85));
                color(y, x, 2) = static_cast<u8>(255 * light * (ball ? 0.15 : 0.9));
                color(y, x, 3) = 255;
                for (u64 c = 0; c < 3; ++c)
                    radiance(y, x, c) = static_cast<f32>(ball ? 8 * light : 0.25 * light);
                raw(y, x) = static_cast<u16>(far * 1000);
                nv12(y, x) = static_cast<u8>(16 + 219 * light);
                if (y % 2 == 0 && x % 2 == 0) {
                    nv12(height + y / 2, x) = ball ? 90 : 136;
                    nv12(height + y / 2, x + 1) = ball ? 176 : 122;
                }
                if (!ball && px > 0.8 * static_cast<f64>(width) && py < 0.3 * side)
                    far = std::numeric_limits<f64>::infinity();
                if (!ball && px < 0.08 * static_cast<f64>(width) && py > 0.85 * side)
                    far = std::numeric_limits<f64>::quiet_NaN();
                depth(y, x) = x == 0 && y == 0 ? static_cast<f32>(number) : static_cast<f32>(far);
            }
        });
    }

    void slope_of(carousel::frame& f, const auto& in, const auto& out) {
        const u64 width = width_ / 2, number = f.frame_number();
        cpu::for_each_row(f, height_ / 2, [=](u64 y) {
            for (u64 x = 0; x < width; ++x)
                out(y, x) =
                    x == 0 && y == 0 ? static_cast<f32>(number) : in(2 * y, 2 * x + 1) - in(2 * y, 2 * x);
        });
    }

    u64 width_ = 0, height_ = 0;
    i64 hold_ms_ = 0;
    bool source_ = false, sink_ = false, slope_ = false;
};

}  // namespace carousel::test

int main(int argc, char** argv) { return carousel::stage_main<carousel::test::plane_stage>(argc, argv); }
