#include "supervisor/pipeline_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "core/did_you_mean.hpp"
#include "core/sine_cosine.hpp"
#include "ring/words.hpp"
#include "shm/control_block.hpp"
#include "supervisor/run_directory.hpp"
#include "supervisor/section_reader.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 hour_ms = 3'600'000;
constexpr u64 no_limit = static_cast<u64>(std::numeric_limits<i64>::max());
constexpr u32 max_device = 63;

bool is_stage_name(const std::string& name) {
    return !name.empty() && name.size() <= max_name &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
}

bool is_device(const std::string& text) {
    if (text == "auto" || text == "cpu") return true;
    if (!text.starts_with("cuda:") || text.size() < 6 || text.size() > 7) return false;
    const std::string digits = text.substr(5);
    return std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c) != 0; }) &&
           static_cast<u32>(std::stoi(digits)) <= max_device;
}

std::string read_device(section_reader& r, const std::string& fallback) {
    const std::string expected = "\"auto\", \"cpu\" or \"cuda:N\" with the number of a GPU";
    const std::string device = r.text("device", fallback, expected);
    if (is_device(device)) return device;
    section_reader::wrong("device", *r.take("device"), expected + did_you_mean_clause(device, {"auto", "cpu", "cuda:0"}));
}

void read_size(section_reader& r, pipeline& p) {
    const document_entry* e = r.take("size");
    if (e == nullptr) return;
    const std::string expected = fmt::format("[width, height], each from 1 to {}", max_extent);
    if (!e->value.is_array() || e->value.size() != 2) section_reader::wrong("size", *e, expected);
    u32* const sides[] = {&p.width, &p.height};
    for (std::size_t k = 0; k < 2; ++k) {
        const nlohmann::json& side = e->value[k];
        if (!side.is_number_integer() || side.get<i64>() < 1 || side.get<i64>() > max_extent)
            section_reader::wrong("size", *e, expected);
        *sides[k] = side.get<u32>();
    }
}

/// Words of a command line, as a shell would split them: blanks, '...', "..." and backslashes; no expansion.
std::vector<std::string> shell_words(const std::string& text, const document_entry& e) {
    std::vector<std::string> words;
    bool inside = false;
    char quote = 0;
    for (std::size_t k = 0; k < text.size(); ++k) {
        const char c = text[k];
        if (quote == 0 && (c == ' ' || c == '\t')) {
            inside = false;
            continue;
        }
        if (!inside) words.emplace_back();
        inside = true;
        if (c == '\\' && quote != '\'') {
            if (k + 1 == text.size()) section_reader::wrong("prefix", e, "something behind the last backslash");
            words.back() += text[++k];
        } else if (quote == 0 && (c == '"' || c == '\'')) {
            quote = c;
        } else if (quote != 0 && c == quote) {
            quote = 0;
        } else {
            words.back() += c;
        }
    }
    if (quote != 0) section_reader::wrong("prefix", e, "a closing quote");
    return words;
}

std::vector<std::string> read_prefix(section_reader& r) {
    const document_entry* e = r.take("prefix");
    if (e == nullptr) return {};
    if (e->value.is_string()) return shell_words(e->value.get<std::string>(), *e);
    return r.texts("prefix", "a command such as \"gdb --args\", or a list of its words");
}

/// 0: none. Less than 10 ms is what the supervisor can't tell from its own ticks.
u32 read_frame_timeout(section_reader& r, u32 fallback) {
    const document_entry* e = r.take("frame_timeout_ms");
    if (e == nullptr) return fallback;
    const bool fits = e->value.is_number_unsigned() || (e->value.is_number_integer() && e->value.get<i64>() >= 0);
    const u64 ms = fits ? e->value.get<u64>() : 1;
    if (ms != 0 && (ms < 10 || ms > hour_ms))
        section_reader::wrong("frame_timeout_ms", *e, fmt::format("a whole number from 10 to {}, or 0 for none", hour_ms));
    return static_cast<u32>(ms);
}

/// true: any number of frames; false: none.
u64 read_allowed(section_reader& r) {
    const document_entry* e = r.take("allow_dead_letters");
    if (e == nullptr) return 0;
    if (e->value.is_boolean()) return e->value.get<bool>() ? ~u64{0} : 0;
    if (!e->value.is_number_integer() || e->value.get<i64>() < 0)
        section_reader::wrong("allow_dead_letters", *e, "true, false, or how many frames may be given up");
    return e->value.get<u64>();
}

