#pragma once
// A stage that remembers: writes the moving average of the pictures that it reads. The average is the stage's
// state: it is committed together with the picture, so a successor of a killed process continues from it, and
// the pictures are those of an undisturbed run. Settings: frames, after which a change has mostly arrived in
// the average [8].

#include <carousel/cpu.hpp>
#include <carousel/stage.hpp>

class average_stage : public carousel::stage {
public:
    carousel::description configure(const carousel::configuration& with) override {
        size_ = carousel::require_image(with);
        frames_ = static_cast<carousel::i32>(with.settings->integer("frames", 8, 1, 256));
        // The state is a plane of 16 bits per channel: 256 times the average.
        return {.outputs = {carousel::image_format(size_.width, size_.height)},
                .state = {{"history", carousel::element::u16_, {size_.height, size_.width, 4}}},
                .device = carousel::runs_on::cpu};
    }

    // The previous state is read-only; every element of the next one must be written. A member of this class
    // could not be used instead: it is lost with the process, and frames in flight would be counted twice.
    void process(carousel::frame& f) override {
        const auto in = f.input().plane<const carousel::u8>("color");
        const auto out = f.output().plane<carousel::u8>("color");
        const carousel::frame_state state = f.state();
        const auto before = state.previous().plane<const carousel::u16>("history");
        const auto after = state.next().plane<carousel::u16>("history");
        const bool first = state.first();
        const carousel::u64 width = size_.width;
        const carousel::i32 frames = frames_;
        carousel::cpu::for_each_row(f, size_.height, [=](carousel::u64 y) {
            for (carousel::u64 x = 0; x < width; ++x)
                for (carousel::u64 c = 0; c < 4; ++c) {
                    const carousel::i32 now = in(y, x, c) * 256, average = first ? now : before(y, x, c);
                    const carousel::i32 next = average + (now - average) / frames;
                    after(y, x, c) = static_cast<carousel::u16>(next);
                    out(y, x, c) = static_cast<carousel::u8>((next + 128) / 256);
                }
        });
    }

private:
    carousel::image_size size_;
    carousel::i32 frames_ = 8;
};
