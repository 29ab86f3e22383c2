#pragma once
// The formats that the stages of pipelines/inference.toml pass to each other. Frame n contains the views b n
// to b n + b - 1, where b is the number of views per batch. A batch of 0 matches any batch (for
// require_format).

#include <carousel/stage.hpp>

#include "kernels/shape_net.hpp"

namespace carousel::stages {

[[nodiscard]] inline ring::frame_format views_format(u64 batch) {
    return {
        "carousel.views", {{"grey", ring::element::u8_, {batch, kernels::net_side, kernels::net_side}}}, {}};
}
[[nodiscard]] inline ring::frame_format classes_format(u64 batch) {
    return {"carousel.classes",
            {{"class", ring::element::u32_, {batch}},
             {"score", ring::element::i32_, {batch, kernels::net_classes}}},
            {}};
}

}  // namespace carousel::stages