std::string read_stage_name(section_reader& r, const document_section& s) {
    const document_entry* e = r.take("name");
    if (e == nullptr) refuse(s.at, s.title + " has no name; expected e.g. name = \"geometry\"");
    const std::string expected = fmt::format("a name of 1 to {} letters, digits, - and _", max_name);
    const std::string name = r.text("name", "", expected);
    if (!is_stage_name(name)) section_reader::wrong("name", *e, expected);
    if (name == "pipeline" || name == "scene" || name == "link")
        section_reader::wrong("name", *e, "another name: this one stands for a section of the file");
    return name;
}

std::string read_run(section_reader& r, const document_section& s) {
    const document_entry* e = r.take("run");
    if (e == nullptr) refuse(s.at, s.title + " does not say what to run; expected e.g. run = \"carousel-geometry\", or a path");
    std::string run = r.text("run", "", "the name or path of a program");
    if (run.empty() || run.find('\0') != std::string::npos) section_reader::wrong("run", *e, "the name or path of a program");
    return run;
}

/// In double precision: [1, 1, 1] must give the very bits of the default light, or one image would have two hashes.
void normalise(f32* v) {
    const f64 x = v[0], y = v[1], z = v[2], length = std::sqrt(x * x + y * y + z * z);
    v[0] = static_cast<f32>(x / length);
    v[1] = static_cast<f32>(y / length);
    v[2] = static_cast<f32>(z / length);
}

/// camera = "orbit": the eye begins in front of the target and goes round it.
void read_camera_path(section_reader& r, const document_section& s, shm::scene_state& scene) {
    const bool orbits = r.choice("camera", 0, {"fixed", "orbit"}) == 1;
    const f64 speed = r.number("orbit_speed", 0.01, -10, 10), elevation = r.number("elevation", 0.4, -1.5, 1.5),
              distance = r.number("distance", 3.2, 1e-3, 1e6);
    if (!orbits) {
        for (const char* key : {"orbit_speed", "elevation", "distance"})
            if (const document_entry* e = s.find(key); e != nullptr) section_reader::wrong(key, *e, "camera = \"orbit\" beside it");
        return;
    }
    if (const document_entry* e = s.find("eye"); e != nullptr)
        section_reader::wrong("eye", *e, "no eye beside camera = \"orbit\", which places it by distance and elevation");
    const sine_cosine up = sincos_(elevation);
    scene.camera.eye[0] = scene.camera.target[0];
    scene.camera.eye[1] = static_cast<f32>(scene.camera.target[1] + distance * up.sine);
    scene.camera.eye[2] = static_cast<f32>(scene.camera.target[2] + distance * up.cosine);
    scene.orbit = static_cast<f32>(speed);
}

}  // namespace

const std::vector<std::string>& stage_keys() {
    static const std::vector<std::string> keys = {"name",    "run",     "inputs",       "device",   "in_flight", "instances",
                                                  "standby", "restart", "max_attempts", "optional", "group",     "prefix",
                                                  "isolation", "frame_timeout_ms"};
    return keys;
}

