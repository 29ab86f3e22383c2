#pragma once
// A worker: classifies the shape in each picture of a frame. All workers share one set of weights, the asset
// "weights", which one of them has read from the file. Input: carousel.views. Output: carousel.classes.
// Settings: weights, a file of the network (pipelines/shapes.net is one; carousel-train-shapes makes it).

#include <string>

#include "stages/inference/formats.hpp"

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

}  // namespace carousel::stages
