#pragma once
// A stage that runs on a GPU, with its own kernel: reads a picture, writes the picture without its colours.

#include <carousel/cuda.hpp>
#include <carousel/stage.hpp>

#include "kernel.hpp"

class grayscale_stage : public carousel::stage {
public:
    // Called in any process, without a device, also by `carousel validate`: declares the inputs, the outputs,
    // and where the stage can run.
    carousel::description configure(const carousel::configuration& with) override {
        const carousel::image_size size = carousel::require_image(with);
        return {.outputs = {carousel::image_format(size.width, size.height)},
                .device = carousel::runs_on::cuda};
    }

    // Called per frame: enqueues on the frame's stream and returns. The runner records the event after the
    // last kernel.
    void process(carousel::frame& f) override {
        enqueue_mean(carousel::cuda::stream(f), f.input().plane<const carousel::u8>("color"),
                     f.output().plane<carousel::u8>("color"));
    }
};
