#pragma once
// Compares two pictures of the same frame number, for example those of a run and those of a recording.
// Inputs: two times carousel.image.rgba8 of one size. Output: carousel.image.rgba8, black where the pictures
// are equal, with the plane `rows` u32[h][2]: for each row the sum of the absolute differences and the number
// of pixels that differ.
//   gain  factor of the differences in the picture [8]
// Each process of the stage logs the first frame that differs.

#include <carousel/stage.hpp>

#include "kernels/looks.hpp"

namespace carousel::stages {

class compare : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(frame& f) override;

private:
    std::string name_;
    image_size size_;
    u32 gain_ = 8;
    std::vector<std::unique_ptr<device::mapping>> rows_;  ///< of each lane, readable by the CPU
    bool logged_ = false;
};

}  // namespace carousel::stages
