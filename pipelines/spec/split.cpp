#include "spec/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "spec/links.hpp"
#include "spec/pipeline_document.hpp"
#include "spec/pipeline_keys.hpp"

namespace carousel::supervisor {
namespace {

/// Number of frames in flight on a link whose frames are released after the remote ring has received them.
/// The link's window has the same size.
constexpr u32 committed_under_way = 4;
/// Grace time for a supervisor whose death is detected over a network, and that is restarted over a network.
constexpr f64 started_over_a_network_s = 20;

std::string shown(const pipeline& p, const std::string& host) {
    return host.empty() ? coordinator_name(p) : host;
}

/// The properties that both ends of a link have in common.
stage_spec link_stage(const pipeline& whole, const crossing& c, const std::string& token) {
    const stage_spec& front = *whole.find(c.stage);
    const host_spec& to = *find_host(whole, c.to);
    stage_spec s;
    s.at = front.at;
    s.isolation = whole.isolation;
    s.frame_timeout_ms = whole.frame_timeout_ms;
    s.in_flight = committed_under_way;
    s.settings = {{"address", to.address}, {"port", c.port}, {"token", token}};
    if (to.insecure) s.settings["insecure"] = true;
    for (const auto& [key, place] : to.key_at) s.key_at[key] = place;
    return s;
}

stage_spec sender(const pipeline& whole, const crossing& c, const std::string& token) {
    stage_spec s = link_stage(whole, c, token);
    s.name = c.send;
    s.run = "carousel-send";
    s.inputs = {c.stage};
    s.device = whole.find(c.stage)->device;
    const host_spec& to = *find_host(whole, c.to);
    s.settings["release"] = word_of(release_words, to.release);
    s.settings["compress"] = word_of(packing_words, to.compress);
    s.settings["memory"] = word_of(leaving_words, to.memory);
    if (to.durable()) s.in_flight = max_in_flight;  // this many frames are enough for all rings on that host
    return s;
}

/// Returns true if every source of that ring is on `host`.
bool begins_on(const pipeline& whole, const std::string& ring, const std::string& host) {
    const stage_spec& s = *whole.find(ring);
    return s.inputs.empty() ? s.host == host
                            : std::all_of(s.inputs.begin(), s.inputs.end(), [&](const std::string& input) {
                                  return begins_on(whole, input, host);
                              });
}

stage_spec receiver(const pipeline& whole, const crossing& c, const stage_description& front,
                    const std::string& token) {
    stage_spec s = link_stage(whole, c, token);
    s.name = c.receive;
    s.run = "carousel-receive";
    s.returns = begins_on(whole, c.stage, c.to);
    s.settings["format"] = front.format.dump();
    s.settings["sync"] = find_host(whole, c.to)->sync;
    // After a lost durable host has restarted within the same run, frames that it had already sent arrive
    // again.
    if (!c.from.empty() && find_host(whole, c.from)->durable()) s.settings["successors"] = true;
    for (const stage_spec& reader : whole.stages)
        if (reader.host == c.to && std::count(reader.inputs.begin(), reader.inputs.end(), c.stage) != 0) {
            s.device = reader.device;
            break;
        }
    return s;
}

void refuse_spread_assets(const pipeline& whole, const std::vector<stage_description>& all) {
    for (std::size_t k = 0; k < all.size(); ++k)
        for (const std::string& used : all[k].uses)
            for (std::size_t m = 0; m < all.size(); ++m) {
                const auto makes = [&](const asset_spec& a) { return a.name == used; };
                if (whole.stages[m].host == whole.stages[k].host ||
                    std::none_of(all[m].makes.begin(), all[m].makes.end(), makes))
                    continue;
                refuse(whole.stages[k].position_of("host"),
                       fmt::format("stage \"{}\" on host {} uses the asset {}, which \"{}\" produces on host "
                                   "{}: assets can't be sent between hosts; place both on one host",
                                   whole.stages[k].name, shown(whole, whole.stages[k].host), used,
                                   whole.stages[m].name, shown(whole, whole.stages[m].host)));
            }
}

}  // namespace

std::vector<crossing> crossings_of(const pipeline& whole) {
    std::vector<crossing> out;
    for (const stage_spec& front : whole.stages) {
        std::set<std::string> readers;
        for (const stage_spec& s : whole.stages)
            if (std::find(s.inputs.begin(), s.inputs.end(), front.name) != s.inputs.end() &&
                s.host != front.host)
                readers.insert(s.host);
        for (const std::string& to : readers) {
            const host_spec* host = find_host(whole, to);
            const u32 first = (host != nullptr ? host->port : host_spec{}.port) + 1;
            const u32 number = static_cast<u32>(out.size());
            out.push_back({front.name, front.host, to, first + number * ports_per_link,
                           fmt::format("{}-to-{}", front.name, shown(whole, to)),
                           fmt::format("{}-from-{}", front.name, shown(whole, front.host))});
        }
    }
    return out;
}

f64 grace_of(const pipeline& whole, const std::string& host) {
    const host_spec* const there = host.empty() ? nullptr : find_host(whole, host);
    const bool over_a_network = there != nullptr && there->launcher != launcher_kind::none;
    return over_a_network && whole.key_at.count("supervisor_grace_s") == 0 ? started_over_a_network_s
                                                                           : whole.supervisor_grace_s;
}

pipeline part_of(const pipeline& whole, const std::string& host, const std::vector<stage_description>& all,
                 const std::string& token) {
    refuse_spread_assets(whole, all);
    pipeline p = whole;
    p.text.clear();
    p.stages.clear();
    p.links.clear();
    p.parameters.clear();  // the parameters belong to the whole file, and are planned with it
    if (!host.empty()) p.name += "." + host;
    p.supervisor_grace_s = grace_of(whole, host);
    const std::vector<crossing> crossings = crossings_of(whole);
    for (stage_spec s : whole.stages) {
        if (s.host != host) continue;
        s.host.clear();
        s.has_output = false;
        for (std::string& input : s.inputs)
            for (const crossing& c : crossings)
                if (c.to == host && c.stage == input) input = c.receive;
        for (const auto& link : whole.links)
            if (ring_name_of(link.first).stage == s.name) p.links.insert(link);
        p.stages.push_back(std::move(s));
    }
    for (const crossing& c : crossings) {
        if (c.from == host) p.stages.push_back(sender(whole, c, token));
        if (c.to != host) continue;
        const auto front = std::find_if(all.begin(), all.end(),
                                        [&](const stage_description& d) { return d.stage == c.stage; });
        p.stages.push_back(receiver(whole, c, *front, token));
        link_spec link = whole.links.at(c.stage);
        link.record = false;  // the recorder is on the host where the ring begins
        p.links[c.receive] = link;
    }
    add_workers(whole, host, all, token, p);
    // If every frame comes from other hosts, so does the END: this host must receive the END from the
    // senders.
    if (std::none_of(p.stages.begin(), p.stages.end(),
                     [](const stage_spec& s) { return s.inputs.empty() && !is_derived(s); }))
        p.frames = 0;
    check_and_wire(p);
    return p;
}

std::vector<std::string> leading_hosts(const pipeline& whole) {
    std::vector<std::string> leading;
    std::set<std::string> reached;  // the leading hosts, and all hosts that receive their frames
    const auto reach = [&](const std::string& from) {
        reached.insert(from);
        for (bool grew = true; grew;) {
            grew = false;
            for (const crossing& c : crossings_of(whole))
                if (reached.count(c.from) != 0) grew = reached.insert(c.to).second || grew;
        }
    };
    const auto consider = [&](const stage_spec& s, bool on_coordinator) {
        if (!s.inputs.empty() || s.host.empty() != on_coordinator || reached.count(s.host) != 0) return;
        leading.push_back(s.host);
        reach(s.host);
    };
    for (const stage_spec& s : whole.stages) consider(s, true);
    for (const stage_spec& s : whole.stages) consider(s, false);
    return leading;
}

bool is_derived(const stage_spec& s) noexcept {
    return (s.run == "carousel-send" || s.run == "carousel-receive") && s.key_at.count("run") == 0;
}

}  // namespace carousel::supervisor
