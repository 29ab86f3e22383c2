#pragma once
// Vertex and fragment in one process, to compare with the two: the triangles stay in private memory, no ring
// lies between. Input: carousel.scene. Output: carousel.image.rgba8. Asset: mesh. Settings: none.

#include "stages/fragment/fragment.hpp"
#include "stages/vertex/vertex.hpp"

namespace carousel::stages {

class fused : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;

private:
    vertex vertex_;
    fragment fragment_;
    ring::frame_format triangles_;              ///< of the payload between the two
    std::unique_ptr<device::mapping> between_;  ///< one for all lanes: frames of one queue run in order
};

}  // namespace carousel::stages
