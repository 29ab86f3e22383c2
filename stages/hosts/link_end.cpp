#include "stages/hosts/link_end.hpp"

namespace carousel::hosts {

void link_end::read(const configuration& with, const frame_format& of_frames) {
    where = link_settings::read(with);
    stage = with.stage;
    format = of_frames;
    bytes = payload_bytes(format);
}

void link_end::prepare(environment& with) {
    if (with.instance() > 0)
        throw config_error("the frames of a link cross it in order: give this stage one instance");
    env = &with;
    token = token_file::read(where.token);
}

std::string link_end::file(const std::string& name) const {
    return env->run_directory() + "/" + name + "-" + stage;
}

}  // namespace carousel::hosts
