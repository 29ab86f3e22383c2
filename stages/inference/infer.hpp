#pragma once
// A worker: classifies the shape in each picture of a frame. All workers share one set of weights, the asset
// "weights", which one of them has read from the file. Input: carousel.views. Output: carousel.classes.
// Settings: weights, the network's file, for example pipelines/shapes.net; carousel-train-shapes makes such
// files.

#include <memory>
#include <string>

#include "kernels/shape_net.hpp"
#include "stages/inference/views.hpp"

namespace carousel::stages {

class infer : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void load_asset(std::string_view name, std::span<std::byte> memory, environment& env) override;
    void prepare(environment& env) override;
    void process(frame& f) override;

private:
    std::string file_;
    u64 batch_ = 0;
    const kernels::net_weights* weights_ = nullptr;
};

// The file of a network: the bytes of net_weights, little-endian.

/// Throws config_error if there is no such file, or if it is not a network of the expected shape.
[[nodiscard]] std::unique_ptr<kernels::net_weights> read_weights(const std::string& file);
/// Throws output_error with the cause.
void write_weights(const std::string& file, const kernels::net_weights& w);

}  // namespace carousel::stages
