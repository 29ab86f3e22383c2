// The network that classifies shapes, on the device of this test, compared with sums that are computed in
// another way.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/shape_net.hpp"
#include "tests/kernels/backend.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::testing;

namespace {

struct answer {
    std::vector<u32> classes;
    std::vector<i32> scores;
    bool operator==(const answer&) const = default;
};

class noise {
public:
    u32 below(u32 n) {
        return static_cast<u32>((state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL) >> 33U) %
               n;
    }

private:
    u64 state_ = 7;
};

std::unique_ptr<net_weights> some_weights() {
    noise n;
    auto w = std::make_unique<net_weights>();
    w->shift = 9;
    for (u32 k = 0; k < net_hidden; ++k) {
        w->hidden_bias[k] = static_cast<i32>(n.below(200'000)) - 100'000;
        for (i8& each : w->hidden_weight[k]) each = static_cast<i8>(static_cast<i32>(n.below(256)) - 128);
    }
    for (u32 k = 0; k < net_classes; ++k) {
        w->class_bias[k] = static_cast<i32>(n.below(2000)) - 1000;
        for (i8& each : w->class_weight[k]) each = static_cast<i8>(static_cast<i32>(n.below(256)) - 128);
    }
    return w;
}

std::vector<u8> some_pictures(u32 count) {
    noise n;
    std::vector<u8> out(u64{count} * net_inputs);
    for (u8& each : out) each = static_cast<u8>(n.below(256));
    std::fill_n(out.begin(), net_inputs, u8{255});  // the largest sums
    return out;
}

answer reference(const net_weights& w, const std::vector<u8>& pictures) {
    answer a;
    for (u64 n = 0; n < pictures.size() / net_inputs; ++n) {
        i64 hidden[net_hidden], best = -(i64{1} << 62U);
        for (u32 k = 0; k < net_hidden; ++k) {
            i64 sum = 0;
            for (u32 i = net_inputs; i-- > 0;)
                sum += i64{w.hidden_weight[k][i]} * pictures[n * net_inputs + i];
            sum += w.hidden_bias[k];
            hidden[k] = sum < 0 ? 0 : std::min<i64>(255, sum / (i64{1} << w.shift));
        }
        a.classes.push_back(0);
        for (u32 k = 0; k < net_classes; ++k) {
            i64 sum = w.class_bias[k];
            for (u32 i = 0; i < net_hidden; ++i) sum += i64{w.class_weight[k][i]} * hidden[i];
            a.scores.push_back(static_cast<i32>(sum));
            if (sum > best) best = sum, a.classes.back() = k;
        }
    }
    return a;
}

/// In batches of this size.
answer on_device(backend& on, const net_weights& w, const std::vector<u8>& pictures, u32 batch) {
    const u32 count = static_cast<u32>(pictures.size() / net_inputs);
    const auto weights = on.context->allocate(sizeof w), grey = on.context->allocate(pictures.size());
    const auto classes = on.context->allocate(count * sizeof(u32)),
               scores = on.context->allocate(count * net_classes * sizeof(i32));
    on.queue->copy(weights->data(), &w, sizeof w);
    on.queue->copy(grey->data(), pictures.data(), pictures.size());
    for (u32 first = 0; first < count; first += batch)
        run_shape_net(*on.queue,
                      {reinterpret_cast<const net_weights*>(weights->data()),
                       reinterpret_cast<const u8*>(grey->data()) + u64{first} * net_inputs,
                       std::min(batch, count - first), reinterpret_cast<u32*>(classes->data()) + first,
                       reinterpret_cast<i32*>(scores->data()) + u64{first} * net_classes});
    answer a{std::vector<u32>(count), std::vector<i32>(u64{count} * net_classes)};
    on.queue->copy(a.classes.data(), classes->data(), classes->bytes());
    on.queue->copy(a.scores.data(), scores->data(), scores->bytes());
    on.queue->drain();
    return a;
}

}  // namespace

TEST_CASE("The network's answers equal directly computed sums, for any batch size") {
    CAROUSEL_NEEDS_DEVICE();
    const auto w = some_weights();
    const auto pictures = some_pictures(37);
    const answer wanted = reference(*w, pictures);
    CHECK(std::count(wanted.classes.begin(), wanted.classes.end(), wanted.classes[1]) < 37);  // they differ
    for (const u32 batch : {1U, 5U, 8U, 37U}) {
        CAPTURE(batch);
        CHECK(on_device(on, *w, pictures, batch) == wanted);
    }
    CHECK_THROWS_AS(run_shape_net(*on.queue, {}), config_error);
}
