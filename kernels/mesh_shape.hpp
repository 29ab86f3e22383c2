#pragma once
// The shapes that can be computed, and their names. This file does not depend on the kernels, so that code
// that needs only the names can include it.

#include <array>

#include "core/types.hpp"

namespace carousel::kernels {

enum class mesh_shape : u8 {
    bumpy_sphere,
    fractal_terrain,
    torus_knots,
    quad_stack,
    triangle_soup,
    quad_stack_front_first,
    long_slivers
};

struct mesh_shape_row {
    mesh_shape shape;
    const char* name;
};
inline constexpr std::array<mesh_shape_row, 7> mesh_shapes{{
    {mesh_shape::bumpy_sphere, "bumpy-sphere"},
    {mesh_shape::fractal_terrain, "fractal-terrain"},
    {mesh_shape::torus_knots, "torus-knots"},
    {mesh_shape::quad_stack, "quad-stack"},        // full-screen quads, drawn from back to front, which is
                                                   // the worst case of overdraw
    {mesh_shape::triangle_soup, "triangle-soup"},  // triangles of random sizes
    {mesh_shape::quad_stack_front_first, "quad-stack-front-first"},  // the same quads, drawn from front to
                                                                     // back
    {mesh_shape::long_slivers, "long-slivers"},
}};

}  // namespace carousel::kernels
