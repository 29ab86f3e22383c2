#pragma once
// Trains the network of shapes on rendered views: the same weights on every machine. Sums run in one order,
// in one thread, and nothing but + - * / and square roots is taken of a number.

#include <memory>
#include <vector>

#include "kernels/shape_net.hpp"

namespace carousel::stages {

struct pictures {
    std::vector<u8> grey;  ///< u8[count][side][side]
    std::vector<u32> classes;
    [[nodiscard]] u64 count() const noexcept { return classes.size(); }
};
/// The views from `first` on, rendered on the CPU.
[[nodiscard]] pictures render_views(u64 first, u64 count);

/// One hidden layer; stochastic gradient descent with momentum on a squared hinge; then rounded to 8 bits.
[[nodiscard]] std::unique_ptr<kernels::net_weights> train(const pictures& from, u32 epochs);
/// The share that the network of whole numbers gets right.
[[nodiscard]] f64 accuracy(const kernels::net_weights& w, const pictures& of);

}  // namespace carousel::stages
