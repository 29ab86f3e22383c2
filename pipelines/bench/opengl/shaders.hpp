#pragma once
// The peer's shaders: kernels/body/transform.hpp and shade.hpp in GLSL. Matrices are rows; z is used only by
// GL's depth test.

namespace carousel::bench::shaders {

inline constexpr const char* vertex = R"(#version 330 core
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
layout(location = 2) in vec2 texcoord;
uniform vec4 clip[3];   // x, y, w
uniform vec4 model[3];
uniform vec2 depth;     // z = depth.x w + depth.y
out vec3 world_normal;
out vec2 uv;
void main() {
    vec4 p = vec4(position, 1.0);
    float w = dot(clip[2], p);
    gl_Position = vec4(dot(clip[0], p), dot(clip[1], p), depth.x * w + depth.y, w);
    world_normal = vec3(dot(model[0].xyz, normal), dot(model[1].xyz, normal), dot(model[2].xyz, normal));
    uv = texcoord;
}
)";

/// Texture and target are sRGB: the hardware converts.
inline constexpr const char* lit = R"(#version 330 core
in vec3 world_normal;
in vec2 uv;
uniform vec3 light;
uniform vec2 strength;  // ambient, exposure
uniform sampler2D base;
layout(location = 0) out vec4 color;
void main() {
    float lambert = (max(dot(normalize(world_normal), light), 0.0) * (1.0 - strength.x) + strength.x) * strength.y;
    color = vec4(texture(base, uv).rgb * lambert, 1.0);
}
)";

/// Texture and target hold sRGB values that GL treats as linear, so it filters them without conversion, as
/// our kernels do.
inline constexpr const char* lit_same_filter = R"(#version 330 core
in vec3 world_normal;
in vec2 uv;
uniform vec3 light;
uniform vec2 strength;
uniform sampler2D base;
layout(location = 0) out vec4 color;
void main() {
    float lambert = (max(dot(normalize(world_normal), light), 0.0) * (1.0 - strength.x) + strength.x) * strength.y;
    vec3 s = texture(base, uv).rgb;
    vec3 l = clamp(mix(s / 12.92, pow((s + 0.055) / 1.055, vec3(2.4)), step(vec3(0.04045), s)) * lambert, 0.0, 1.0);
    color = vec4(mix(l * 12.92, 1.055 * pow(l, vec3(1.0 / 2.4)) - 0.055, step(vec3(0.0031308), l)), 1.0);
}
)";

inline constexpr const char* ids = R"(#version 330 core
uniform uint first_id;
layout(location = 0) out uint id;
void main() { id = first_id + uint(gl_PrimitiveID); }
)";

}  // namespace carousel::bench::shaders
