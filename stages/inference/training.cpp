#include "stages/inference/training.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/body/shape_net.hpp"
#include "stages/inference/views.hpp"

namespace carousel::stages {
namespace {

using kernels::net_classes, kernels::net_hidden, kernels::net_inputs, kernels::net_weights;

/// Pseudo-random numbers (splitmix64), the same on every machine.
class numbers {
public:
    u64 next() {
        state_ += 0x9E37'79B9'7F4A'7C15;
        u64 x = state_;
        x = (x ^ x >> 30U) * 0xBF58'476D'1CE4'E5B9;
        x = (x ^ x >> 27U) * 0x94D0'49BB'1331'11EB;
        return x ^ x >> 31U;
    }
    f32 around_zero(f32 most) {
        return most * (static_cast<f32>(next() >> 40U) / static_cast<f32>(1U << 23U) - 1.0F);
    }

private:
    u64 state_ = 1;
};

/// Real-valued weights, and the last change of each weight (momentum).
struct layer {
    layer(u32 from, u32 to, numbers& random)
        : inputs(from), weight(u64{from} * to), bias(to), moved(weight.size()), bias_moved(to) {
        for (f32& w : weight) w = random.around_zero(1.0F / std::sqrt(static_cast<f32>(from)));
    }
    [[nodiscard]] f32 sum(u32 k, const f32* in) const {
        f32 s = bias[k];
        for (u32 i = 0; i < inputs; ++i) s += weight[u64{k} * inputs + i] * in[i];
        return s;
    }
    void learn(u32 k, const f32* in, f32 slope, f32 rate) {
        constexpr f32 momentum = 0.9F, decay = 1e-4F;
        for (u32 i = 0; i < inputs; ++i) {
            const u64 at = u64{k} * inputs + i;
            moved[at] = momentum * moved[at] - rate * (slope * in[i] + decay * weight[at]);
            weight[at] += moved[at];
        }
        bias_moved[k] = momentum * bias_moved[k] - rate * slope;
        bias[k] += bias_moved[k];
    }
    u32 inputs;
    std::vector<f32> weight, bias, moved, bias_moved;
};

struct network {
    explicit network(numbers& random)
        : first(net_inputs, net_hidden, random), second(net_hidden, net_classes, random) {}
    void hide(const f32* in, f32* hidden) const {
        for (u32 k = 0; k < net_hidden; ++k) hidden[k] = std::max(0.0F, first.sum(k, in));
    }
    void learn(const f32* in, u32 right, f32 rate) {
        f32 hidden[net_hidden], slope[net_classes], back[net_hidden] = {};
        hide(in, hidden);
        for (u32 k = 0; k < net_classes; ++k) {
            const f32 wanted = k == right ? 1.0F : -1.0F, short_of = 1.0F - wanted * second.sum(k, hidden);
            slope[k] = short_of > 0 ? -wanted * short_of : 0.0F;
            for (u32 i = 0; i < net_hidden; ++i) back[i] += slope[k] * second.weight[u64{k} * net_hidden + i];
        }
        for (u32 k = 0; k < net_classes; ++k)
            if (slope[k] != 0) second.learn(k, hidden, slope[k], rate);
        for (u32 i = 0; i < net_hidden; ++i)
            if (hidden[i] > 0 && back[i] != 0) first.learn(i, in, back[i], rate);
    }
    layer first, second;
};

f32 largest(const std::vector<f32>& of) {
    f32 most = 1e-9F;
    for (const f32 w : of) most = std::max(most, std::abs(w));
    return most;
}
i32 rounded(f32 v) { return static_cast<i32>(v < 0 ? v - 0.5F : v + 0.5F); }

/// Converts the weights to integers. A hidden value of 255 then corresponds to `brightest`, the largest
/// hidden value that any training picture causes.
std::unique_ptr<net_weights> quantised(const network& n, f32 brightest) {
    auto out = std::make_unique<net_weights>();
    const f32 step = largest(n.first.weight) / 127, step2 = largest(n.second.weight) / 127;
    f32 scale = 1.0F;
    while (scale < brightest / step) scale *= 2, ++out->shift;
    const f32 hidden_scale = 255.0F / (step * scale);
    for (u32 k = 0; k < net_hidden; ++k) {
        out->hidden_bias[k] = rounded(n.first.bias[k] * 255.0F / step);
        for (u32 i = 0; i < net_inputs; ++i)
            out->hidden_weight[k][i] =
                static_cast<i8>(rounded(n.first.weight[u64{k} * net_inputs + i] / step));
    }
    for (u32 k = 0; k < net_classes; ++k) {
        out->class_bias[k] = rounded(n.second.bias[k] * hidden_scale / step2);
        for (u32 i = 0; i < net_hidden; ++i)
            out->class_weight[k][i] =
                static_cast<i8>(rounded(n.second.weight[u64{k} * net_hidden + i] / step2));
    }
    return out;
}

}  // namespace

pictures render_views(u64 first, u64 count) {
    const auto context = device::open({device::device_kind::cpu, "", 0});
    const auto queue = context->make_queue();
    view_renderer renderer(*context, *queue);
    pictures all{std::vector<u8>(count * net_inputs), std::vector<u32>(count)};
    for (u64 k = 0; k < count; ++k) {
        renderer.render(*queue, first + k, all.grey.data() + k * net_inputs);
        all.classes[k] = class_of_view(first + k);
    }
    queue->drain();
    return all;
}

std::unique_ptr<net_weights> train(const pictures& from, u32 epochs) {
    numbers random;
    network n(random);
    std::vector<u32> order(from.count());
    for (u32 k = 0; k < order.size(); ++k) order[k] = k;
    std::vector<f32> in(net_inputs);
    const auto load = [&](u64 k) {
        for (u32 i = 0; i < net_inputs; ++i) in[i] = static_cast<f32>(from.grey[k * net_inputs + i]) / 255.0F;
    };
    for (u32 epoch = 0; epoch < epochs; ++epoch) {
        for (u64 k = order.size() - 1; k > 0; --k) std::swap(order[k], order[random.next() % (k + 1)]);
        const f32 rate = 0.0015F * static_cast<f32>(epochs - epoch) / static_cast<f32>(epochs);
        for (const u32 k : order) {
            load(k);
            n.learn(in.data(), from.classes[k], rate);
        }
    }
    f32 hidden[net_hidden], brightest = 1e-9F;
    for (u64 k = 0; k < from.count(); ++k) {
        load(k);
        n.hide(in.data(), hidden);
        brightest = std::max(brightest, *std::max_element(hidden, hidden + net_hidden));
    }
    return quantised(n, brightest);
}

f64 accuracy(const net_weights& w, const pictures& of) {
    u64 right = 0;
    for (u64 n = 0; n < of.count(); ++n) {
        u8 hidden[net_hidden];
        i32 scores[net_classes];
        for (u32 k = 0; k < net_hidden; ++k)
            hidden[k] = kernels::body::hidden_value(w, of.grey.data() + n * net_inputs, k);
        for (u32 k = 0; k < net_classes; ++k) scores[k] = kernels::body::class_score(w, hidden, k);
        right += kernels::body::best_class(scores) == of.classes[n] ? 1U : 0U;
    }
    return of.count() == 0 ? 0 : static_cast<f64>(right) / static_cast<f64>(of.count());
}

}  // namespace carousel::stages
