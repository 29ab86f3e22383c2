#pragma once
// Trains the network of shapes on rendered views: the same weights on every machine. Sums are computed in one
// order, in one thread, and only + - * / and square roots are used.

#include <memory>
#include <vector>

#include "kernels/shape_net.hpp"

namespace carousel::stages {

struct pictures {
    std::vector<u8> grey;  ///< u8[count][side][side]
    std::vector<u32> classes;
    [[nodiscard]] u64 count() const noexcept { return classes.size(); }
};
/// Renders `count` views from `first` on, on the CPU.
[[nodiscard]] pictures render_views(u64 first, u64 count);

/// The network has one hidden layer. It is trained by stochastic gradient descent with momentum on a squared
/// hinge loss, and is then rounded to 8 bits.
[[nodiscard]] std::unique_ptr<kernels::net_weights> train(const pictures& from, u32 epochs);
/// Fraction of the pictures that the integer network classifies correctly, 0 to 1.
[[nodiscard]] f64 accuracy(const kernels::net_weights& w, const pictures& of);

}  // namespace carousel::stages
