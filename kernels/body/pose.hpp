#pragma once
// The pose of a moving mesh at a time: keys of animations, matrices of nodes, morph weights. In double
// precision until the matrices are stored. Formulas: the glTF 2.0 specification, appendix C.

#include "kernels/body/arc_tangent.hpp"
#include "kernels/motion_layout.hpp"

namespace carousel::kernels::body {

/// The key before a time, and how far the time is on the way to the next key, 0..1. Before the first key and
/// after the last one the value is constant: then `length` is 0.
struct key_place {
    u32 key;
    f64 s, length;  ///< `length`: seconds between the two keys
};

[[nodiscard]] CAROUSEL_HD_INLINE key_place find_key(const f32* times, u32 count, f64 time) {
    u32 from = 0, to = count;  // the first key after the time is in [from, to]
    while (from < to) {
        const u32 middle = (from + to) / 2;
        if (f64{times[middle]} > time) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    if (from == 0) return {0, 0.0, 0.0};
    if (from == count) return {count - 1, 0.0, 0.0};
    const f64 first = times[from - 1], length = f64{times[from]} - first;
    return {from - 1, (time - first) / length, length};
}

/// A channel whose ranges lie within the keys of the block.
struct bounded_channel {
    const f32* times;
    const f32* values;
    u32 count, width, stride, offset;  ///< numbers per key; place of the value in a key
    key_interpolation between;
};
[[nodiscard]] CAROUSEL_HD_INLINE bounded_channel channel_of(const motion_view& m, u32 number) {
    const motion_channel& c = m.channels[number];
    const bool cubic = c.between == key_interpolation::cubic;
    const u32 stride = cubic ? 3 * c.width : c.width;
    const bool fits = c.count > 0 && c.width > 0 && u64{c.first_time} + c.count <= m.counts.keys &&
                      u64{c.first_value} + u64{c.count} * stride <= m.counts.keys;
    return {m.keys + c.first_time,
            m.keys + c.first_value,
            fits ? c.count : 0U,
            c.width,
            stride,
            cubic ? c.width : 0U,
            c.between};
}

/// Number `k` of the channel's value, not for rotations with linear interpolation.
[[nodiscard]] CAROUSEL_HD_INLINE f64 value_at(const bounded_channel& c, const key_place& at, u32 k) {
    const f32* const a = c.values + u64{at.key} * c.stride + c.offset + k;
    if (at.length == 0.0 || c.between == key_interpolation::step) return a[0];
    const f32* const b = a + c.stride;
    if (c.between == key_interpolation::linear) return f64{a[0]} + at.s * (f64{b[0]} - f64{a[0]});
    const f64 s = at.s, s2 = s * s, s3 = s2 * s;
    const f64 out_tangent = *(a + c.width), in_tangent = *(b - c.width);
    return (2.0 * s3 - 3.0 * s2 + 1.0) * f64{a[0]} + at.length * (s3 - 2.0 * s2 + s) * out_tangent +
           (3.0 * s2 - 2.0 * s3) * f64{b[0]} + at.length * (s3 - s2) * in_tangent;
}

/// Spherical linear interpolation of unit quaternions along the shorter arc, with an error of about 1e-10.
/// The angle follows from the lengths of the chords, which are exact also for nearly equal rotations.
CAROUSEL_HD_INLINE void interpolate_rotation(const f32* a, const f32* b, f64 s, f64* out) {
    f64 cosine = 0.0;
    for (u32 k = 0; k < 4; ++k) cosine += f64{a[k]} * f64{b[k]};
    const f64 side = cosine < 0.0 ? -1.0 : 1.0;
    f64 apart = 0.0, together = 0.0;
    for (u32 k = 0; k < 4; ++k) {
        const f64 x = f64{a[k]}, y = side * f64{b[k]};
        apart += (x - y) * (x - y);
        together += (x + y) * (x + y);
    }
    // `apart` exceeds `together` only by rounding.
    const f64 ratio = sqrt_(apart) / sqrt_(together > 0.0 ? together : 1.0);
    const f64 angle = 2.0 * arc_tangent(ratio < 1.0 ? ratio : 1.0);
    const f64 sine = sine_and_cosine(angle).sine;
    const bool near = !(sine > 1e-6);
    const f64 from = near ? 1.0 - s : sine_and_cosine((1.0 - s) * angle).sine / sine;
    const f64 to = near ? s : sine_and_cosine(s * angle).sine / sine;
    for (u32 k = 0; k < 4; ++k) out[k] = from * f64{a[k]} + side * to * f64{b[k]};
}

/// The value of a property of a node: `width` numbers from its channel, otherwise from the node.
CAROUSEL_HD_INLINE void property_of(const motion_view& m, u32 number, const f64* constant, u32 width,
                                    f64 time, f64* out) {
    for (u32 k = 0; k < width; ++k) out[k] = constant[k];
    if (number >= m.counts.channels) return;
    const bounded_channel c = channel_of(m, number);
    if (c.count == 0 || c.width != width) return;
    const key_place at = find_key(c.times, c.count, time);
    if (width == 4 && c.between == key_interpolation::linear && at.length > 0.0) {
        const f32* const a = c.values + u64{at.key} * c.stride;
        interpolate_rotation(a, a + c.stride, at.s, out);
        return;
    }
    for (u32 k = 0; k < width; ++k) out[k] = value_at(c, at, k);
}

/// out = outer * inner; all are row-major 3 x 4. `out` may be one of the others.
CAROUSEL_HD_INLINE void multiply(const f64* outer, const f64* inner, f64* out) {
    f64 product[12];
    for (u32 r = 0; r < 3; ++r) {
        for (u32 c = 0; c < 4; ++c) {
            product[4 * r + c] = outer[4 * r] * inner[c] + outer[4 * r + 1] * inner[4 + c] +
                                 outer[4 * r + 2] * inner[8 + c] + (c == 3 ? outer[4 * r + 3] : 0.0);
        }
    }
    for (u32 i = 0; i < 12; ++i) out[i] = product[i];
}

/// The transform of a node to the space of its parent.
CAROUSEL_HD_INLINE void local_matrix(const motion_view& m, u32 number, f64 time, f64* out) {
    const motion_node& node = m.nodes[number];
    if (node.has_matrix != 0) {
        for (u32 i = 0; i < 12; ++i) out[i] = node.values[i];
        return;
    }
    f64 t[3], q[4], s[3];
    property_of(m, node.channel[0], node.values, 3, time, t);
    property_of(m, node.channel[1], node.values + 3, 4, time, q);
    property_of(m, node.channel[2], node.values + 7, 3, time, s);
    const f64 length = sqrt_(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    const bool valid = length > 0.0;
    const f64 x = valid ? q[0] / length : 0.0, y = valid ? q[1] / length : 0.0,
              z = valid ? q[2] / length : 0.0, w = valid ? q[3] / length : 1.0;
    const f64 turn[9] = {
        1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w),       2.0 * (x * z + y * w),
        2.0 * (x * y + z * w),       1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w),
        2.0 * (x * z - y * w),       2.0 * (y * z + x * w),       1.0 - 2.0 * (x * x + y * y)};
    for (u32 r = 0; r < 3; ++r) {
        for (u32 c = 0; c < 3; ++c) out[4 * r + c] = turn[3 * r + c] * s[c];
        out[4 * r + 3] = t[r];
    }
}

/// Matrix `i` of the pose. `locals`: local_matrix() of all nodes.
CAROUSEL_HD_INLINE void pose_matrix(const motion_view& m, const f64* locals, u32 i, f32* out) {
    const motion_matrix& matrix = m.matrices[i];
    f64 product[12];
    for (u32 k = 0; k < 12; ++k) product[k] = matrix.inner[k];
    for (u32 node = matrix.node; node < m.counts.nodes;) {
        multiply(locals + u64{node} * 12, product, product);
        const u32 parent = m.nodes[node].parent;
        node = parent < node ? parent : no_motion_index;
    }
    for (u32 k = 0; k < 12; ++k) out[k] = static_cast<f32>(product[k]);
}

/// Morph weight `i` of the pose.
[[nodiscard]] CAROUSEL_HD_INLINE f32 pose_weight(const motion_view& m, u32 i, f64 time) {
    const motion_weight& weight = m.weights[i];
    if (weight.channel >= m.counts.channels) return weight.constant;
    const bounded_channel c = channel_of(m, weight.channel);
    if (c.count == 0 || weight.component >= c.width) return weight.constant;
    return static_cast<f32>(value_at(c, find_key(c.times, c.count, time), weight.component));
}

}  // namespace carousel::kernels::body
