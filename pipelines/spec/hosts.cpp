#include "spec/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/address.hpp"
#include "core/user_input.hpp"
#include "shm/runtime_folder.hpp"
#include "spec/key_table.hpp"
#include "spec/pipeline_keys.hpp"
#include "spec/section_reader.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr std::size_t longest_host_name = 16;

const key_row<host_spec> host_rows[] = {
    {"address",
     [](auto& r, auto key, auto& h) {
         h.address = r.text(key, "", "the host's numeric IPv4 address, e.g. \"10.0.0.2\"");
     },
     [](auto& h) { return json(h.address); }, "a numeric IPv4 address",
     "Address of the host in the network between the hosts.", "none"},
    {"port",
     [](auto& r, auto key, auto& h) { h.port = static_cast<u32>(r.integer(key, h.port, host_ports)); },
     [](auto& h) { return json(h.port); }, &host_ports,
     "Port on which the host's supervisor listens. Each link takes 65 of the ports above it."},
    {"launcher", [](auto& r, auto key, auto& h) { h.launcher = r.choice(key, h.launcher, launcher_words); },
     [](auto& h) { return json(word_of(launcher_words, h.launcher)); }, words_of<launcher_words>,
     "How the host's supervisor is started: `here` names the host of `carousel run`; with `none` a user "
     "starts it."},
    {"login",
     [](auto& r, auto key, auto& h) {
         h.login = r.text(key, "", "the destination for ssh or srun, e.g. \"me@b\"");
     },
     [](auto& h) { return json(h.login); }, "a text", "What ssh or srun connects to, e.g. `me@b`.",
     "the address with ssh, the name with slurm"},
    {"program",
     [](auto& r, auto key, auto& h) { h.program = r.text(key, "", "the path of `carousel` on that host"); },
     [](auto& h) { return json(h.program); }, "a path", "Path of `carousel` on that host.",
     "the path on this host"},
    {"file",
     [](auto& r, auto key, auto& h) {
         h.file = r.text(key, "", "the path of this pipeline file on that host");
     },
     [](auto& h) { return json(h.file); }, "a path", "Path of the pipeline file on that host.",
     "the path on this host"},
    {"insecure", [](auto& r, auto key, auto& h) { h.insecure = r.flag(key, false); },
     [](auto& h) { return json(h.insecure); }, "true or false",
     "Whether an address outside private networks is accepted. Frames travel unencrypted."},
    {"release", [](auto& r, auto key, auto& h) { h.release = r.choice(key, h.release, release_words); },
     [](auto& h) { return json(word_of(release_words, h.release)); }, words_of<release_words>,
     "When a sender releases a frame that it has sent to this host: as soon as a ring of this host has the "
     "frame (`committed`), or as soon as this host's sinks have recorded it (`durable`)."},
    {"sync", [](auto& r, auto key, auto& h) { h.sync = r.flag(key, false); },
     [](auto& h) { return json(h.sync); }, "true or false",
     "With `release = \"durable\"`: the host calls sync(2) before it reports frames as durable."},
    {"compress", [](auto& r, auto key, auto& h) { h.compress = r.choice(key, h.compress, packing_words); },
     [](auto& h) { return json(word_of(packing_words, h.compress)); }, words_of<packing_words>,
     "Compression of the frames sent to this host. A frame that would not become smaller is sent "
     "uncompressed."},
    {"memory", [](auto& r, auto key, auto& h) { h.memory = r.choice(key, h.memory, leaving_words); },
     [](auto& h) { return json(word_of(leaving_words, h.memory)); }, words_of<leaving_words>,
     "How a frame leaves a GPU: copied through memory of the CPU (`staged`), or read directly by UCX "
     "(`direct`)."},
};

