#include "spec/options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/user_input.hpp"
#include "spec/pipeline_document.hpp"

namespace carousel::supervisor {
namespace {

using scope = key_override::scope;

[[noreturn]] void refuse_option(const std::string& option, const std::string& expected) {
    throw config_error(fmt::format("{}: expected {}", option, expected));
}

template <typename T>
bool read_number(const std::string& text, T& out) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
    return failed == std::errc() && end == text.data() + text.size() && !text.empty();
}

nlohmann::json size_from(const std::string& option, const std::string& text) {
    const auto x = text.find_first_of("xX");
    i64 width = 0, height = 0;
    if (x == std::string::npos || !read_number(text.substr(0, x), width) ||
        !read_number(text.substr(x + 1), height))
        refuse_option(option, "WIDTHxHEIGHT, e.g. 1280x720");
    return {width, height};
}

/// A relative path on the command line is relative to the user's working directory; stages may have another
/// working directory.
std::string absolute(const std::string& path) { return absolute_path(path).lexically_normal().string(); }

key_override set_from(const std::string& text) {
    const std::string option = "--set " + text;
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        refuse_option(option, "KEY=VALUE, e.g. --set geometry.triangles=1000");
    return {option, text.substr(0, equals), value_from(text.substr(equals + 1)), scope::path};
}

}  // namespace

nlohmann::json value_from(const std::string& text) {
    try {
        const document d = read_document("[parameters]\nvalue = " + text + "\n", "");
        const document_entry* e = d.parameters.find("value");
        if (e != nullptr && d.parameters.keys.size() == 1 && d.pipeline.keys.empty() && d.stages.empty() &&
            d.links.empty())
            return e->value;
    } catch (const config_error&) {
        // the text is not a TOML value, so it is a word
    }
    return text;
}

f64 seconds_from(const std::string& option, const std::string& text) {
    f64 seconds = 0;
    if (!read_number(text, seconds) || !std::isfinite(seconds) || seconds < 0 || seconds > 1e9)
        refuse_option(option + " " + text, "seconds, 0 or more");
    return seconds;
}

namespace {

/// Returns "fragment" for "fragment=frame_%d.png"; "": the text is only a pattern. A stage's name has no dot,
/// slash or percent sign.
std::string stage_of(const std::string& text) {
    const std::string word = text.substr(0, text.find('='));
    return word.size() < text.size() && word.find_first_of("./% ") == std::string::npos ? word : "";
}

key_override out_from(const std::string& text) {
    const std::string stage = stage_of(text), given = stage.empty() ? text : text.substr(stage.size() + 1);
    const std::string pattern = given.empty() || given == "none" ? given : absolute_pattern(given);
    const std::string option = "--out '" + text + "'";
    if (!stage.empty()) return {option, stage + ".out", pattern, scope::path};
    return {option, "out", pattern, scope::displays};
}

}  // namespace

std::vector<key_override> overrides_from(const pipeline_options& o) {
    std::vector<key_override> all;
    for (const std::string& text : o.set) all.push_back(set_from(text));
    if (o.name) all.push_back({"--name " + *o.name, "name", *o.name, scope::path});
    if (o.device) all.push_back({"--device " + *o.device, "device", *o.device, scope::path});
    if (o.frames) {
        const std::string option = "--frames " + *o.frames;
        i64 frames = 0;
        if (!read_number(*o.frames, frames) || frames < 0)
            refuse_option(option, "a whole number of frames, 0 (no limit) or more");
        all.push_back({option, "frames", frames, scope::path});
    }
    if (o.fps) {
        const std::string option = "--fps " + *o.fps;
        f64 fps = 0;
        if (!read_number(*o.fps, fps) || !std::isfinite(fps))
            refuse_option(option, "frames per second, 0 (as fast as possible) or more");
        all.push_back({option, "fps", fps, scope::path});
    }
    if (o.size)
        all.push_back({"--size " + *o.size, "size", size_from("--size " + *o.size, *o.size), scope::path});
    if (o.allow_dead_letters)
        all.push_back({"--allow-dead-letters " + *o.allow_dead_letters, "allow_dead_letters",
                       value_from(*o.allow_dead_letters), scope::path});
    if (o.mesh) {
        // A shape's name ("torus-knots") has neither a dot nor a slash; a file's name has at least one of
        // them.
        const bool file = o.mesh->find_first_of("./") != std::string::npos;
        all.push_back({"--mesh " + *o.mesh, "mesh", file ? absolute(*o.mesh) : *o.mesh, scope::sources});
    }
    for (const std::string& text : o.out) all.push_back(out_from(text));
    for (const std::string& stage : o.record)
        all.push_back({"--record " + stage, "link." + stage + ".record", true, scope::path});
    if (o.record_to)
        all.push_back({"--record-to " + *o.record_to, "record_to", absolute(*o.record_to), scope::path});
    if (o.keep) {
        i64 keep = 0;
        if (!read_number(*o.keep, keep) || keep < 0)
            refuse_option("--keep " + *o.keep, "a whole number of pictures, 0 (all) or more");
        all.push_back({"--keep " + *o.keep, "keep", keep, scope::displays});
    }
    if (o.insecure) all.push_back({"--insecure", "insecure", true, scope::hosts});
    return all;
}

std::vector<std::string> words_of(const pipeline_options& o) {
    std::vector<std::string> words;
    const auto add = [&](const char* option, const std::string& value) {
        words.emplace_back(option);
        words.push_back(value);
    };
    const auto add_if = [&](const char* option, const std::optional<std::string>& value) {
        if (value) add(option, *value);
    };
    for (const std::string& text : o.set) add("--set", text);
    add_if("--name", o.name);
    add_if("--device", o.device);
    add_if("--frames", o.frames);
    add_if("--fps", o.fps);
    add_if("--size", o.size);
    add_if("--mesh", o.mesh);
    for (const std::string& text : o.out) {
        const std::string stage = stage_of(text),
                          given = stage.empty() ? text : text.substr(stage.size() + 1);
        const std::string placed = given.empty() || given == "none" ? given : absolute_pattern(given);
        add("--out", stage.empty() ? placed : fmt::format("{}={}", stage, placed));
    }
    for (const std::string& stage : o.record) add("--record", stage);
    if (o.record_to) add("--record-to", absolute(*o.record_to));
    add_if("--keep", o.keep);
    if (o.insecure) words.emplace_back("--insecure");
    return words;
}

}  // namespace carousel::supervisor
