#include "dead_letters/dead_letter.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <tuple>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json_text.hpp"
#include "core/user_input.hpp"
#include "device/described.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::run {
namespace {

namespace fs = std::filesystem;
constexpr const char* prefix = "traceback-";

std::string path_of(const std::string& runtime_directory, std::string_view stage, u64 ring_sequence) {
    return fmt::format("{}/{}{}.txt", dead_letters_folder(runtime_directory), prefix,
                       dead_letter_name(stage, ring_sequence));
}

u32 tracebacks_in(const std::string& folder) {
    u32 count = 0;
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
        if (at->path().filename().string().starts_with(prefix)) ++count;
    return count;
}

}  // namespace

// The members that are not listed here are written in a JSON form that differs from the usual form of their
// types.
BOOST_DESCRIBE_STRUCT(dead_letter::asset, (), (name, bytes))
BOOST_DESCRIBE_STRUCT(dead_letter, (),
                      (stage, program, python, attempts, width, height, in_flight, fps, asked_device, folder,
                       device, assets))

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int dead_letter_version = 4;

std::string hex_of(const std::vector<std::byte>& bytes) {
    std::string text;
    for (const std::byte b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
    return text;
}

std::vector<std::byte> bytes_of(const std::string& hex) {
    std::vector<std::byte> bytes;
    for (std::size_t k = 0; k + 1 < hex.size(); k += 2)
        bytes.push_back(static_cast<std::byte>(std::stoul(hex.substr(k, 2), nullptr, 16)));
    return bytes;
}

/// The facts that the file has both for the stage's own frame and for each sampled frame.
json facts_json(const ring::frame_facts& f) {
    return {{"ring_sequence", f.ring_sequence},
            {"frame_number", f.frame_number},
            {"time_s", f.time_s},
            {"capture_ns", f.capture_ns},
            {"parameters", hex_of(f.parameters)},
            {"parameter_number", f.parameter_number}};
}

void read_facts(const json& j, ring::frame_facts& f) {
    f.ring_sequence = j.at("ring_sequence");
    f.frame_number = j.at("frame_number");
    f.time_s = j.at("time_s");
    f.capture_ns = j.value("capture_ns", u64{0});
    f.parameter_number = j.at("parameter_number");
    f.parameters = bytes_of(j.at("parameters"));
}

json format_json(const ring::frame_format& f) {
    return f.type.empty() ? json() : parse_json(f.to_json(), json_channel::document);
}
ring::frame_format format_from(const json& j) {
    return j.is_null() ? ring::frame_format() : ring::frame_format::from_json(j.dump());
}

/// Shapes of the planes that the frame uses in part.
json used_json(const dead_letter::input& of) {
    json out = json::object();
    for (std::size_t k = 0; k < of.format.planes.size(); ++k)
        if (ring::is_used_in_part(of.facts.used, k))
            out[of.format.planes[k].name] = ring::used_plane(of.format, k, of.facts.used).shape;
    return out;
}

json input_json(const dead_letter::input& i) {
    json sampled = json::array();
    for (const u64 n : i.facts.sampled_frames)
        sampled.push_back(n == shm::no_sampled_frame ? json() : json(n));
    return {{"stage", i.stage},
            {"format", format_json(i.format)},
            {"used", used_json(i)},
            {"metadata", hex_of(i.facts.metadata)},
            {"sampled", std::move(sampled)}};
}

dead_letter::input input_from(const json& j) {
    dead_letter::input i{j.at("stage"), format_from(j.at("format")), {}};
    i.facts.metadata = bytes_of(j.value("metadata", ""));
    const json used = j.value("used", json::object());  // a named object, because it must outlive the
                                                        // iteration over its items
    for (const auto& [plane, extents] : used.items())
        ring::set_used(i.facts.used, i.format, plane, extents.get<std::vector<u64>>());
    const json sampled = j.value("sampled", json::array());
    for (const json& n : sampled)
        i.facts.sampled_frames.push_back(n.is_null() ? shm::no_sampled_frame : n.get<u64>());
    return i;
}

json sampled_json(const dead_letter::sampled_input& s, const std::string& file) {
    json j = input_json(s);
    j["described"] = s.described;
    j["file"] = s.there ? json(file) : json();
    if (!s.there) return j;
    j.update(facts_json(s.facts));
    j.update({{"born_ns", s.facts.born_ns}, {"clock", static_cast<u32>(s.facts.clock)}});
    return j;
}

dead_letter::sampled_input sampled_from(const json& j) {
    dead_letter::sampled_input s;
    static_cast<dead_letter::input&>(s) = input_from(j);
    s.described = j.at("described");
    s.there = !j.at("file").is_null();
    if (!s.there) return s;
    read_facts(j, s.facts);
    s.facts.born_ns = j.at("born_ns");
    s.facts.clock = static_cast<shm::capture_clock>(j.at("clock").get<u32>());
    return s;
}

dead_letter dead_letter_from(const json& j) {
    auto l = j.get<dead_letter>();
    read_facts(j, l.facts);
    l.settings_json = j.at("settings").dump();
    for (const json& i : j.at("inputs")) l.inputs.push_back(input_from(i));
    const json sampled = j.value("sampled", json::array());
    for (const json& s : sampled) l.sampled.push_back(sampled_from(s));
    for (const json& o : j.at("outputs")) l.outputs.push_back({o.at("name"), format_from(o.at("format"))});
    if (const json schema = j.value("parameter_schema", json()); !schema.is_null())
        l.schema = ring::parameter_schema::from_json(schema);
    l.facts.metadata = bytes_of(j.value("metadata", ""));
    return l;
}

}  // namespace

