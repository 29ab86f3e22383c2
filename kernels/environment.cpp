// The tables of the procedural sky.
#include "kernels/environment.hpp"

#include "kernels/environment_tables.hpp"

namespace carousel::kernels {

void make_environment(environment& to) {
    fill_environment(to, [](body::vec3 d, u32) { return body::sky_radiance(d); });
}

}  // namespace carousel::kernels