host_spec read_host(const document_section& s, const std::string& name) {
    section_reader r(s);
    host_spec h;
    h.name = name;
    h.at = s.at;
    read_all(host_rows, r, h);
    r.refuse_unknown();
    for (const auto& [key, entry] : s.keys) h.key_at[key] = entry.key_at;
    for (const char* key : {"login", "program", "file"})
        if (const document_entry* e = s.find(key);
            e != nullptr && e->value.get<std::string>().starts_with('-'))
            section_reader::refuse_value(key, *e, "a text that does not begin with \"-\"");
    if (h.sync && !h.durable())
        section_reader::refuse_value("sync", s.keys.at("sync"),
                                     "sync = true only together with release = \"durable\", because "
                                     "otherwise no sender waits for the disk");
    if (h.memory == leaving_kind::direct && h.compress != packing_kind::none)
        section_reader::refuse_value(
            "memory", s.keys.at("memory"),
            "\"staged\" together with compress: the CPU compresses frames, so they must be in its memory");
    if (h.address.empty()) return h;
    const document_entry& address = s.keys.at("address");
    if (!is_host_address(h.address))
        section_reader::refuse_value("address", address,
                                     "the host's numeric IPv4 address, e.g. \"10.0.0.2\"");
    if (!h.insecure && !is_private_address(h.address))
        section_reader::refuse_value(
            "address", address,
            "a private address, because frames are sent unencrypted. Use a private network or WireGuard, or "
            "set insecure = true (for all hosts: --insecure)");
    return h;
}

source_position place_of(const host_spec& h, const char* key) {
    const auto at = h.key_at.find(key);
    return at != h.key_at.end() ? at->second : h.at;
}

std::string shown_host(const pipeline& p, const std::string& host) {
    return host.empty() ? coordinator_name(p) : host;
}

/// True if the stage's frames leave the run there: no stage reads more of it than its states.
bool leave_there(const pipeline& p, const stage_spec& from) {
    const auto k = static_cast<u32>(&from - p.stages.data());
    return std::none_of(p.stages.begin(), p.stages.end(), [&](const stage_spec& s) {
        for (std::size_t i = 0; i < s.input_indices.size(); ++i)
            if (s.input_indices[i] == k && s.input_outputs[i] != "state") return true;
        for (std::size_t i = 0; i < s.sampled_indices.size(); ++i)
            if (s.sampled_indices[i] == k && s.sampled_outputs[i] != "state") return true;
        return false;
    });
}

/// A frame counts as durable after each sink on that host has it, so at least one sink there must wait for
/// every frame.
bool has_sink(const pipeline& p, const std::vector<crossing>& all, const std::string& host) {
    return std::any_of(all.begin(), all.end(), [&](const crossing& c) { return c.from == host; }) ||
           std::any_of(p.stages.begin(), p.stages.end(), [&](const stage_spec& s) {
               return s.host == host && !s.latest() && leave_there(p, s);
           });
}

/// Returns the durable hosts that receive frames of `host`, directly or through other durable hosts: `host`
/// waits until the frames are in the files of these hosts.
std::set<std::string> downstream_of(const pipeline& p, const std::vector<crossing>& all,
                                    const std::string& host) {
    std::set<std::string> out;
    for (bool grew = true; grew;) {
        grew = false;
        for (const crossing& c : all)
            if ((c.from == host || out.count(c.from) != 0) && find_host(p, c.to)->durable())
                grew = out.insert(c.to).second || grew;
    }
    return out;
}

