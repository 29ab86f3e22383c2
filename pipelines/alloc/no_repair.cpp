// A build without extras has no spaces.
#include "core/errors.hpp"
#include "pipelines/alloc/repair.hpp"

namespace carousel::alloc {

int repair(int) {
    throw config_error(
        "--repair: this build does not support spaces; configure it with -DCAROUSEL_EXTRAS=ON");
}

}  // namespace carousel::alloc
