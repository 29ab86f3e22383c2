// The network on a GPU: one block per picture, one thread per hidden neuron.
#include "kernels/body/shape_net.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/shape_net_entries.hpp"

namespace carousel::kernels::cuda {
namespace {

__global__ void answer_pictures(shape_net_args args) {
    __shared__ u8 hidden[net_hidden];
    __shared__ i32 scores[net_classes];
    const u64 n = blockIdx.x;
    const u32 k = threadIdx.x;
    hidden[k] = body::hidden_value(*args.weights, args.pictures + n * net_inputs, k);
    __syncthreads();
    if (k < net_classes) {
        scores[k] = body::class_score(*args.weights, hidden, k);
        args.scores[n * net_classes + k] = scores[k];
    }
    __syncthreads();
    if (k == 0) args.classes[n] = body::best_class(scores);
}

}  // namespace

void run_shape_net(device::queue& q, const shape_net_args& args) {
    answer_pictures<<<args.batch, net_hidden, 0, stream_of(q)>>>(args);
    check_launch("answer_pictures");
}

}  // namespace carousel::kernels::cuda