/// Checks those keys of a host's section that apply to links to that host. All hosts in `all` must have
/// sections.
void check_links_to(const pipeline& p, const std::vector<crossing>& all, const host_spec& h) {
    const std::string to = h.launcher == launcher_kind::here ? "" : h.name;
    const auto leads_there = [&](const crossing& c) { return c.to == to; };
    if (std::none_of(all.begin(), all.end(), leads_there))
        for (const char* key : {"release", "compress", "memory"}) {
            if (h.key_at.count(key) == 0) continue;
            const bool helps =
                !to.empty() && std::any_of(p.stages.begin(), p.stages.end(), [&](const stage_spec& s) {
                    return std::find(s.hosts.begin(), s.hosts.end(), to) != s.hosts.end();
                });
            refuse(
                place_of(h, key),
                helps
                    ? fmt::format("{0} of [hosts.{1}] has no effect: the key applies to rings that are sent "
                                  "to that host, but {2} only runs instances of a stage; remove the key",
                                  key, h.name, h.name)
                    : fmt::format(
                          "{} of [hosts.{}] has no effect: the key applies to rings that are sent to that "
                          "host, but no ring is; move the key to the section of a host that reads a ring",
                          key, h.name));
        }
    if (!h.durable()) return;
    if (!has_sink(p, all, to))
        refuse(place_of(h, "release"),
               fmt::format("release = \"durable\" of [hosts.{}]: frames are kept until its sinks have them, "
                           "but no sink there gets every frame; expected a sink with group = \"blocking\"",
                           h.name));
    // A host's sending stages are also sinks. If two hosts with release = "durable" sent frames to each
    // other, they would therefore wait for each other indefinitely.
    const std::set<std::string> waits_for = downstream_of(p, all, to);
    for (const crossing& c : all)
        if (c.to == to && waits_for.count(c.from) != 0)
            refuse(place_of(h, "release"),
                   fmt::format(
                       "release = \"durable\" of [hosts.{}]: frames go from host {} to host {} and back, "
                       "and all hosts on the way are durable, so that each would wait for the sinks "
                       "of the others; set release = \"committed\" for one of these hosts",
                       h.name, shown_host(p, c.from), shown_host(p, to)));
}

bool is_host_name(const std::string& name) {
    return shm::is_folder_name(name) && name.size() <= longest_host_name &&
           name.find('.') == std::string::npos;
}

}  // namespace

void describe_host_keys(std::vector<key_description>& to) { describe_all(host_rows, "[hosts.NAME]", to); }

std::string coordinator_name(const pipeline& p) {
    const host_spec* coordinator = find_host(p, "");
    return coordinator != nullptr ? coordinator->name : "here";
}

const host_spec* find_host(const pipeline& p, const std::string& name) noexcept {
    const auto at = std::find_if(p.hosts.begin(), p.hosts.end(), [&](const host_spec& h) {
        return name.empty() ? h.launcher == launcher_kind::here : h.name == name;
    });
    return at == p.hosts.end() ? nullptr : &*at;
}

std::vector<const host_spec*> remote_hosts(const pipeline& p) {
    std::vector<const host_spec*> out;
    for (const host_spec& h : p.hosts)
        if (std::any_of(p.stages.begin(), p.stages.end(), [&](const stage_spec& s) {
                return s.host == h.name || std::find(s.hosts.begin(), s.hosts.end(), h.name) != s.hosts.end();
            }))
            out.push_back(&h);
    return out;
}

void read_hosts(const document& d, pipeline& p) {
    std::vector<std::string> names;
    for (const auto& [name, section] : d.hosts) {
        if (!is_host_name(name))
            refuse(section.at, fmt::format("[hosts.{}]: expected a name of 1 to {} letters, digits, - and _",
                                           name, longest_host_name));
        p.hosts.push_back(read_host(section, name));
        names.push_back(name);
        const host_spec& h = p.hosts.back();
        if (h.launcher == launcher_kind::here && find_host(p, "") != &h)
            refuse(h.at,
                   fmt::format(
                       "launcher = \"here\" is set for {} and for {}, but `carousel run` is on one host only",
                       coordinator_name(p), name));
    }
    const std::string coordinator = coordinator_name(p);
    if (const host_spec* taken = find_host(p, coordinator);
        taken != nullptr && taken->launcher != launcher_kind::here)
        refuse(taken->at,
               "[hosts.here]: \"here\" is the host of `carousel run`; expected launcher = \"here\"");
    names.push_back(coordinator);
    for (stage_spec& s : p.stages) {
        read_host_list(p, s);
        if (s.host == coordinator) s.host.clear();
        if (s.host.empty() || find_host(p, s.host) != nullptr) continue;
        refuse(s.position_of("host"),
               fmt::format("stage \"{}\": no host \"{}\"; expected a section [hosts.{}] with its address{}",
                           s.name, s.host, s.host, did_you_mean_clause(s.host, names)));
    }
}

