#include "stages/hosts/link_end.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "core/address.hpp"
#include "core/enum_names.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/log.hpp"
#include "shm/fd_socket.hpp"
#include "shm/runtime_folder.hpp"
#include "stages/compression/compression.hpp"

namespace carousel::hosts {

using nlohmann::json;

bool is_private(const std::string& address) { return is_private_address(address); }

link_settings link_settings::read(const configuration& with) {
    link_settings out;
    out.address = with.settings->text("address", "");
    out.port = static_cast<u16>(with.settings->integer("port", 47100, 1024, 65535 - 64));
    out.transports = with.settings->text("transports", "tcp");
    const std::string token = with.settings->text("token", "");
    const bool insecure = with.settings->flag("insecure", false);
    if (!is_host_address(out.address))
        throw settings_error("address",
                             fmt::format("address = \"{}\": expected the receiving host's numeric IPv4 "
                                         "address, e.g. \"10.0.0.2\"",
                                         out.address));
    if (!insecure && !is_private(out.address))
        throw settings_error(
            "address", fmt::format("address = \"{}\" is not a private address, and frames are sent "
                                   "unencrypted. Use a private network or WireGuard, or set insecure = true",
                                   out.address));
    if (token.empty())
        throw settings_error("token",
                             "no token file is named; expected e.g. token = \"link.token\", a file that "
                             "both hosts have (`(umask 077; openssl rand -hex 32 > link.token)`)");
    out.token = with.path(token);
    return out;
}

BOOST_DESCRIBE_ENUM(packing, none, lz4, zstd)
const char* name_of(packing how) noexcept { return enum_name(how, "unknown"); }

std::vector<packing> built_in_packings() {
    const std::vector<std::string>& there = stages::compressions();
    std::vector<packing> out;
    for (const packing how : {packing::lz4, packing::zstd})
        if (std::find(there.begin(), there.end(), name_of(how)) != there.end()) out.push_back(how);
    return out;
}

packing packing_from(const configuration& with) {
    const std::string how = with.settings->choice("compress", "none", {"none", "lz4", "zstd"});
    if (how == "none") return packing::none;
    for (const packing each : built_in_packings())
        if (how == name_of(each)) return each;
    throw settings_error("compress", fmt::format("compress = \"{0}\": this build does not support {0}: run "
                                                 "apt-get install lib{0}-dev and build again",
                                                 how));
}

bool sends_directly(const configuration& with, packing how) {
    if (with.settings->choice("memory", "staged", {"staged", "direct"}) == "staged") return false;
    if (how == packing::none) return true;
    throw settings_error(
        "memory", fmt::format("memory = \"direct\" with compress = \"{}\": frames must be in host memory, "
                              "because the CPU compresses them; use memory = \"staged\", or remove compress",
                              name_of(how)));
}

// Connecting a datagram socket sends no packet, but makes the kernel choose the route and thereby the source
// address.
std::string local_address_towards(const std::string& address) {
    const shm::unique_fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(9);
    ::inet_pton(AF_INET, address.c_str(), &to.sin_addr);
    sockaddr_in from{};
    socklen_t length = sizeof from;
    if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&from), &length) != 0)
        throw config_error(fmt::format("no route from this host to {}: {}", address, errno_text(errno)));
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &from.sin_addr, text, sizeof text);
    return text;
}

u64 payload_bytes(const frame_format& format) {
    frame_format copy = format;
    return copy.lay_out() - before_payload;
}

hello hello_of(const frame_format& format, const parameter_schema& parameters) {
    hello h;
    frame_format copy = format;
    (void)copy.lay_out();
    h.format = copy.to_json();
    h.payload_bytes = payload_bytes(format);
    h.parameters = parameters.type;
    h.parameter_bytes = parameters.bytes;
    return h;
}

void link_end::read(const configuration& with, const frame_format& of_frames) {
    where = link_settings::read(with);
    stage = with.stage;
    format = of_frames;
    bytes = payload_bytes(format);
}

void link_end::prepare(environment& with) {
    if (with.instance() > 0)
        throw config_error(
            "only one process can send the frames of a link in order: give this stage one instance");
    env = &with;
    token = token_file::read(where.token);
}

std::string link_end::file(const std::string& name) const {
    return env->runtime_directory() + "/" + name + "-" + stage;
}

// A receiver only forwards frames that other stages have made, and the receiver's stream ends when the
// sender ends the stream (receive_stage::configure). The program's name would not identify a receiver: the
// program may be a wrapper, or a link in the file system.
bool link_end::is_one_of_several_receivers() const {
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

u64 link_end::checkpoint_every() const {
    const json all = read_json_file(env->runtime_directory() + "/pipeline.json");
    const json plan = all.is_object() ? all.value("pipeline", json()) : json();
    if (!plan.is_object()) return 0;
    const json stages = plan.value("stages", json::array());
    const bool has_state = std::any_of(stages.begin(), stages.end(), [](const json& s) {
        bool state = false;
        return read_member(s, "state", state) && state;
    });
    return has_state ? plan.value("checkpoint_every", u64{0}) : 0;
}

// A run that has checkpoints and begins at another frame has none yet, so nothing is releasable there.
bool link_end::begins_at_checkpoint(u64 first) const {
    if (first == 0 || checkpoint_every() == 0) return false;
    try {
        return env->delivered_below() >= first;
    } catch (const error& e) {
        log::warning("the checkpoints of this run can't be read: {}", e.what());
        return false;
    }
}

link_figures::link_figures(std::string path, std::string run) : path_(std::move(path)), run_(std::move(run)) {
    const json before = read_json_file(path_);
    std::string of;
    if (before.is_object() && read_member(before, "run", of) && of == run_)
        (void)read_member(before, "durable", durable_);
}

void link_figures::update(bool up, const std::optional<clock_relation>& clock, u64 now, bool force) {
    if (up && !was_up_) ++connections_;
    was_up_ = up;
    if (clock) clock_ = clock;
    if (!force && now - written_ns_ < ns_per_s) return;
    written_ns_ = now;
    json j{{"run", run_},       {"up", up},
           {"frames", frames_}, {"connections", connections_},
           {"bytes", bytes_},   {"bytes_on_the_way", packed_}};
    if (durable_) j["durable"] = true;
    j["clock_offset_ms"] = clock_ ? json(static_cast<f64>(clock_->offset_ns) / 1e6) : nullptr;
    j["clock_error_ms"] = clock_ ? json(static_cast<f64>(clock_->error_ns) / 1e6) : nullptr;
    try {
        shm::write_whole_file(path_, j.dump());
    } catch (const error&) {  // the disk may be full, for example; a failed write of the figures must not
                              // cost a frame
    }
}

}  // namespace carousel::hosts
