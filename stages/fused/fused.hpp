#pragma once
// The stages vertex and fragment in one process, for comparison with the two separate stages: there is no
// ring between the two halves, and the triangles stay in private memory. Input: carousel.scene. Output:
// carousel.image.rgba8. Assets: mesh, motion. Settings: none.

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
    ring::frame_format triangles_;              ///< format of the payload between the two halves
    std::unique_ptr<device::mapping> between_;  ///< one for all lanes, because the frames of one queue run in
                                                ///< order
};

}  // namespace carousel::stages
