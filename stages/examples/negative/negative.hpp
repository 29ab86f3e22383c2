#pragma once
// A stage that runs on the CPU: reads a picture, writes the same picture with inverted colours. Settings:
// alpha, whether the fourth channel is inverted as well [false].

#include <carousel/cpu.hpp>
#include <carousel/stage.hpp>

class negative_stage : public carousel::stage {
public:
    // Called in any process, without a device, also by `carousel validate`: declares the inputs, the outputs,
    // and where the stage can run.
    carousel::description configure(const carousel::configuration& with) override {
        size_ = carousel::require_image(with);
        alpha_ = with.settings->flag("alpha", false);
        return {.outputs = {carousel::image_format(size_.width, size_.height)},
                .device = carousel::runs_on::cpu};
    }

    // Called per frame: enqueues the work and returns. The lambda runs after this call has returned, so it
    // captures values and no references.
    void process(carousel::frame& f) override {
        const auto in = f.input().plane<const carousel::u8>("color");
        const auto out = f.output().plane<carousel::u8>("color");
        const carousel::u64 width = size_.width, channels = alpha_ ? 4 : 3;
        carousel::cpu::for_each_row(f, size_.height, [=](carousel::u64 y) {
            for (carousel::u64 x = 0; x < width; ++x)
                for (carousel::u64 c = 0; c < 4; ++c) {
                    const carousel::u8 value = in(y, x, c);
                    out(y, x, c) = c < channels ? static_cast<carousel::u8>(255 - value) : value;
                }
        });
    }

private:
    carousel::image_size size_;
    bool alpha_ = false;
};
