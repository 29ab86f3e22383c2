// A stage outside the Carousel tree, against the installed headers: turns a picture into its negative, on the CPU.

#include <stages/sdk/formats.hpp>
#include <carousel/stage.hpp>

#include "device/cpu/pool.hpp"

namespace {
using namespace carousel;

class invert : public carousel::stage {
public:
    carousel::description configure(const carousel::configuration& with) override {
        size_ = carousel::require_image(with);
        alpha_ = with.settings->flag("alpha", false);
        return {.output = carousel::image_format(size_.width, size_.height), .makes = {}, .uses = {}};
    }

    void process(carousel::frame& f) override {
        if (f.queue().kind() != device::device_kind::cpu) throw config_error("invert runs on the CPU: give it device = \"cpu\"");
        const u8* from = f.input(0).plane<u8>(0);
        u8* to = f.output().plane<u8>(0);
        f.queue().submit([from, to, pixels = u64{size_.width} * size_.height, alpha = alpha_](device::cpu::pool& pool) {
            pool.parallel_for(pixels, 4096, [&](u64 begin, u64 end, unsigned) {
                for (u64 k = begin * 4; k < end * 4; ++k) to[k] = (k % 4 == 3 && !alpha) ? from[k] : u8(255 - from[k]);
            });
        });
    }

private:
    carousel::image_size size_;
    bool alpha_ = false;
};
}  // namespace

int main(int argc, char** argv) { return carousel::stage_main<invert>(argc, argv); }
