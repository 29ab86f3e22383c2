#include "graph/drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/errors.hpp"
#include "os/table.hpp"
#include "spec/links.hpp"
#include "supervisor/plan/plan_text.hpp"

namespace carousel::supervisor {
namespace {

std::string with_count(const std::string& name, std::size_t instances) {
    return instances > 1 ? fmt::format("{} x {}", name, instances) : name;
}

/// Adds the edges of all links; `node_of` maps a stage's name to its node.
void add_edges(drawing& d, const std::vector<run::ps_link>& links,
               const std::map<std::string, std::size_t>& node_of) {
    for (const run::ps_link& l : links) {
        for (const run::ps_link::reader& r : l.readers) {
            graph_edge e;
            const ring_name ring = ring_name_of(l.stage);
            e.from = node_of.at(ring.stage);
            e.ring = l.stage;
            e.to = node_of.at(r.stage);
            e.latest = r.group == "latest";
            e.lines = {ring.output.empty() ? l.format : l.stage + ": " + l.format,
                       fmt::format("{} slots x {}, {}", l.slots, human_bytes(l.slot_bytes), l.memory),
                       r.group};
            d.edges.push_back(std::move(e));
        }
    }
}

/// One stage of a `ps` reply, which has one row per instance.
struct stage_row {
    std::string name, device, state;
    std::size_t instances = 0;
    f64 frames_per_second = 0;
    std::map<std::string, u32> states;
};

std::vector<stage_row> stages_of(const run::ps_answer& ps) {
    std::vector<stage_row> all;
    for (const run::ps_stage& s : ps.stages) {
        const std::string name = s.name.value_or("?");
        auto at = std::find_if(all.begin(), all.end(), [&](const stage_row& r) { return r.name == name; });
        if (at == all.end()) {
            all.push_back({name, s.device.value_or("?"), "", 0, s.frames_per_second.value_or(0), {}});
            at = all.end() - 1;
        }
        ++at->instances;
        ++at->states[s.state.value_or("?")];
    }
    for (stage_row& r : all) {
        r.state = r.states.size() == 1 ? r.states.begin()->first : "mixed";
    }
    return all;
}

std::string states_text(const stage_row& r) {
    if (r.instances == 1 || r.states.size() == 1) return r.states.begin()->first;
    std::string text;
    for (const auto& [state, count] : r.states)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
    return text;
}

/// Returns the number of frames that the reader has not yet processed, as text.
std::string lag_text(const telemetry::snapshot& s, const std::string& ring, const std::string& to) {
    for (const telemetry::link_view& l : s.links) {
        if (l.name != ring) continue;
        for (const telemetry::group_view& g : l.groups)
            if (s.stage_name(g.stage) == to) return fmt::format("lag {}", g.lag);
    }
    return "";
}

std::string escaped(const std::string& text, const std::map<char, std::string>& with) {
    std::string out;
    for (const char c : printable(text)) {
        const auto at = with.find(c);
        out += at == with.end() ? std::string(1, c) : at->second;
    }
    return out;
}

std::string joined(const std::vector<std::string>& lines, const std::map<char, std::string>& with,
                   const char* between) {
    std::string out;
    for (const std::string& line : lines) out += (out.empty() ? "" : between) + escaped(line, with);
    return out;
}

const char* color_of_state(const std::string& state) {
    if (state == "running" || state == "done") return "#d9f2d9";
    if (state == "failed") return "#f5c6c6";
    return state.empty() ? "#eef2f7" : "#fbe8c4";
}

const std::map<char, std::string> dot_escapes = {{'"', "\\\""}, {'\\', "\\\\"}};
// Mermaid reads HTML and its own quotes in labels; entities are written with # instead of &.
const std::map<char, std::string> mermaid_escapes = {{'"', "#quot;"}, {'<', "#lt;"}, {'>', "#gt;"},
                                                     {'&', "#amp;"},  {'#', "#35;"}, {'|', "#124;"},
                                                     {'`', "#96;"}};

}  // namespace

drawing drawing_of(const run_setup& s) {
    drawing d{s.name, {}, {}};
    std::map<std::string, std::size_t> node_of;
    for (const stage_setup& st : s.stages) {
        node_of[st.spec.name] = d.nodes.size();
        d.nodes.push_back({{with_count(st.spec.name, st.spec.instances), st.device_name}, ""});
    }
    add_edges(d, links_of(s), node_of);
    return d;
}

drawing drawing_of(const run::ps_answer& ps, const telemetry::snapshot* live) {
    try {
        if (!ps.pipeline.name || !ps.links) throw shm_error("its name or its links are missing");
        drawing d{*ps.pipeline.name, {}, {}};
        std::map<std::string, std::size_t> node_of;
        std::vector<std::string> names;
        for (const stage_row& r : stages_of(ps)) {
            node_of[r.name] = d.nodes.size();
            names.push_back(r.name);
            graph_node n{{with_count(r.name, r.instances), r.device}, ""};
            if (live != nullptr) {
                n.state = r.state;
                n.lines.push_back(
                    fmt::format("{}, {} frames/s", states_text(r), human_rate(r.frames_per_second)));
            }
            d.nodes.push_back(std::move(n));
        }
        add_edges(d, *ps.links, node_of);
        if (live == nullptr) return d;
        for (graph_edge& e : d.edges)
            if (const std::string lag = lag_text(*live, e.ring, names[e.to]); !lag.empty())
                e.lines.push_back(lag);
        return d;
    } catch (const std::exception& e) {  // for example if the reply names a stage that is unknown here
        throw shm_error(fmt::format(
            "the supervisor's answer can't be drawn ({}): check that both programs have the same version",
            e.what()));
    }
}

std::string dot_text(const drawing& d) {
    std::string out = fmt::format(
        "digraph \"{}\" {{\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\", "
        "fontname=\"sans-serif\"];\n"
        "  edge [fontname=\"sans-serif\", fontsize=10];\n",
        escaped(d.name, dot_escapes));
    for (std::size_t k = 0; k < d.nodes.size(); ++k)
        out += fmt::format("  s{} [label=\"{}\", fillcolor=\"{}\"];\n", k,
                           joined(d.nodes[k].lines, dot_escapes, "\\n"), color_of_state(d.nodes[k].state));
    for (const graph_edge& e : d.edges)
        out += fmt::format("  s{} -> s{} [label=\"{}\"{}];\n", e.from, e.to,
                           joined(e.lines, dot_escapes, "\\n"), e.latest ? ", style=dashed" : "");
    return out + "}\n";
}

std::string mermaid_text(const drawing& d) {
    std::string out =
        fmt::format("---\ntitle: \"{}\"\n---\nflowchart LR\n", escaped(d.name, {{'"', "'"}, {'\\', "/"}}));
    for (std::size_t k = 0; k < d.nodes.size(); ++k)
        out += fmt::format("  s{}[\"{}\"]\n", k, joined(d.nodes[k].lines, mermaid_escapes, "<br/>"));
    for (const graph_edge& e : d.edges)
        out += fmt::format("  s{} {}|\"{}\"| s{}\n", e.from, e.latest ? "-.->" : "-->",
                           joined(e.lines, mermaid_escapes, "<br/>"), e.to);
    for (std::size_t k = 0; k < d.nodes.size(); ++k)
        if (!d.nodes[k].state.empty())
            out += fmt::format("  style s{} fill:{}\n", k, color_of_state(d.nodes[k].state));
    return out;
}

}  // namespace carousel::supervisor
