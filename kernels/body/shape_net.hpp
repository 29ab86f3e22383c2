#pragma once
// The sums of the network that classifies shapes (kernels/shape_net.hpp), one neuron at a time.

#include "kernels/body/fixed_math.hpp"
#include "kernels/shape_net.hpp"

namespace carousel::kernels::body {

/// With 1,024 inputs the largest sum is 1024 * 255 * 127 plus the bias, which is below 2^26.
[[nodiscard]] CAROUSEL_HD_INLINE u8 hidden_value(const net_weights& w, const u8* picture, u32 neuron) {
    i32 sum = w.hidden_bias[neuron];
    for (u32 k = 0; k < net_inputs; ++k)
        sum += static_cast<i32>(w.hidden_weight[neuron][k]) * static_cast<i32>(picture[k]);
    return static_cast<u8>(max_(0, min_(255, sum >> w.shift)));
}

[[nodiscard]] CAROUSEL_HD_INLINE i32 class_score(const net_weights& w, const u8* hidden, u32 which) {
    i32 sum = w.class_bias[which];
    for (u32 k = 0; k < net_hidden; ++k)
        sum += static_cast<i32>(w.class_weight[which][k]) * static_cast<i32>(hidden[k]);
    return sum;
}

[[nodiscard]] CAROUSEL_HD_INLINE u32 best_class(const i32* scores) {
    u32 best = 0;
    for (u32 k = 1; k < net_classes; ++k)
        if (scores[k] > scores[best]) best = k;
    return best;
}

}  // namespace carousel::kernels::body
