#pragma once
// A custom stage: reads a picture, writes the sharpened picture. Start from this file.
// Settings: strength, the factor by which the difference from the surrounding pixels is multiplied before
// this difference is added [0.5].

#include <carousel/stage.hpp>

#include "kernels/kernels.hpp"

namespace carousel::stages {

class sharpen : public stage {
public:
    description configure(const configuration& with) override {
        size_ = require_image(with);
        strength_ = static_cast<u32>(with.settings->number("strength", 0.5, 0.0, 4.0) * 256.0);
        return {.outputs = {image_format(size_.width, size_.height)}, .bit_equal = true};
    }

    void process(frame& f) override {
        const u8* in = f.input().plane<const u8>("color").data();
        u8* out = f.output().plane<u8>("color").data();
        kernels::sharpen(f.queue(), {in, out, size_.width, size_.height, strength_});
    }

private:
    image_size size_;
    u32 strength_ = 0;
};

}  // namespace carousel::stages
