#include "spec/pipeline_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "core/io.hpp"
#include "core/user_input.hpp"
#include "ring/topology.hpp"
#include "spec/hosts.hpp"
#include "spec/pipeline_document.hpp"
#include "spec/pipeline_keys.hpp"
#include "spec/special_stages.hpp"

namespace carousel::supervisor {
using nlohmann::json;
namespace {

constexpr std::size_t longest_file = 1U << 20U;

/// Resolves a source's files, mesh and texture: a relative name in the pipeline file is relative to that
/// file, and a relative name on the command line is relative to the working directory. Names of shapes have
/// neither a dot nor a slash.
void place_files(stage_spec& s, const std::string& pipeline_folder) {
    if (!s.inputs.empty()) return;
    for (const char* key : {"mesh", "texture"}) {
        const auto setting = s.settings.find(key);
        if (setting == s.settings.end() || !setting->is_string()) continue;
        const std::string name = *setting;
        const std::filesystem::path path(name);
        if (name.find_first_of("./") == std::string::npos || path.is_absolute()) continue;
        const bool typed = !s.position_of(key).option.empty();
        const std::filesystem::path folder =
            typed ? std::filesystem::path() : std::filesystem::path(pipeline_folder);
        *setting = absolute_path(folder / path).lexically_normal().string();
    }
}

}  // namespace

std::string source_position::text() const {
    if (!option.empty()) return option;
    return line == 0 ? file : fmt::format("{}:{}:{}", file, line, column);
}

void refuse(const source_position& at, const std::string& message) {
    throw config_error(at.text() + ": " + message);
}

const source_position& stage_spec::position_of(const std::string& key) const {
    const auto found = key_at.find(key);
    return found == key_at.end() ? at : found->second;
}

const stage_spec* pipeline::find(const std::string& stage) const noexcept {
    const auto found =
        std::find_if(stages.begin(), stages.end(), [&](const stage_spec& s) { return s.name == stage; });
    return found == stages.end() ? nullptr : &*found;
}

std::string folder_of(const pipeline& p) {
    const std::filesystem::path of_file = absolute_path(p.file).parent_path();
    return (p.folder.empty() ? of_file : of_file / p.folder).lexically_normal().string();
}

bool pipeline::is_spread() const noexcept {
    return std::any_of(stages.begin(), stages.end(),
                       [](const stage_spec& s) { return !s.host.empty() || !s.hosts.empty(); });
}

pipeline parse_pipeline(const std::string& text, const std::string& file,
                        const std::vector<key_override>& overrides) {
    document d = read_document(text, file);
    for (const key_override& o : overrides) apply_override(d, o);
    pipeline p;
    p.file = file;
    p.text = text;
    p.overrides = overrides;
    p.name = std::filesystem::path(file).stem().string();
    read_pipeline_keys(d.pipeline, p);
    p.parameters = d.parameters.keys;
    p.parameters_at = d.parameters.at;
    for (const document_section& s : d.stages) {
        p.stages.push_back(read_stage_keys(s, p));
        place_files(p.stages.back(), folder_of(p));
    }
    for (const auto& [name, section] : d.links) p.links[name] = read_link_keys(section);
    read_hosts(d, p);
    add_recorder(p);
    check_and_wire(p);
    check_hosts(p);
    return p;
}

std::string read_pipeline_text(const std::string& file) {
    const source_position at{file, 0, 0, ""};
    std::error_code failed;
    const auto status = std::filesystem::status(file, failed);
    if (!std::filesystem::exists(status))
        refuse(at, fmt::format("the pipeline file does not exist{}",
                               failed && failed != std::errc::no_such_file_or_directory
                                   ? " exists: " + failed.message()
                                   : std::string("; expected a TOML file")));
    if (std::filesystem::is_directory(status)) refuse(at, "is a folder; expected a pipeline file (TOML)");
    std::optional<std::string> text = read_file(file, longest_file);
    if (!text && errno == EFBIG) refuse(at, "is larger than 1 MiB; expected a pipeline file (TOML)");
    if (!text) refuse(at, fmt::format("can't be read: {}", errno_text(errno)));
    return *std::move(text);
}

json to_json(const std::vector<key_override>& overrides) {
    json all = json::array();
    for (const key_override& o : overrides)
        all.push_back({{"option", o.option},
                       {"path", o.path},
                       {"value", o.value},
                       {"scope", static_cast<u32>(o.where)}});
    return all;
}

std::vector<key_override> overrides_from(const json& saved) {
    std::vector<key_override> all;
    for (const json& o : saved)
        all.push_back({o.at("option"), o.at("path"), o.at("value"),
                       static_cast<key_override::scope>(o.at("scope").get<u8>())});
    return all;
}

pipeline read_pipeline(const std::string& file, const std::vector<key_override>& overrides) {
    return parse_pipeline(read_pipeline_text(file), file, overrides);
}

ring::stage_plan stage_plan_of(const stage_spec& s, const link_spec& output) {
    ring::stage_plan to;
    to.name = s.name;
    to.inputs = s.input_indices;
    to.sampled_inputs = s.sampled_indices;
    to.has_output = s.has_output;
    to.in_flight = s.in_flight.value_or(to.in_flight);
    to.instances = s.instances;
    // If an external program fails while it handles a frame, the frame is not abandoned.
    to.max_attempts = s.is_port() ? 0 : s.max_attempts;
    to.frame_timeout_ns = s.frame_timeout_ns();
    to.latest = s.latest();
    to.optional = s.optional;
    to.skips = s.skips();
    to.every = s.every;
    to.window = output.window.value_or(0);
    to.latest_lease_ns = output.latest_lease_ns();
    return to;
}

}  // namespace carousel::supervisor
