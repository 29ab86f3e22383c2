#include "spec/describe.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "core/resource_limit.hpp"
#include "core/user_input.hpp"
#include "frame/frame_format.hpp"
#include "os/subprocess.hpp"
#include "parameters/parameter_union.hpp"
#include "shm/control_block.hpp"
#include "spec/fallback_check.hpp"
#include "spec/links.hpp"
#include "spec/pipeline_keys.hpp"
#include "spec/programs.hpp"
#include "spec/special_stages.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
constexpr std::size_t max_asset_name = 47;
constexpr u64 largest_asset_bytes = u64{1} << 46U;  // the maximum size of a block of shared memory

bool is_program(const fs::path& path) {
    std::error_code failed;
    return fs::is_regular_file(path, failed) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> path_folders() {
    std::vector<std::string> folders;
    const char* all = std::getenv("PATH");
    std::string text = all == nullptr ? "/usr/local/bin:/usr/bin:/bin" : all;
    text += ':';
    for (std::size_t at = 0, end; (end = text.find(':', at)) != std::string::npos; at = end + 1)
        if (end > at) folders.push_back(text.substr(at, end - at));
    return folders;
}

/// Like the stage's program, a stage's tool (gdb, nsys) is searched for before anything is started.
void check_prefix(const stage_spec& s) {
    if (s.prefix.empty()) return;
    const std::string& tool = s.prefix.front();
    const bool there =
        tool.find('/') == std::string::npos ? !program_in_path(tool).empty() : is_program(tool);
    if (!there)
        refuse(s.position_of("prefix"),
               fmt::format("stage \"{}\": prefix: no program \"{}\"{}; install it, or remove prefix", s.name,
                           tool, tool.find('/') == std::string::npos ? " in PATH" : ""));
}

/// Names of the programs next to carousel, for "did you mean".
std::vector<std::string> stage_programs() {
    std::vector<std::string> names;
    std::error_code failed;
    for (const auto& each : fs::directory_iterator(executable_folder(), failed)) {
        std::string name = each.path().filename().string();
        if (name.starts_with("carousel-") && is_program(each.path())) names.push_back(std::move(name));
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// The end of a program's stderr output (at most 600 characters), for the end of a message.
std::string last_line(const subprocess_result& r) {
    std::string text = r.messages;
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    if (text.size() > 600) text = "..." + text.substr(text.size() - 600);
    return text.empty() ? "" : "; its last output: " + text;
}

/// Reports an error that a stage has found, at the key that the error names.
[[noreturn]] void refuse_complaint(const stage_spec& s, const json& e) {
    std::string key = e.value("key", "");
    if (key == "python" && s.python.empty()) key = "run";  // the file has no key `python`
    std::string message = e.value("message", "no reason given");
    // The stage cannot distinguish a mistyped key of the supervisor from a key of its own.
    if (s.settings.contains(key) && message.find("unknown key") != std::string::npos &&
        message.find("did you mean") == std::string::npos)
        message += did_you_mean_clause(key, stage_keys());
    refuse(s.position_of(key), fmt::format("stage \"{}\": {}", s.name, message));
}

json question(const pipeline& p, const stage_spec& s, const std::vector<u32>& read,
              const std::vector<stage_description>& known) {
    json inputs = json::array();
    for (std::size_t k = 0; k < s.input_indices.size(); ++k) {
        const stage_description& from = known[s.input_indices[k]];
        const u32 output = read.at(k);
        const std::string name = output == 0 ? from.stage : from.stage + "." + from.ring(output).output;
        inputs.push_back({{"stage", name}, {"format", from.ring(output).format}});
    }
    json query{{"stage", s.name},  {"width", p.width}, {"height", p.height}, {"settings", s.settings},
               {"inputs", inputs}, {"fps", p.fps},     {"device", s.device}, {"folder", folder_of(p)}};
    // The stages downstream of this stage have no format yet, because their formats may depend on this
    // stage's format.
    for (std::size_t i = 0; i < s.sampled_inputs.size(); ++i) {
        const u32 from = s.sampled_indices[i];
        const bool has_format = from < known.size();
        query["sampled"].push_back(
            {{"stage", s.sampled_inputs[i]},
             {"format", has_format ? known[from].ring(sampled_output(s, i, known[from])).format : json()}});
    }
    return query;
}

/// The fields of all stages. In the message of a refusal, the other stage is the first that names parameters.
ring::parameter_schema common_schema(const pipeline& p, const std::vector<stage_description>& described) {
    const stage_description* first = nullptr;
    ring::parameter_schema all;
    for (std::size_t k = 0; k < described.size(); ++k) {
        const stage_description& d = described[k];
        if (!d.parameters) continue;
        if (first == nullptr) {
            first = &d;
            all = d.parameters;
            continue;
        }
        try {
            all = ring::union_of(all, d.parameters);
        } catch (const config_error& e) {
            refuse(p.stages[k].at,
                   fmt::format("stage \"{}\" takes parameters of {}, but stage \"{}\" takes {} ({}): the "
                               "stages of a pipeline share one set of parameters",
                               d.stage, d.parameters.describe(), first->stage, all.describe(), e.what()));
        }
    }
    return all;
}

}  // namespace

json query_program(const stage_spec& s, const std::string& program, const std::string& python,
                   const json& what, u32 timeout_ms) {
    const source_position& at = s.position_of("run");
    std::vector<std::string> words;
    try {
        words = command_of(program, python);
    } catch (const config_error& e) {
        refuse(at, fmt::format("stage \"{}\": run = \"{}\": {}", s.name, s.run, e.what()));
    }
    words.emplace_back("--describe");
    if (is_python(program)) timeout_ms *= 6;
    const subprocess_result r =
        run_subprocess(words, what.dump(-1, ' ', false, json::error_handler_t::replace) + "\n", timeout_ms);
    if (r.short_of_resources)
        throw out_of_resources(
            fmt::format("stage \"{}\": starting `{} --describe`: {}", s.name, program, r.error));
    if (!r.started || r.timed_out || r.signal != 0)
        refuse(at, fmt::format("stage \"{}\": `{} --describe`: {}{}", s.name, program, r.ending(timeout_ms),
                               last_line(r)));
    json answer = parse_json_or_discard(r.output, json_channel::document);
    if (answer.is_object() && answer.contains("error") && answer["error"].is_object())
        refuse_complaint(s, answer["error"]);
    if (r.exit_code != 0)
        refuse(at, fmt::format("stage \"{}\": `{} --describe` ended with exit code {}{}", s.name, program,
                               r.exit_code, last_line(r)));
    if (!answer.is_object())
        refuse(at, fmt::format("stage \"{}\": the output of `{} --describe` is not a JSON object; check that "
                               "it is a Carousel stage{}",
                               s.name, program, last_line(r)));
    return answer;
}

namespace {

stage_description description_from(const stage_spec& s, const std::string& program, const json& answer) {
    stage_description d;
    d.stage = s.name;
    d.program = program;
    try {
        d.format = answer.at("format");
        d.slot_bytes = d.format.is_null() ? 0 : answer.at("slot_bytes").get<u64>();
        d.output = answer.value("output", "");
        for (const json& o : answer.value("more_outputs", json::array()))
            d.more.push_back({o.at("output"), o.at("format"), o.at("slot_bytes")});
        for (const json& a : answer.value("makes", json::array()))
            d.makes.push_back({a.at("name").get<std::string>(), a.at("bytes").get<u64>()});
        d.uses = answer.value("uses", std::vector<std::string>{});
        if (const json p = answer.value("parameters", json()); !p.is_null())
            d.parameters = ring::parameter_schema::from_json(p);
        d.device = runs_on_named(answer.value("runs_on", "any"), runs_on::any);
        d.commits_on_host = answer.value("commits_on_host", false);
        d.ends = answer.value("ends", false);
        d.accepts_sampled_inputs = answer.value("accepts_sampled_inputs", false);
        d.forwards_frames = answer.value("forwards_frames", false);
        d.writable_inputs = answer.value("writable_inputs", false);
        d.bit_equal = answer.value("bit_equal", false);
        d.state = answer.value("state", false) && !d.format.is_null();
    } catch (const config_error& e) {
        refuse(s.position_of("run"), fmt::format("stage \"{}\": its parameters: {}", s.name, e.what()));
    } catch (const json::exception& e) {
        refuse(s.position_of("run"), fmt::format("stage \"{}\": the output of `{} --describe` has an unknown "
                                                 "format ({}); build both from the same version of Carousel",
                                                 s.name, program, e.what()));
    }
    // The plan multiplies and adds these sizes, so none of them may exceed its limit.
    const auto check_size = [&](const std::string& what, u64 bytes, u64 limit) {
        if (bytes > limit)
            refuse(s.position_of("run"),
                   fmt::format("stage \"{}\": `{} --describe` reports {} bytes for {}; at "
                               "most {} are possible",
                               s.name, program, bytes, what, limit));
    };
    for (u32 o = 0; o < d.outputs(); ++o)
        check_size("a slot", d.ring(o).slot_bytes, ring::largest_slot_bytes);
    for (const asset_spec& a : d.makes) check_size("asset " + a.name, a.bytes, largest_asset_bytes);
    if (d.outputs() > shm::max_outputs)
        refuse(s.at,
               fmt::format("stage \"{}\" has {} outputs; at most {}", s.name, d.outputs(), shm::max_outputs));
    return d;
}

// For "auto" the device is chosen for the machine (choose_device); a device that the file names is checked on
// every machine.
void check_device(const stage_spec& s, const stage_description& d) {
    if (d.device == runs_on::any || s.device == "auto" || (s.device == "cpu") == (d.device == runs_on::cpu))
        return;
    const bool cpu = d.device == runs_on::cpu;
    refuse(
        s.position_of("device"),
        fmt::format("stage \"{}\" runs only on {}, but device = \"{}\" places it on {}; set device = \"{}\"",
                    s.name, cpu ? "the CPU" : "a GPU", s.device, cpu ? "a GPU" : "the CPU",
                    cpu ? "cpu" : "cuda:0"));
}

void check_output(const pipeline& p, const stage_spec& s, const stage_description& d) {
    if (!s.has_output && !d.is_sink())
        refuse(s.at, fmt::format("stage \"{}\" produces frames ({}) that no stage reads; add it to the "
                                 "inputs of a sink such as carousel-display",
                                 s.name, d.format.value("type", "of no type")));
    if (!s.has_output || !d.format.is_null()) return;
    const auto reader = std::find_if(p.stages.begin(), p.stages.end(), [&](const stage_spec& r) {
        return std::any_of(r.inputs.begin(), r.inputs.end(),
                           [&](const std::string& input) { return ring_name_of(input).stage == s.name; });
    });
    refuse(reader->position_of("inputs"),
           fmt::format("stage \"{}\" reads \"{}\", which has no output", reader->name, s.name));
}

/// State n is computed from state n - 1, which one process after the other must have made.
void check_state(const stage_spec& s, const stage_description& d) {
    if (!d.state) return;
    const auto needs_all = [&](const char* key) {
        refuse(s.position_of(key),
               fmt::format("stage \"{}\" has a state, which is computed from every frame: "
                           "remove the key {}",
                           s.name, key));
    };
    if (s.every > 1) needs_all("every");
    if (s.latest()) needs_all("group");
    if (s.optional) needs_all("optional");
    if (s.inputs.empty() && d.is_sink())
        refuse(s.at,
               fmt::format("stage \"{}\" reads nothing and has no output in addition to its state", s.name));
    if (s.instances == 1 && !s.remote) return;
    refuse(s.position_of("instances"),
           fmt::format("stage \"{}\" has {} instances and a state; each state is computed from that of the "
                       "frame before, so only one process can make them: set instances = 1",
                       s.name, s.instances));
}

void check_assets(const pipeline& p, const std::vector<stage_description>& all) {
    std::set<std::string> made;
    for (std::size_t k = 0; k < all.size(); ++k) {
        for (const asset_spec& a : all[k].makes) {
            if (a.name.empty() || a.name.size() > max_asset_name || a.bytes == 0)
                refuse(p.stages[k].at, fmt::format("stage \"{}\" produces the asset \"{}\" of {} bytes; "
                                                   "expected a name of 1 to {} characters and a size",
                                                   p.stages[k].name, a.name, a.bytes, max_asset_name));
            if (!made.insert(a.name).second)
                refuse(
                    p.stages[k].at,
                    fmt::format("stage \"{}\" produces the asset \"{}\", which another stage also produces",
                                p.stages[k].name, a.name));
            if (made.size() > shm::max_assets)
                refuse(p.stages[k].at, fmt::format("more than {} assets", shm::max_assets));
        }
    }
    for (std::size_t k = 0; k < all.size(); ++k) {
        for (const std::string& used : all[k].uses) {
            if (made.count(used) != 0) continue;
            const std::vector<std::string> names(made.begin(), made.end());
            refuse(p.stages[k].at,
                   fmt::format("stage \"{}\" uses the asset \"{}\", which no stage produces{}",
                               p.stages[k].name, used, did_you_mean_clause(used, names)));
        }
    }
}

/// Returns the stages that frames of stage `from` reach, including `from` itself.
std::vector<bool> reached_from(const pipeline& p, std::size_t from) {
    std::vector<bool> reached(p.stages.size(), false);
    reached[from] = true;
    for (std::size_t k = from + 1; k < p.stages.size(); ++k)  // producers before consumers
        for (const u32 i : p.stages[k].input_indices) reached[k] = reached[k] || reached[i];
    return reached;
}

/// One END applies to the whole run. The END is exact for a sink if each of the sink's frames depends on the
/// source that sets the END. (A sink in a group of kind `latest` may get an extra frame, and it
/// may miss frames.)
void check_ends(const pipeline& p, const std::vector<stage_description>& all) {
    for (std::size_t k = 0; k < all.size(); ++k) {
        // A stage with `returns` receives the END of this run's own sources back from another host, after
        // these sources have set the END.
        if (!all[k].ends || p.stages[k].returns) continue;
        const stage_spec& source = p.stages[k];
        if (!source.inputs.empty())
            refuse(source.position_of("inputs"),
                   fmt::format("stage \"{}\" may end the stream, but it reads \"{}\"; only a source (a stage "
                               "without inputs) may end the stream",
                               source.name, source.inputs.front()));
        const std::vector<bool> reached = reached_from(p, k);
        for (std::size_t sink = 0; sink < p.stages.size(); ++sink) {
            const stage_spec& s = p.stages[sink];
            if (reached[sink] || !all[sink].is_sink() || s.group == group_kind::latest) continue;
            refuse(
                s.position_of("inputs"),
                fmt::format("stage \"{0}\" gets no frames of \"{1}\", which may end the stream, so \"{0}\" "
                            "could receive frames beyond the end. Let \"{0}\" also read a stage downstream "
                            "of \"{1}\", or read with group = \"latest\", or move it to another pipeline",
                            s.name, source.name));
        }
    }
}

}  // namespace

std::string program_in_path(const std::string& name) {
    for (const std::string& folder : path_folders())
        if (is_program(fs::path(folder) / name)) return absolute_path(fs::path(folder) / name).string();
    return "";
}

std::string find_program(const pipeline& p, const stage_spec& s) {
    const source_position& at = s.position_of("run");
    if (s.run.find('/') != std::string::npos || is_python(s.run)) {
        const fs::path path = (fs::path(folder_of(p)) / s.run).lexically_normal();
        const std::string file(python_file(path.native()));
        if (is_program(path) || (is_python(s.run) && ::access(file.c_str(), R_OK) == 0)) return path.string();
        std::error_code failed;
        refuse(at, fmt::format("stage \"{}\": run = \"{}\": {} {}", s.name, s.run, file,
                               fs::exists(file, failed)
                                   ? "is not an executable program"
                                   : "does not exist (paths are relative to the pipeline file)"));
    }
    const std::string own = p.programs.empty() ? executable_folder() : p.programs;
    const fs::path sibling = fs::path(own) / s.run;
    if (is_program(sibling)) return sibling.string();
    if (std::string found = program_in_path(s.run); !found.empty()) return found;
    const bool link = s.run == "carousel-send" || s.run == "carousel-receive" || s.run == "carousel-remote";
    std::string way = command_to_build(s.run, own);
    if (!way.empty())
        way = ", but it can be built: " + way;
    else if (s.run.starts_with("carousel-") && lacks_extras(own))
        way = fmt::format(". This build has only the core's stages; for the others, {}{}", how_to_get_extras,
                          did_you_mean_clause(s.run, stage_programs()));
    else
        way =
            link
                ? ". Links to other hosts need UCX: run apt-get install libucx-dev libssl-dev and build again"
                : did_you_mean_clause(s.run, stage_programs());
    refuse(at, fmt::format("stage \"{}\": run = \"{}\": no such program in {} or in PATH{}", s.name, s.run,
                           own, way));
}

std::string find_interpreter(const pipeline& p, const stage_spec& s) {
    if (s.python.empty()) return "";
    const fs::path path = (fs::path(folder_of(p)) / s.python).lexically_normal();
    std::error_code failed;
    const bool folder = fs::is_directory(path, failed);
    const fs::path program = folder ? path / "bin" / "python3" : path;
    if (is_program(program)) return program.string();
    if (s.python.find('/') == std::string::npos && !folder)
        if (std::string found = program_in_path(s.python); !found.empty()) return found;
    const char* why = folder ? "has no interpreter bin/python3: expected the folder of a virtual environment "
                               "(python3 -m venv FOLDER)"
                      : fs::exists(path, failed) ? "is not an executable program"
                                                 : "does not exist (paths are relative to the pipeline file)";
    refuse(s.position_of("python"),
           fmt::format("stage \"{}\": python = \"{}\": {} {}", s.name, s.python, path.string(), why));
}

namespace {

/// The program and the interpreter with which a stage is started.
struct stage_program {
    std::string path, interpreter;  ///< interpreter: "" for a stage with the default interpreter
};

/// `reply_of(k, question)`: the reply of the program of stage k.
template <typename Reply>
std::vector<stage_description> describe_with(const pipeline& p, const std::vector<stage_program>& programs,
                                             Reply&& reply_of) {
    std::vector<stage_description> all;
    for (std::size_t k = 0; k < p.stages.size(); ++k) {
        const stage_spec& s = p.stages[k];
        std::vector<u32> read;
        for (std::size_t i = 0; i < s.input_indices.size(); ++i)
            read.push_back(output_read(s, i, all[s.input_indices[i]]));
        all.push_back(s.is_port()
                          ? describe_port(s)
                          : description_from(s, programs[k].path, reply_of(k, question(p, s, read, all))));
        all.back().python = programs[k].interpreter;
        all.back().input_outputs = std::move(read);
        check_output(p, s, all.back());
        check_device(s, all.back());
        check_state(s, all.back());
    }
    check_sampled_inputs(p, all);
    check_outputs(p, all);
    check_assets(p, all);
    check_ends(p, all);
    check_fallback(p, all);
    (void)plan_parameters(p, all);
    return all;
}

}  // namespace

std::vector<stage_description> describe_stages(const pipeline& p, u32 timeout_ms, json* replies) {
    std::vector<stage_program> programs;
    for (const stage_spec& s : p.stages) {  // all questions are prepared before any program is run
        programs.push_back({s.is_port() ? port_program : find_program(p, s), find_interpreter(p, s)});
        check_prefix(s);
    }
    return describe_with(p, programs, [&](std::size_t k, const json& what) {
        const auto& [path, interpreter] = programs[k];
        json reply = query_program(p.stages[k], path, interpreter, what, timeout_ms);
        if (replies != nullptr)
            (*replies)[p.stages[k].name] = {{"program", path}, {"python", interpreter}, {"reply", reply}};
        return reply;
    });
}

std::vector<stage_description> describe_stages_from(const pipeline& p, const json& replies) {
    const auto known = [&](const stage_spec& s) -> const json& {
        if (!replies.is_object() || !replies.contains(s.name) || !replies[s.name].is_object())
            refuse(s.at, fmt::format("stage \"{}\": its program was not queried", s.name));
        return replies[s.name];
    };
    std::vector<stage_program> programs;
    for (const stage_spec& s : p.stages) {
        if (s.is_port())
            programs.push_back({port_program, ""});
        else
            programs.push_back({known(s).value("program", ""), known(s).value("python", "")});
    }
    return describe_with(
        p, programs, [&](std::size_t k, const json&) { return known(p.stages[k]).value("reply", json()); });
}

parameter_plan plan_parameters(const pipeline& p, const std::vector<stage_description>& described) {
    parameter_plan out{common_schema(p, described), {}};
    if (!out.schema) {
        if (!p.parameters.empty())
            refuse(p.parameters.begin()->second.key_at, "[parameters]: no stage of this pipeline takes any");
        return out;
    }
    out.values = out.schema.initial_values();
    for (const auto& [key, entry] : p.parameters) {
        try {
            out.schema.set(out.values, key, entry.value);
        } catch (const config_error& e) {
            refuse(out.schema.find(key) != nullptr ? entry.value_at : entry.key_at, e.what());
        }
    }
    try {
        out.schema.check_values(out.values);
    } catch (const config_error& e) {
        refuse(p.parameters_at, e.what());
    }
    return out;
}

}  // namespace carousel::supervisor
