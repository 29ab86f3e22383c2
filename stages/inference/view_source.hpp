#pragma once
// The source: views of the renderer's shapes, `batch` of them per frame. Runs on the CPU. Output:
// carousel.views. Settings: batch [8].

#include "stages/inference/formats.hpp"
#include "stages/inference/views.hpp"

namespace carousel::stages {

class view_source : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override {
        require_no_inputs(with);
        batch_ = static_cast<u64>(with.settings->integer("batch", 8, 1, 1024));
        return {.outputs = {views_format(batch_)}, .device = runs_on::cpu};
    }
    void prepare(environment& env) override {
        renderer_ = std::make_unique<view_renderer>(env.context(), env.queue());
    }
    void process(frame& f) override {
        u8* const grey = f.output().plane<u8>("grey").data();
        for (u64 k = 0; k < batch_; ++k)
            renderer_->render(f.queue(), f.frame_number() * batch_ + k, grey + k * kernels::net_inputs);
    }

private:
    u64 batch_ = 0;
    std::unique_ptr<view_renderer> renderer_;  ///< one for all lanes: frames of one queue run in order
};

}  // namespace carousel::stages
