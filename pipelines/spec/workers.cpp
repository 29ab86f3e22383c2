#include "spec/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/user_input.hpp"
#include "spec/pipeline_keys.hpp"

namespace carousel::supervisor {
namespace {

constexpr u32 most_in_flight = 16;
constexpr u64 return_slack_ms =
    1000;  ///< this is added to the time that two hanging frames may take on the other host

u32 instances_there(const stage_spec& s, const std::string& host) {
    u32 count = 0;
    for (u32 k = 0; k < s.instances; ++k) count += s.hosts[k % s.hosts.size()] == host ? 1 : 0;
    return count;
}

std::string remote_host_of(const stage_spec& s) {
    const auto at = std::find_if(s.hosts.begin(), s.hosts.end(), [](const auto& h) { return !h.empty(); });
    return at == s.hosts.end() ? "" : *at;
}

const stage_description& description_of(const std::vector<stage_description>& all, const std::string& stage) {
    return *std::find_if(all.begin(), all.end(),
                         [&](const stage_description& d) { return d.stage == stage; });
}

nlohmann::json settings_of_link(const host_spec& to, u32 port, const std::string& token) {
    nlohmann::json out{{"address", to.address}, {"port", port}, {"token", token}};
    if (to.insecure) out["insecure"] = true;
    return out;
}

/// The keys that a link's stages on the other host inherit from the stage that they serve.
stage_spec serving_stage(const pipeline& whole, const stage_spec& s) {
    stage_spec to;
    to.at = s.at;
    to.isolation = whole.isolation;
    to.frame_timeout_ms = whole.frame_timeout_ms;
    to.device = s.device;
    return to;
}

/// Returns the number of frames in flight on the links: one more than the number of instances that compute
/// the frames, but at least 4 and at most 16.
u32 requested_frames(const remote_work& w) { return std::clamp(w.instances + 1, 4U, most_in_flight); }

u64 give_back_ms(const stage_spec& s) {
    constexpr u64 never = 3'600'000;
    return s.frame_timeout_ms == 0 ? never : std::min(never, 2 * u64{s.frame_timeout_ms} + return_slack_ms);
}

void add_remote_seat(const pipeline& whole, const remote_work& w, const stage_description& d,
                     const std::string& token, stage_spec& s) {
    const host_spec& there = *find_host(whole, w.host);
    const host_spec& here = *find_host(whole, "");
    nlohmann::json settings = settings_of_link(there, w.port, token);
    if (here.insecure) settings["insecure"] = true;
    settings.update({{"back_address", here.address},
                     {"back_port", w.back_port},
                     {"format", d.format.dump()},
                     {"output", d.output},
                     {"give_back_ms", give_back_ms(s)}});
    s.instances = s.instances - w.instances + 1;
    if (!s.in_flight) s.in_flight = std::clamp(w.instances + 1, 2U, most_in_flight);
    s.hosts.clear();
    s.remote = remote_seat{w.host, w.instances, "carousel-remote", std::move(settings)};
}

void add_remote_stages(const pipeline& whole, const remote_work& w, const std::vector<stage_description>& all,
                       const std::string& token, pipeline& part) {
    const stage_spec& s = *whole.find(w.stage);
    stage_spec receive = serving_stage(whole, s), send = receive, middle = s;
    receive.name = w.receive;
    receive.run = "carousel-receive";
    receive.in_flight = requested_frames(w);
    receive.settings = settings_of_link(*find_host(whole, w.host), w.port, token);
    receive.settings.update({{"work", true},
                             {"window", requested_frames(w)},
                             {"format", description_of(all, s.inputs.front()).format.dump()}});
    middle.inputs = {w.receive};
    middle.instances = w.instances;
    middle.hosts.clear();
    middle.has_output = false;  // the wiring sets it
    send.name = w.send;
    send.run = "carousel-send";
    send.inputs = {s.name};
    send.in_flight = requested_frames(w);
    send.settings = settings_of_link(*find_host(whole, ""), w.back_port, token);
    send.settings["work"] = true;
    if (const auto link = whole.links.find(s.name); link != whole.links.end()) {
        part.links[s.name] = link->second;
        part.links[s.name].record = false;  // the recorder is on the host that has the whole ring
    }
    for (stage_spec* each : {&receive, &middle, &send}) part.stages.push_back(std::move(*each));
}

/// Refuses outputs that no link can carry, and assets that the other host does not have.
void refuse_unshared(const stage_spec& s, const std::vector<stage_description>& all) {
    const stage_description& d = description_of(all, s.name);
    const source_position& at = s.position_of("host");
    if (d.outputs() > 1)
        refuse(at, fmt::format("stage \"{}\" has {} outputs, but another host returns only one; keep its "
                               "instances on one host",
                               s.name, d.outputs()));
    for (const std::string& used : d.uses)
        for (const stage_description& maker : all)
            for (const asset_spec& a : maker.makes)
                if (a.name == used && maker.stage != s.name)
                    refuse(at, fmt::format("stage \"{}\" has instances on host {} and uses the asset {}, "
                                           "which \"{}\" produces: assets can't be sent between hosts",
                                           s.name, remote_host_of(s), used, maker.stage));
}

void refuse_keys(const stage_spec& s) {
    const auto need = [&](bool good, const char* key, const std::string& what) {
        if (good) return;
        refuse(s.position_of(key),
               fmt::format("stage \"{}\" has instances on two hosts, so it {}", s.name, what));
    };
    need(!s.is_port(), "run", "must be a program: a port has only one process");
    need(s.inputs.size() == 1 && s.has_output && s.input_outputs.front().empty(), "inputs",
         "must read the first output of exactly one stage, and another stage must read it: a link carries "
         "one ring, and results are sent back");
    need(s.sampled_inputs.empty(), "sampled",
         "can't have sampled inputs: the link to the other host carries no rings of sampled inputs");
    need(!s.standby, "standby", "can't have standbys: set standby = false");
    need(s.restart == restart_policy::always, "restart",
         "needs restart = \"always\", because a process gives its frames back by exiting, and must then be "
         "restarted");
    need(s.prefix.empty(), "prefix",
         "can't have a prefix, because the tool would run the process that represents the other host's "
         "instances");
    need(s.devices.empty(), "device",
         "can have only one device per host; a list is only for instances on one host");
}

// Refuses other stages on that host, because the host's run has one END for all sources, but each source
// would count its own frames.
void refuse_company(const pipeline& p, const std::vector<remote_work>& works, const remote_work& w) {
    const stage_spec& s = *p.find(w.stage);
    for (const stage_spec& other : p.stages) {
        const bool there =
            other.host == w.host || std::any_of(works.begin(), works.end(), [&](const remote_work& o) {
                return o.stage == other.name && o.host == w.host && o.stage != w.stage;
            });
        if (there)
            refuse(s.position_of("host"),
                   fmt::format("stage \"{}\" has instances on {}, and \"{}\" is also there: a host with "
                               "instances of a stage can have no other stage",
                               s.name, w.host, other.name));
    }
}

void refuse_names_and_ports(const pipeline& p, const remote_work& w) {
    const stage_spec& s = *p.find(w.stage);
    const host_spec* const here = find_host(p, "");
    if (here == nullptr || here->address.empty())
        refuse(s.position_of("host"),
               fmt::format("results of \"{}\" on {} are sent to the host of `carousel run`, which has no "
                           "address; expected [hosts.{}] with launcher = \"here\" and address",
                           w.stage, w.host, coordinator_name(p)));
    for (const u32 port : {w.port, w.back_port})
        if (port > 65535 - ports_per_link)
            refuse(
                s.position_of("host"),
                fmt::format(
                    "port {}, which its link to the other host uses, is too high; lower `port` of the hosts",
                    port));
    for (const std::string& name : {w.receive, w.send})
        if (p.find(name) != nullptr || name.size() > max_name)
            refuse(s.position_of("name"),
                   fmt::format("its stage on {} would be named {}: choose another or a shorter name", w.host,
                               name));
}

}  // namespace

std::vector<remote_work> remote_works_of(const pipeline& whole) {
    std::vector<remote_work> out;
    const u32 links = static_cast<u32>(crossings_of(whole).size());
    const auto first_port = [&](const std::string& host) {
        const host_spec* h = find_host(whole, host);
        return (h != nullptr ? h->port : host_spec{}.port) + 1;
    };
    for (const stage_spec& s : whole.stages) {
        if (s.hosts.empty()) continue;
        const u32 number = links + 2 * static_cast<u32>(out.size());
        const std::string there = remote_host_of(s);
        out.push_back({s.name, there, instances_there(s, there), first_port(there) + number * ports_per_link,
                       first_port("") + (number + 1) * ports_per_link, s.name + "-work", s.name + "-done"});
    }
    return out;
}

void read_stage_host(section_reader& r, stage_spec& s) {
    const document_entry* e = r.take("host");
    if (e == nullptr || !e->value.is_array()) {
        s.host = r.text("host", s.host, "a host's name, or a list of them for the instances");
        return;
    }
    s.hosts = r.texts("host", "a list of hosts, e.g. [\"\", \"b\"]");
    if (s.hosts.empty()) section_reader::refuse_value("host", *e, "a list of hosts, e.g. [\"\", \"b\"]");
}

void read_host_list(const pipeline& p, stage_spec& s) {
    if (s.hosts.empty()) return;
    const source_position& at = s.position_of("host");
    const std::string coordinator = coordinator_name(p);
    std::vector<std::string> names{coordinator}, there;
    for (const host_spec& h : p.hosts) names.push_back(h.name);
    for (std::string& host : s.hosts) {
        if (host == coordinator) host.clear();
        if (!host.empty() && find_host(p, host) == nullptr)
            refuse(at, fmt::format("stage \"{}\": no host \"{}\"; expected a section [hosts.{}] with its "
                                   "address{}",
                                   s.name, host, host, did_you_mean_clause(host, names)));
        if (!host.empty() && std::find(there.begin(), there.end(), host) == there.end())
            there.push_back(host);
    }
    if (s.hosts.size() > s.instances)
        refuse(at, fmt::format("stage \"{}\": {} hosts for {} instances: set instances = {}", s.name,
                               s.hosts.size(), s.instances, s.hosts.size()));
    if (there.size() > 1)
        refuse(at, fmt::format("stage \"{}\" has instances on {} and {}: expected instances here (\"{}\") "
                               "and on one other host",
                               s.name, there[0], there[1], coordinator));
    const bool here = std::find(s.hosts.begin(), s.hosts.end(), "") != s.hosts.end();
    s.host = here || there.empty() ? "" : there.front();
    if (here && !there.empty()) return;
    s.hosts.clear();
}

void check_workers(const pipeline& p) {
    for (const stage_spec& s : p.stages)
        if (!s.hosts.empty()) refuse_keys(s);
    const std::vector<remote_work> works = remote_works_of(p);
    for (const remote_work& w : works) {
        refuse_company(p, works, w);
        refuse_names_and_ports(p, w);
    }
}

void add_workers(const pipeline& whole, const std::string& host, const std::vector<stage_description>& all,
                 const std::string& token, pipeline& part) {
    for (const remote_work& w : remote_works_of(whole)) {
        refuse_unshared(*whole.find(w.stage), all);
        if (w.host == host) add_remote_stages(whole, w, all, token, part);
        for (stage_spec& s : part.stages)
            if (host.empty() && s.name == w.stage)
                add_remote_seat(whole, w, description_of(all, w.stage), token, s);
    }
}

bool only_helps(const pipeline& whole, const std::string& host) {
    return std::none_of(whole.stages.begin(), whole.stages.end(),
                        [&](const stage_spec& s) { return s.host == host; });
}

}  // namespace carousel::supervisor
