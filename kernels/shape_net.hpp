#pragma once
// A small network that classifies the shape in a small picture. It uses only integer arithmetic, so its
// result is the same bit for bit on every device and for every batch size.
//   picture u8[side][side] -> hidden u8[hidden] -> score i32[classes] -> the class with the highest score
//   (the first one if several are equal)

#include "core/types.hpp"
#include "device/backend.hpp"

namespace carousel::kernels {

inline constexpr u32 net_side = 32, net_inputs = net_side * net_side, net_hidden = 32, net_classes = 6;

/// The layout in the file and in the asset.
struct net_weights {
    static constexpr u32 known_magic = 0x544E'5343, known_version = 1;  ///< "CSNT"
    u32 magic = known_magic, version = known_version;
    u32 inputs = net_inputs, hidden = net_hidden, classes = net_classes;
    u32 shift = 0;  ///< number of bits by which a hidden sum is shifted right; the result is then limited to
                    ///< 0..255
    i32 hidden_bias[net_hidden] = {};
    i32 class_bias[net_classes] = {};
    u32 reserved[2] = {};
    i8 hidden_weight[net_hidden][net_inputs] = {};
    i8 class_weight[net_classes][net_hidden] = {};
};
static_assert(sizeof(net_weights) ==
              24 + 4 * (net_hidden + net_classes + 2) + net_hidden * (net_inputs + net_classes));

struct shape_net_args {
    const net_weights* weights = nullptr;
    const u8* pictures = nullptr;  ///< u8[batch][side][side]
    u32 batch = 0;
    u32* classes = nullptr;  ///< u32[batch]
    i32* scores = nullptr;   ///< i32[batch][classes]
};
/// Classifies `batch` pictures. Pointers are valid on the queue's device. Throws config_error for a batch of
/// 0.
void run_shape_net(device::queue& q, const shape_net_args& args);

// run_shape_net() of each backend.

namespace cpu {
void run_shape_net(device::queue& q, const shape_net_args& args);
}
namespace cuda {
void run_shape_net(device::queue& q, const shape_net_args& args);
}

}  // namespace carousel::kernels