void check_hosts(const pipeline& p) {
    if (!p.is_spread()) return;
    if (p.checkpoint_every > 0)
        refuse(p.key_at.at("checkpoint_every"),
               "checkpoint_every is set, and stages run on several hosts: a run has checkpoints only if all "
               "of its stages are on one host; remove the key");
    if (std::none_of(p.stages.begin(), p.stages.end(), [](const stage_spec& s) { return s.host.empty(); }))
        refuse({p.file, 0, 0, ""}, fmt::format("no stage runs on the host of `carousel run` (\"{}\"): at "
                                               "least one must, e.g. a source or a sink",
                                               coordinator_name(p)));
    for (const stage_spec& s : p.stages)
        for (std::size_t i = 0; i < s.inputs.size(); ++i) {
            const stage_spec& from = p.stages[s.input_indices[i]];
            if (from.host == s.host || s.input_outputs[i].empty()) continue;
            refuse(s.position_of("inputs"),
                   fmt::format("stage \"{}\" reads \"{}\" on another host: a link between hosts carries only "
                               "the first output of a stage, \"{}\"; place a stage that reads \"{}\" on the "
                               "host of \"{}\", and read that stage",
                               s.name, s.inputs[i], from.name, s.inputs[i], from.name));
        }
    for (const stage_spec& s : p.stages)
        for (std::size_t i = 0; i < s.sampled_inputs.size(); ++i)
            if (p.stages[s.sampled_indices[i]].host != s.host)
                refuse(s.position_of("sampled"),
                       fmt::format("stage \"{}\" samples \"{}\" on another host: a link between hosts "
                                   "carries no sampled inputs; place both stages on one host",
                                   s.name, s.sampled_inputs[i]));
    check_workers(p);
    for (const host_spec* h : remote_hosts(p)) {
        if (h->address.empty())
            refuse(h->at, fmt::format("[hosts.{}] has no address; expected the host's numeric IPv4 address, "
                                      "e.g. address = \"10.0.0.2\"",
                                      h->name));
        if (!shm::is_folder_name(p.name + "." + h->name))
            refuse(h->at, fmt::format("the run on host {} would be named {}.{}; choose shorter names "
                                      "(together at most 40 characters, with the dot)",
                                      h->name, p.name, h->name));
    }
    const std::vector<crossing> crossings = crossings_of(p);
    for (const crossing& c : crossings) {
        const host_spec* to = find_host(p, c.to);
        if (to == nullptr || to->address.empty())
            refuse(p.find(c.stage)->at,
                   fmt::format("frames of \"{}\" are sent to the host of `carousel run`, which has no "
                               "address; expected [hosts.{}] with launcher = \"here\" and address",
                               c.stage, coordinator_name(p)));
        if (c.port > host_ports.high)
            refuse(place_of(*to, "address"), fmt::format("port = {} is too high: each link of this file uses "
                                                         "{} ports, and the highest possible port is 65535",
                                                         to->port, ports_per_link));
        for (const std::string& name : {c.send, c.receive}) {
            if (const stage_spec* taken = p.find(name))
                refuse(taken->position_of("name"),
                       fmt::format("stage \"{}\": the stage that serves the link from {} to {} has the same "
                                   "name; choose another name",
                                   name, c.from.empty() ? coordinator_name(p) : c.from,
                                   c.to.empty() ? coordinator_name(p) : c.to));
            if (name.size() > max_name)
                refuse(p.find(c.stage)->position_of("name"),
                       fmt::format("the stage that serves its link would be named {}; choose a shorter name "
                                   "for the stage",
                                   name));
        }
    }
    for (const host_spec* h : remote_hosts(p)) check_links_to(p, crossings, *h);
    if (const host_spec* coordinator = find_host(p, "")) check_links_to(p, crossings, *coordinator);
}

}  // namespace carousel::supervisor
