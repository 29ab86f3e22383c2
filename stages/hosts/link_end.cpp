#include "stages/hosts/link_end.hpp"

#include <algorithm>

#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"

namespace carousel::hosts {

void link_end::read(const configuration& with, const frame_format& of_frames) {
    where = link_settings::read(with);
    stage = with.stage;
    format = of_frames;
    bytes = payload_bytes(format);
}

void link_end::prepare(environment& with) {
    if (with.instance() > 0) throw config_error("a link sends frames in order: give this stage one instance");
    env = &with;
    token = token_file::read(where.token);
}

std::string link_end::file(const std::string& name) const {
    return env->runtime_directory() + "/" + name + "-" + stage;
}

// A receiver forwards frames made by others, and its stream ends when the sender ends it
// (receive_stage::configure). The program's name would not identify it: the program may be a wrapper or a
// link.
bool link_end::is_one_of_several_receivers() const {
    using nlohmann::json;
    const json all = read_json_file(env->runtime_directory() + "/pipeline.json");
    const auto receives = [](const json& s) {
        bool ends = false, forwards = false;
        return read_member(s, "ends", ends) && ends && read_member(s, "forwards_frames", forwards) &&
               forwards;
    };
    if (!all.is_object() || !all.value("pipeline", json()).is_object()) return true;
    const json stages = all["pipeline"].value("stages", json::array());
    return std::count_if(stages.begin(), stages.end(), receives) != 1;
}

}  // namespace carousel::hosts