void read_pipeline_keys(const document_section& s, pipeline& p) {
    section_reader r(s);
    p.name = r.text("name", p.name);
    if (!is_run_name(p.name)) {
        const std::string expected = "a name of 1 to 40 letters, digits, -, _ and inner dots";
        if (const document_entry* e = r.take("name"); e != nullptr) section_reader::wrong("name", *e, expected);
        refuse(s.at,
               fmt::format("the file's name makes no pipeline name (\"{}\"); expected [pipeline] name = {}", p.name, expected));
    }
    p.device = read_device(r, p.device);
    read_size(r, p);
    p.frame_timeout_ms = read_frame_timeout(r, p.frame_timeout_ms);
    p.stall_timeout_ms = static_cast<u32>(r.integer("stall_timeout_ms", p.stall_timeout_ms, 0, hour_ms));
    p.latest_lease_ms = static_cast<u32>(r.integer("latest_lease_ms", p.latest_lease_ms, 1, hour_ms));
    p.keeper_grace_s = r.number("keeper_grace_s", p.keeper_grace_s, 0, hour_ms / 1000.0);
    p.fps = r.number("fps", p.fps, 0, 100'000);
    p.frames = r.integer("frames", p.frames, 0, no_limit);
    p.allow_dead_letters = read_allowed(r);
    p.isolation = static_cast<isolation_kind>(r.choice("isolation", 0, {"process", "mps"}));
    r.refuse_unknown();
    for (const auto& [key, entry] : s.keys) p.key_at[key] = entry.key_at;
}

void read_scene_keys(const document_section& s, pipeline& p) {
    section_reader r(s);
    shm::camera_state& c = p.scene.camera;
    const std::string three = "[x, y, z]";
    r.numbers("eye", c.eye, 3, three);
    r.numbers("target", c.target, 3, three);
    r.numbers("up", c.up, 3, three);
    read_camera_path(r, s, p.scene);
    c.fov_y = static_cast<f32>(r.number("fov_y", c.fov_y, 0.01, 3.1));
    c.near = static_cast<f32>(r.number("near", c.near, 1e-4, 1e6));
    c.far = static_cast<f32>(r.number("far", c.far, 1e-4, 1e6));
    r.numbers("light", p.scene.light, 3, three);
    p.scene.ambient = static_cast<f32>(r.number("ambient", p.scene.ambient, 0, 1));
    p.scene.spin = static_cast<f32>(r.number("spin", p.scene.spin, -10, 10));
    p.scene.exposure = static_cast<f32>(r.number("exposure", p.scene.exposure, 0, 1000));
    p.scene.shading = static_cast<u32>(r.choice("shading", p.scene.shading, {"lit", "normals", "triangles", "depth"}));
    p.scene.wireframe = r.flag("wireframe", p.scene.wireframe != 0) ? 1 : 0;
    r.refuse_unknown();
    if (!(c.near < c.far))
        refuse((s.find("near") != nullptr ? s.find("near") : s.find("far"))->value_at, "near must be below far");
    if (const document_entry* e = s.find("light"); e != nullptr) {
        const f32* l = p.scene.light;
        if (!(l[0] * l[0] + l[1] * l[1] + l[2] * l[2] > 0))
            section_reader::wrong("light", *e, "a direction other than [0, 0, 0]");
        normalise(p.scene.light);
    }
}

stage_spec read_stage_keys(const document_section& s, const pipeline& p) {
    section_reader r(s);
    stage_spec out;
    out.at = s.at;
    out.name = read_stage_name(r, s);
    out.run = read_run(r, s);
    out.inputs = r.texts("inputs", "a list of stages' names, e.g. [\"vertex\"]");
    out.device = read_device(r, p.device);
    out.in_flight = static_cast<u32>(r.integer("in_flight", out.in_flight, 1, max_in_flight));
    out.instances = static_cast<u32>(r.integer("instances", out.instances, 1, max_instances));
    out.standby = r.flag("standby", out.standby);
    out.restart = static_cast<restart_mode>(r.choice("restart", 0, {"always", "on-failure", "no"}));
    out.max_attempts = static_cast<u32>(r.integer("max_attempts", out.max_attempts, 1, ring::max_failures));
    out.frame_timeout_ms = read_frame_timeout(r, p.frame_timeout_ms);
    out.optional = r.flag("optional", out.optional);
    out.group = static_cast<group_kind>(r.choice("group", 0, {"blocking", "latest"}));
    out.isolation = static_cast<isolation_kind>(r.choice("isolation", static_cast<u32>(p.isolation), {"process", "mps"}));
    out.prefix = read_prefix(r);
    for (const auto& [key, entry] : s.keys) {
        out.key_at[key] = entry.key_at;
        if (r.known().count(key) == 0) out.settings[key] = entry.value;
    }
    return out;
}

link_spec read_link_keys(const document_section& s) {
    section_reader r(s);
    link_spec out;
    out.at = s.at;
    if (s.find("window") != nullptr) out.window = static_cast<u32>(r.integer("window", 0, min_window, shm::max_window));
    (void)r.take("window");
    out.memory = static_cast<link_memory>(r.choice("memory", 0, {"vmm", "ipc"}));
    r.refuse_unknown();
    for (const auto& [key, entry] : s.keys) out.key_at[key] = entry.key_at;
    return out;
}

}  // namespace carousel::supervisor