std::string dead_letters_folder(const std::string& runtime_directory) {
    return runtime_directory + "/dead-letters";
}
std::string dead_letter_name(std::string_view stage, u64 ring_sequence) {
    return fmt::format("{}-{}", stage, ring_sequence);
}
std::string input_file(std::size_t index) { return fmt::format("input-{}.bin", index); }
std::string sampled_file(std::size_t index) { return fmt::format("sampled-{}.bin", index); }
std::string asset_file(std::string_view name) { return fmt::format("asset-{}.bin", name); }

std::string to_json(const dead_letter& l) {
    json inputs = json::array(), sampled = json::array(), outputs = json::array();
    for (std::size_t k = 0; k < l.inputs.size(); ++k) {
        inputs.push_back(input_json(l.inputs[k]));
        inputs.back()["file"] = input_file(k);
    }
    for (std::size_t k = 0; k < l.sampled.size(); ++k)
        sampled.push_back(sampled_json(l.sampled[k], sampled_file(k)));
    for (const dead_letter::output& o : l.outputs)
        outputs.push_back({{"name", o.name}, {"format", format_json(o.format)}});
    json j = l;
    j.update(facts_json(l.facts));
    j.update({{"version", dead_letter_version},
              {"settings", parse_json(l.settings_json, json_channel::document)},
              {"inputs", std::move(inputs)},
              {"sampled", std::move(sampled)},
              {"outputs", std::move(outputs)},
              {"parameter_schema", l.schema ? l.schema.to_json() : json()},
              {"metadata", hex_of(l.facts.metadata)}});
    return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

dead_letter read_dead_letter(const std::string& folder) {
    const std::string file = folder + "/letter.json";
    const std::optional<std::string> text = read_file(file);
    if (!text) throw config_error(fmt::format("no dead letter in {}: {}", folder, errno_text(errno)));
    try {
        const json j = parse_json(*text, json_channel::document);
        if (j.at("version") != dead_letter_version)
            throw config_error(fmt::format(
                "{} is of version {}; this program reads version {}: replay it with the version of Carousel "
                "that wrote it",
                file, j.at("version").dump(), dead_letter_version));
        dead_letter l = dead_letter_from(j);
        l.path = absolute_path(folder).lexically_normal().string();
        return l;
    } catch (const json::exception& e) {
        throw config_error(fmt::format("{} is not a dead letter: {}", file, e.what()));
    } catch (const std::logic_error& e) {  // from std::stoul
        throw config_error(fmt::format("{} is not a dead letter: {}", file, e.what()));
    }
}

std::vector<dead_letter> dead_letters_in(const std::string& runtime_directory) {
    std::vector<dead_letter> all;
    std::error_code failed;
    for (fs::directory_iterator at(dead_letters_folder(runtime_directory), failed), end; !failed && at != end;
         at.increment(failed)) {
        std::error_code ignored;
        if (at->path().filename().string().find(".part") != std::string::npos) continue;
        if (!fs::exists(at->path() / "letter.json", ignored)) continue;
        all.push_back(read_dead_letter(at->path().string()));
    }
    std::sort(all.begin(), all.end(), [](const dead_letter& a, const dead_letter& b) {
        return std::tie(a.facts.ring_sequence, a.stage) < std::tie(b.facts.ring_sequence, b.stage);
    });
    return all;
}

void keep_traceback(const std::string& runtime_directory, std::string_view stage, u64 ring_sequence,
                    const std::string& text) {
    const std::string folder = dead_letters_folder(runtime_directory);
    const std::string path = path_of(runtime_directory, stage, ring_sequence);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        throw output_error(
            fmt::format("the traceback is not saved: creating {}: {}", folder, errno_text(errno)));
    std::error_code failed;
    if (!fs::exists(path, failed) && tracebacks_in(folder) >= most_tracebacks) return;
    try {
        shm::write_whole_file(path, text);
    } catch (const error& e) {
        throw output_error(fmt::format("the traceback is not saved: {}", e.what()));
    }
}

void move_traceback(const std::string& runtime_directory, std::string_view stage, u64 ring_sequence,
                    const std::string& dead_letter_folder) noexcept {
    // Most frames have no traceback.
    (void)std::rename(path_of(runtime_directory, stage, ring_sequence).c_str(),
                      (dead_letter_folder + "/traceback.txt").c_str());
}

}  // namespace carousel::run
