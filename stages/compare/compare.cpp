#include "stages/compare/compare.hpp"

#include <fmt/format.h>

#include "core/log.hpp"

namespace carousel::stages {

description compare::configure(const configuration& with) {
    if (with.inputs.size() != 2)
        throw config_error(fmt::format("stage \"{}\" needs two pictures as inputs; it has {}", with.stage,
                                       with.inputs.size()));
    name_ = with.stage;
    configuration one = with;
    one.inputs = {with.inputs[0]};
    size_ = require_image(one);
    one.inputs = {with.inputs[1]};
    const image_size other = require_image(one);
    if (other.width != size_.width || other.height != size_.height)
        throw config_error(
            fmt::format("stage \"{}\" can't compare the pictures of \"{}\" ({}x{}) and \"{}\" ({}x{}): their "
                        "sizes differ",
                        with.stage, with.inputs[0].stage, size_.width, size_.height, with.inputs[1].stage,
                        other.width, other.height));
    gain_ = static_cast<u32>(with.settings->integer("gain", 8, 1, 255));
    frame_format format = image_format(size_.width, size_.height);
    format.planes.push_back({"rows", ring::element::u32_, {size_.height, 2}, {}, 0});
    return {.outputs = {std::move(format)}, .bit_equal = true};
}

void compare::prepare(environment& env) {
    rows_.clear();
    for (u32 lane = 0; lane < env.in_flight(); ++lane)
        rows_.push_back(env.context().allocate_host(u64{size_.height} * 2 * sizeof(u32)));
}

void compare::process(frame& f) {
    u32* const rows = f.output().plane<u32>("rows").data();
    kernels::compare(f.queue(),
                     {f.input(0).plane<const u8>("color").data(), f.input(1).plane<const u8>("color").data(),
                      f.output().plane<u8>("color").data(), rows, size_.width, size_.height, gain_});
    f.queue().copy(rows_[f.lane()]->data(), rows, u64{size_.height} * 2 * sizeof(u32));
}

void compare::finish(frame& f) {
    if (!f.tombstone_reason().empty() || logged_) return;
    const u32* const rows = reinterpret_cast<const u32*>(rows_[f.lane()]->host_data());
    u64 sum = 0, pixels = 0;
    for (u64 y = 0; y < size_.height; ++y) sum += rows[2 * y], pixels += rows[2 * y + 1];
    if (pixels == 0) return;
    logged_ = true;
    log::warning(
        "frame {}: {} of {} pixels differ, by {:.4f} on average over the picture; later differences are not "
        "logged",
        f.frame_number(), pixels, u64{size_.width} * size_.height,
        static_cast<f64>(sum) / (3.0 * size_.width * size_.height));
}

}  // namespace carousel::stages
