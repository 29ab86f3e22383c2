// The network on the CPU: the pool's threads share the pictures.
#include "kernels/body/shape_net.hpp"

#include "device/cpu/pool.hpp"
#include "kernels/shape_net_entries.hpp"

namespace carousel::kernels::cpu {

void run_shape_net(device::queue& q, const shape_net_args& args) {
    q.submit([args](device::cpu::pool& pool) {
        pool.parallel_for(args.batch, 4, [&](u64 begin, u64 end, unsigned) {
            for (u64 n = begin; n < end; ++n) {
                u8 hidden[net_hidden];
                i32* const scores = args.scores + n * net_classes;
                for (u32 k = 0; k < net_hidden; ++k)
                    hidden[k] = body::hidden_value(*args.weights, args.pictures + n * net_inputs, k);
                for (u32 k = 0; k < net_classes; ++k) scores[k] = body::class_score(*args.weights, hidden, k);
                args.classes[n] = body::best_class(scores);
            }
        });
    });
}

}  // namespace carousel::kernels::cpu
